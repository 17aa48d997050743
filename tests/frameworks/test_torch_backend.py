"""``torch.distributed`` over the ringlet backend: every collective, dtype and layout, against plain sums."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from ringlet import _core
from ringlet.observe.recorder import copy_memory, read_process
from tests.frameworks.libraries import library
from tests.frameworks.torch_ranks import run_ranks

torch = library("torch")
dist = torch.distributed

FLOATS = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def equal(found, expected):
    assert found.shape == torch.Size(expected.shape)
    assert found.dtype == expected.dtype
    assert torch.equal(found.to(torch.complex128), expected.to(torch.complex128)), (found, expected)
    return True


def reductions(rank, size):
    op = dist.ReduceOp
    for name in (*FLOATS, *INTEGERS, "complex64", "complex128"):
        dtype = getattr(torch, name)
        x = torch.tensor([rank, 1, 2]).to(dtype)
        dist.all_reduce(x)
        equal(x, torch.tensor([sum(range(size)), size, 2 * size]).to(dtype))
        if dtype.is_complex:
            continue
        for kind, expected in (
            (op.MIN, [0, 1]),
            (op.MAX, [size - 1, 1]),
            (op.PRODUCT, [0, 1]),
            (op.AVG, [sum(range(size)) / size, 1]),
        ):
            x = torch.tensor([rank, 1]).to(dtype)
            dist.all_reduce(x, kind)
            equal(x, torch.tensor(expected).to(dtype))
    for kind, expected in ((op.BAND, 8), (op.BOR, 11), (op.BXOR, 3)):
        x = torch.tensor([9 + rank])  # 1001 and 1010
        dist.all_reduce(x, kind)
        assert x.item() == expected
    for kind, expected in ((op.SUM, True), (op.PRODUCT, False), (op.BAND, False), (op.MAX, True)):
        x = torch.tensor([rank == 0])
        dist.all_reduce(x, kind)
        equal(x, torch.tensor([expected]))
    x = torch.tensor([1.0 + rank])
    dist.all_reduce(x, dist._make_nccl_premul_sum(0.5))
    equal(x, torch.tensor([0.5 * sum(range(1, size + 1))]))
    return True


def test_all_reduce_of_every_dtype_and_operation():
    assert run_ranks(reductions, 2) == [True, True]


def layouts(rank, size):
    x = torch.arange(12.0).reshape(4, 3).t()
    dist.all_reduce(x)
    equal(x, size * torch.arange(12.0).reshape(4, 3).t())
    whole = torch.zeros(4, 6)
    dist.all_reduce(whole[:, ::2].fill_(rank))
    equal(whole[0], torch.tensor([sum(range(size)), 0.0] * 3))
    image = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    dist.all_reduce(image)
    equal(image, torch.full((2, 3, 4, 5), float(size)))
    for shape in ((0,), (0, 3), ()):
        x = torch.ones(shape)
        dist.all_reduce(x)
        equal(x, torch.full(shape, float(size)))
    parameter = torch.nn.Parameter(torch.ones(3))
    part = parameter.split(1)[0]
    before = parameter._version
    dist.all_reduce(parameter)
    dist.broadcast(parameter, 0)
    assert parameter.sum() == 3 * size
    assert parameter._version == before  # as with gloo: autograd does not see the change, and views stay valid
    assert part * 2 == 2 * size
    many = [torch.ones(3), torch.full((2, 2), 2.0)]
    with pytest.warns(FutureWarning):
        dist.all_reduce_coalesced(many)
    equal(many[1], torch.full((2, 2), 2.0 * size))
    twice = 2 * [torch.ones(2)]
    with pytest.warns(FutureWarning):
        dist.all_reduce_coalesced(twice)
    equal(twice[0], torch.full((2,), float(size)))
    with dist._coalescing_manager():
        for x in many:
            dist.all_reduce(x)
    equal(many[0], torch.full((3,), float(size * size)))
    return True


def test_all_reduce_of_every_layout_and_of_several_tensors():
    assert run_ranks(layouts, 3) == [True] * 3


def movement(rank, size):
    for name in (*FLOATS, *INTEGERS, "bool", "complex64"):
        dtype = getattr(torch, name)
        ranks = torch.arange(size).to(dtype)
        x = torch.tensor([rank, rank]).to(dtype)
        dist.broadcast(x, 1)
        equal(x, torch.tensor([1, 1]).to(dtype))
        mine = ranks[rank : rank + 1].clone()
        parts = [torch.zeros(1, dtype=dtype) for _ in range(size)]
        dist.all_gather(parts, mine)
        equal(torch.cat([part.to(torch.complex64) for part in parts]).to(torch.complex64), ranks.to(torch.complex64))
        whole = torch.zeros(size, dtype=dtype)
        dist.all_gather_single(whole, mine)
        equal(whole, ranks)
        dist.gather(mine, parts if rank == 1 else None, 1)
        dist.scatter(mine, [ranks[i : i + 1] for i in range(size)] if rank == 1 else None, 1)
        equal(mine, ranks[rank : rank + 1])
        received = torch.zeros(size, dtype=dtype)
        dist.all_to_all_single(received, torch.full((size,), rank).to(dtype))
        equal(received, ranks)
    uneven = [torch.zeros(2, number + 1) for number in range(size)]
    dist.all_gather(uneven, torch.full((2, rank + 1), float(rank)))
    equal(uneven[size - 1], torch.full((2, size), float(size - 1)))
    outputs = [torch.zeros(number) for number in range(size)]
    dist.all_to_all(outputs, [torch.full((rank,), float(rank)) for _ in range(size)])
    equal(outputs[size - 1], torch.full((size - 1,), float(size - 1)))
    received = torch.zeros(sum(range(size)), 2)
    dist.all_to_all_single(received, torch.full((rank * size, 2), float(rank)), list(range(size)), [rank] * size)
    assert received.sum() == 2 * sum(number * number for number in range(size))
    transposed = torch.zeros(3, 2 * size).t()
    dist.all_gather_single(transposed, torch.full((3, 2), float(rank)).t())
    equal(transposed[2 * size - 1], torch.full((3,), size - 1.0))
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": number} for number in range(size)]
    objects = ["a", 1] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, 0)
    assert objects == ["a", 1]
    found = [None]
    dist.scatter_object_list(found, list("abcd")[:size] if rank == 0 else None, 0)
    assert found == ["abcd"[rank]]
    return True


def test_broadcast_gathers_scatter_and_all_to_all():
    assert run_ranks(movement, 3) == [True] * 3


def without_ml_dtypes(rank, size):
    from ringlet.torch import tensors

    tensors._ML_DTYPES.clear()
    return reductions(rank, size) and movement(rank, size)


def test_bfloat16_and_float8_without_ml_dtypes():
    assert run_ranks(without_ml_dtypes, 2) == [True] * 2


def scatters(rank, size):
    output = torch.zeros(2)
    dist.reduce_scatter_single(output, torch.arange(2.0 * size))
    equal(output, size * torch.arange(2.0 * rank, 2.0 * rank + 2))
    output = torch.zeros(2, dtype=torch.bfloat16)
    dist.reduce_scatter(
        output, [torch.full((2,), float(number)).bfloat16() for number in range(size)], dist.ReduceOp.AVG
    )
    equal(output, torch.full((2,), float(rank)).bfloat16())
    output = torch.zeros(rank + 1)
    dist.reduce_scatter(output, [torch.full((number + 1,), 1.0) for number in range(size)])
    equal(output, torch.full((rank + 1,), float(size)))
    output = torch.zeros(3, 2).t()
    dist.reduce_scatter_single(output, torch.ones(2 * size, 3))
    equal(output, torch.full((2, 3), float(size)))
    x = torch.full((2, 2), rank + 1.0)
    dist.reduce(x, 1)
    equal(x, torch.full((2, 2), float(sum(range(1, size + 1))) if rank == 1 else rank + 1.0))
    with dist._coalescing_manager():
        blocks = [torch.zeros(1), torch.zeros(2)]
        for block in blocks:
            dist.reduce_scatter_single(block, torch.ones(len(block) * size))
    equal(blocks[1], torch.full((2,), float(size)))
    with dist._coalescing_manager(async_ops=True) as works:
        wholes = [torch.zeros(size), torch.zeros(2 * size)]
        for number, whole in enumerate(wholes, 1):
            dist.all_gather_single(whole, torch.full((number,), float(rank)))
    works.wait()
    equal(wholes[0], torch.arange(float(size)))
    return True


def test_reduce_and_reduce_scatter():
    assert run_ranks(scatters, 3) == [True] * 3


def sparse_sums(rank, size):
    dense = torch.zeros(5, 2).index_fill(0, torch.tensor([rank, rank + 1]), rank + 1.0)
    expected = torch.tensor([[1.0], [3.0], [5.0], [3.0], [0.0]]).expand(5, 2)
    for dtype in ("float32", "float64", "bfloat16", "int64"):
        for dimensions in (1, 2):
            x = dense.to(getattr(torch, dtype)).to_sparse(dimensions)
            dist.all_reduce(x)
            equal(x.to_dense(), expected.to(x.dtype))
    nothing = torch.sparse_coo_tensor(size=(3,))
    assert dist.all_reduce(nothing, async_op=True).wait()
    assert nothing.to_dense().tolist() == [0, 0, 0]
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(5, 2, sparse=True))
    model(torch.tensor([rank, rank + 1])).sum().backward()
    equal(model.module.weight.grad.to_dense(), torch.tensor([1.0, 2, 2, 1, 0])[:, None].expand(5, 2) / size)
    return True


def test_sums_of_sparse_tensors_and_of_sparse_gradients():
    assert run_ranks(sparse_sums, 3) == [True] * 3


def asynchronous(rank, size):
    x, y = torch.ones(1000), torch.ones(3)
    works = [dist.all_reduce(x, async_op=True) for _ in range(10)]
    after = works[-1].get_future().then(lambda future: future.value()[0][0].item())
    dist.all_reduce(y)  # after those before it
    assert all(work.is_completed() for work in works)
    assert x[0] == size**10
    assert works[3].wait(timedelta(seconds=5))
    assert works[3].is_success()
    assert works[3].exception() is None
    assert works[3].result()[0] is x
    assert after.wait() == size**10
    parts = [torch.zeros(1) for _ in range(size)]
    future = dist.all_gather(parts, torch.tensor([float(rank)]), async_op=True).get_future()
    assert [part.item() for part in future.wait()] == list(range(size))
    assert dist.barrier(async_op=True).wait()
    dist.barrier(timeout=timedelta(seconds=20))
    half = dist.new_group([0, 2])
    pair = dist.new_group([2, 1])
    if rank in (0, 2):
        dist.all_reduce(y, group=half)
    if rank in (1, 2):
        whole = torch.zeros(2)
        dist.all_gather_single(whole, torch.tensor([float(rank)]), group=pair)
        assert whole.tolist() == [1, 2]
    assert y[0] == (size if rank == 1 else 2 * size)
    # Groups do not wait for each other.
    first, second = (half, dist.group.WORLD) if rank == 0 else (dist.group.WORLD, half)
    works = [
        dist.all_reduce(y.clone(), group=group, async_op=True)
        for group in (first, second)
        if not (rank == 1 and group is half)
    ]
    for work in works:
        work.wait()
    return True


def test_asynchronous_operations_and_groups():
    assert run_ranks(asynchronous, 3) == [True] * 3


def places(rank, size):
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
    dist.all_reduce(torch.ones(3))
    works = [dist.all_reduce(torch.ones(4), async_op=True)]
    works.append(dist.all_reduce(torch.ones(5), async_op=True))
    for work in works:
        work.wait()
    model(torch.ones(1, 3)).sum().backward()
    operations = [op for ops in read_process(copy_memory(_core.recorder(), "self"), "self").threads for op in ops]
    return {op.text: op.place for op in operations if "all_reduce" in op.text}


def test_the_flight_recorder_has_the_lines_of_the_program_not_of_torch():
    line = places.__code__.co_firstlineno
    lines = {3: 2, 4: 3, 5: 4, 8: 7}  # by the number of elements
    for found in run_ranks(places, 2):
        assert found.keys() == {f"all_reduce(SUM, float32[{size}])" for size in lines}
        for size, number in lines.items():
            place = found[f"all_reduce(SUM, float32[{size}])"]
            assert re.fullmatch(rf"in places \(\S*test_torch_backend.py:{line + number}\)", place), place


def inference_tensors_and_lazy_outputs(rank, size):
    with torch.inference_mode():
        x, parts = torch.ones(2, 4)[:, ::2], [torch.zeros(2, 4)[:, ::2] for _ in range(size)]
        scaled, received = torch.ones(3), torch.zeros(2, 4)[:, ::2]
        works = [
            dist.all_reduce(x, async_op=True),
            dist.all_gather(parts, torch.ones(2, 2), async_op=True),
            dist.all_reduce(scaled, dist._make_nccl_premul_sum(2.0), async_op=True),
            dist.isend(torch.ones(2, 2), 1 - rank),
            dist.irecv(received, 1 - rank),
        ]
        for work in works:
            work.wait()
        equal(x, torch.full((2, 2), 2.0))
        equal(scaled, torch.full((3,), 4.0))
        for each in (*parts, received):
            equal(each, torch.ones(2, 2))
    whole = torch.tensor([1 + 2j, 3 + 4j])
    conjugate = torch.zeros(1, dtype=torch.complex64).conj()
    dist.reduce_scatter_single(conjugate, whole)
    equal(conjugate.resolve_conj(), 2 * whole[rank : rank + 1])
    negative = torch.zeros(2, dtype=torch.complex64).conj().imag[:1]
    assert negative.is_neg()
    dist.reduce_scatter_single(negative, torch.tensor([1.0, 3.0]))
    equal(negative, torch.tensor([2.0, 6.0])[rank : rank + 1])
    return True


def test_inference_tensors_and_conjugate_outputs():
    assert run_ranks(inference_tensors_and_lazy_outputs, 2) == [True, True]


def test_a_reduction_of_an_unknown_dtype_is_refused_before_the_call():
    from ringlet.torch.tensors import reduction_of

    with pytest.raises(ValueError, match=r"SUM does not support torch.complex32: convert with x.to\(torch.complex64\)"):
        reduction_of(dist.ReduceOp.SUM, torch.complex32, 2)
