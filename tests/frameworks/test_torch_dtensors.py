"""DTensors become sharded arrays in the same layout, and sharded arrays become DTensors."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import ringlet
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, from_dtensor, shard, to_dtensor
from tests.frameworks.libraries import library
from tests.frameworks.torch_ranks import run_ranks

torch = library("torch")

ROWS = np.arange(48, dtype=np.float32).reshape(8, 6)


def member_of(rank, size, name):
    return ringlet.collectives.init_process_group(rank, size, name=f"dtensors-{name}")


def converted(rank, size, name):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

    with member_of(rank, size, name) as member:
        grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("x", "y"))
        mesh = Mesh({"x": 2, "y": 2}, member=member)
        for placements, spec in (
            ([Shard(0), Shard(1)], ("x", "y")),
            ([Shard(1), Replicate()], (None, "x")),
            ([Replicate(), Replicate()], ()),
            ([Shard(0), Shard(0)], (("x", "y"),)),
        ):
            tensor = distribute_tensor(torch.from_numpy(ROWS.copy()), grid, placements)
            x = from_dtensor(tensor, member)
            assert x.sharding == shard(ROWS, mesh.sharding(*spec)).sharding
            np.testing.assert_array_equal(x.shards[0], tensor.to_local())
            np.testing.assert_array_equal(x, ROWS)
            np.testing.assert_array_equal(x + shard(ROWS, mesh.sharding()), 2 * ROWS)  # on the same devices
            back = to_dtensor(x, grid)
            assert (back.placements, back.shape, back.stride()) == (tensor.placements, tensor.shape, tensor.stride())
            assert torch.equal(back.full_tensor(), tensor.full_tensor())
            is_shared = back.to_local().data_ptr() == x.shards[0].ctypes.data
            assert is_shared == (placements == [Shard(0), Shard(0)])
            assert back.to_local().is_contiguous()
        terms = DTensor.from_local(torch.full((3,), 1.0 + rank // 2), grid, [Partial(), Replicate()])
        assert from_dtensor(terms, member).tolist() == terms.full_tensor().tolist() == [3, 3, 3]
        number = DTensor.from_local(torch.tensor(1.0 + rank // 2), grid, [Partial(), Replicate()])
        assert from_dtensor(number, member).tolist() == 3
        assert from_dtensor(number.redistribute(placements=[Replicate()] * 2), member).tolist() == 3
        columns = to_dtensor(from_dtensor(tensor, member).sum(axis=0), grid)
        assert torch.equal(columns.full_tensor(), torch.from_numpy(ROWS).sum(0))
        narrow = distribute_tensor(torch.arange(5, dtype=torch.bfloat16), grid, [Shard(0), Replicate()])
        assert to_dtensor(from_dtensor(narrow, member), grid).full_tensor().tolist() == [0, 1, 2, 3, 4]
        return refusals(grid, mesh, member)


def refusals(grid, mesh, member):
    from torch.distributed.tensor import Partial, Shard, distribute_tensor

    def text_of(function, *args):
        with pytest.raises(ShardingError) as caught:
            function(*args)
        return str(caught.value)

    uneven = distribute_tensor(torch.arange(5), grid, [Shard(0), Shard(0)])
    highest = distribute_tensor(torch.arange(4), grid, [Partial("max"), Shard(0)])
    turned = shard(np.arange(4), mesh.sharding(("y", "x")))
    other = SimpleNamespace(rank=member.rank, num_ranks=2)
    return [
        text_of(from_dtensor, uneven, member),
        text_of(to_dtensor, shard(np.arange(5), mesh.sharding(("x", "y"))), grid),
        text_of(from_dtensor, highest, member),
        text_of(to_dtensor, turned, grid),
        text_of(to_dtensor, shard(np.arange(4), Mesh({"x": 4}).sharding("x")), grid),
        text_of(from_dtensor, uneven, other),
    ]


def test_layouts_and_values_are_kept_both_ways_without_a_message(tmp_path):
    texts = run_ranks(converted, 4, tmp_path.name, backend="gloo")
    assert all(answer is not None for answer in texts)
    uneven, uneven_array, highest, turned, alone, other = texts[0]
    expected = "dimension 0 of size 5 is sharded over the axes x, y into 4 tiles, which PyTorch and ringlet divide"
    assert expected in uneven
    assert uneven_array == uneven
    assert "the placement Partial(max): expected Shard(dim), Replicate() or Partial('sum')." in highest
    assert "an order that placements cannot express. Reshard it first" in turned
    assert "expected an array on a Mesh with member=" in alone
    assert "this process is rank 0, but member is rank 0 of 2" in other


def of_two_ranks(rank, size, name):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

    with member_of(rank, size, name) as member:
        mesh = DeviceMesh("cpu", [0, 1])
        tensor = DTensor.from_local(torch.full((2,), float(rank)), mesh, [Shard(0)]).requires_grad_()
        assert from_dtensor(tensor, member).tolist() == [0, 0, 1, 1]
        uneven = distribute_tensor(torch.arange(5), DeviceMesh("cpu", [[0], [1]]), [Shard(0), Shard(0)])
        assert from_dtensor(uneven, member).tolist() == [0, 1, 2, 3, 4]
        wrong = DTensor.from_local(torch.zeros(3), mesh, [Shard(0)], shape=(4,), stride=(1,))
        with pytest.raises(ShardingError, match=rf"rank {rank} has shape \(3,\).* pass shape= and stride="):
            from_dtensor(wrong, member)
        back_to_front = DTensor.from_local(torch.zeros(2), DeviceMesh("cpu", [1, 0]), [Shard(0)])
        with pytest.raises(ShardingError, match="an axis along which the ranks do not ascend"):
            from_dtensor(back_to_front, member)
        # Terms that are more than summed.
        table = distribute_tensor(torch.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
        rows = torch.nn.functional.embedding(distribute_tensor(torch.tensor([0, 3]), mesh, [Replicate()]), table)
        with pytest.raises(ShardingError, match=r"MaskPartial.*: expected Shard\(dim\), Replicate\(\) or Partial"):
            from_dtensor(rows, member)
        return True


def test_grads_sizes_of_one_and_what_is_refused(tmp_path):
    assert run_ranks(of_two_ranks, 2, tmp_path.name) == [True, True]
