"""DDP, FSDP, FSDP2, DTensor, tensor parallelism and a pipeline train alike over the backends ringlet and gloo."""

from __future__ import annotations

import hashlib

import pytest

from tests.frameworks.libraries import library
from tests.frameworks.torch_ranks import run_ranks

torch = library("torch")
dist = torch.distributed

STEPS = 4


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.Linear(64, 4)
    )


def batches(rank, size):
    generator = torch.Generator().manual_seed(1)
    for _ in range(STEPS):
        rows = torch.randn(8 * size, 16, generator=generator)
        yield rows[8 * rank : 8 * rank + 8]


def trained(module, data):
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for rows in data:
        loss = module(rows).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def digest(tensors):
    text = hashlib.sha256()
    for tensor in tensors:
        text.update(tensor.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return text.hexdigest()


def data_parallel(rank, size):
    module = torch.nn.parallel.DistributedDataParallel(model(), bucket_cap_mb=0.01)
    return trained(module, batches(rank, size)), digest(module.parameters())


def sharded(rank, size):
    from torch.distributed.fsdp import fully_shard

    module = model()
    for layer in (module[0], module[2], module[3]):
        fully_shard(layer)
    fully_shard(module)
    for part in module.modules():
        if hasattr(part, "set_allocate_memory_from_process_group_for_comm"):  # of which gloo has none
            part.set_allocate_memory_from_process_group_for_comm(dist.get_backend() == "ringlet")
    losses = trained(module, batches(rank, size))
    return losses, digest(parameter.full_tensor() for parameter in module.parameters())


def flat_sharded(rank, size):
    from torch.distributed.fsdp import FullyShardedDataParallel

    module = FullyShardedDataParallel(model(), device_id=torch.device("cpu"))
    losses = trained(module, batches(rank, size))  # frees parameters by resizing what all_gather has filled
    with FullyShardedDataParallel.summon_full_params(module):
        return losses, digest(parameter.clone() for parameter in module.parameters())


def tensor_parallel(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size,))
    module = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    losses = trained(module, batches(0, size))
    return losses, digest(getattr(p, "full_tensor", lambda p=p: p)() for p in module.parameters())


def distributed_tensor(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(torch.arange(24.0).reshape(6, 4), mesh, [Shard(0)])
    y = x.redistribute(mesh, [Shard(1)]).redistribute(mesh, [Replicate()])
    z = (x @ distribute_tensor(torch.ones(4, 3), mesh, [Replicate()])).sum(0)
    return [z.full_tensor().sum().item()], digest([y.to_local(), z.full_tensor()])


def pipeline(rank, size):
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    layers = model()
    parts = [layers[:2], layers[2:]]
    device = torch.device("cpu")
    stage = PipelineStage(parts[rank], rank, size, device)
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda found, wanted: (found - wanted).square().mean())
    losses = []
    for rows in batches(0, 1):
        if rank == 0:
            schedule.step(rows)
        else:
            found = []
            schedule.step(target=torch.zeros(8, 4), losses=found)
            losses.append(sum(each.item() for each in found))
        for parameter in parts[rank].parameters():
            parameter.data -= 0.1 * parameter.grad
            parameter.grad = None
    return losses, digest(parts[rank].parameters())


KINDS = {
    function.__name__: function
    for function in (data_parallel, sharded, flat_sharded, tensor_parallel, distributed_tensor, pipeline)
}


@pytest.mark.parametrize("kind", KINDS)
def test_it_trains_as_over_gloo_and_twice_with_the_same_bits(kind):
    first, second, gloo = (run_ranks(KINDS[kind], 2, backend=backend) for backend in ("ringlet", "ringlet", "gloo"))
    assert first == second
    for (losses, _), (expected, _) in zip(first, gloo, strict=True):
        assert losses == pytest.approx(expected, rel=1e-5)
    if kind != "pipeline":
        assert first[0][1] == first[1][1]  # the parameters of all ranks
