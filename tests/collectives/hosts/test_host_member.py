"""Collectives over hosts give the results of one host, bit for bit where the placement allows it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.collectives.hosts import host_calls, host_reductions
from ringlet.testing import run_on_ranks
from tests.collectives.hosts.fake_hosts import Network, run_on_hosts

DTYPES = ["float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "complex64", "int8", "int64"]
PLACEMENTS = ([2, 2], [1, 1, 1, 1], [2, 1], [4, 2], [3])


@pytest.fixture
def short_messages(monkeypatch):
    """Messages between two hosts so short that arrays of some 100 KiB have several pieces."""
    monkeypatch.setattr(host_calls, "_INLINE_BYTES_OF_TWO", 64 << 10)
    monkeypatch.setattr(host_reductions, "_DATA_BYTES", 128 << 10)


def check_equal(shape, step):
    expected = run_on_ranks(sum(shape), step)
    found = run_on_hosts(shape, step)
    for rank, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert type(one) is type(other), f"rank {rank}: {one!r}"
        for mine, true in zip(*((x if isinstance(x, list) else [x]) for x in (one, other)), strict=True):
            if true is not None:
                assert mine.dtype == true.dtype
                assert mine.shape == true.shape
                assert mine.tobytes() == true.tobytes(), f"rank {rank}"


def values(member, dtype, shape=(1000,)):
    rng = np.random.default_rng(member.rank)
    if np.dtype(dtype) == bool:
        return rng.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype)
    numbers = rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 2, shape)
    if np.dtype(dtype).kind == "c":
        numbers = numbers + 1j * rng.standard_normal(shape)
    return numbers.astype(dtype)


@pytest.mark.parametrize("shape", PLACEMENTS, ids=str)
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, "complex64", "int8", "int64"]
)
@pytest.mark.parametrize("op", [Op.SUM, Op.MEAN, Op.PROD])
def test_an_all_reduce_has_the_bits_of_one_host(shape, dtype, op):
    check_equal(shape, lambda member: member.all_reduce(values(member, dtype), op))


@pytest.mark.parametrize(
    ("dtype", "op"), [("bool", Op.XOR), ("float16", Op.MAX), ("float64", Op.MIN), ("uint8", Op.AND)]
)
def test_the_other_operations_have_the_bits_of_one_host(dtype, op):
    check_equal([2, 2], lambda member: member.all_reduce(values(member, dtype), op))


@pytest.mark.parametrize(
    ("dtype", "op"),
    [("float32", Op.SUM), ("float16", Op.SUM), (ml_dtypes.bfloat16, Op.PROD), ("int8", Op.SUM), ("bool", Op.AND)],
)
def test_an_exclusive_scan_has_the_bits_of_one_host(dtype, op):
    check_equal([2, 1, 2], lambda member: member.exclusive_scan(values(member, dtype), op))


def test_an_exclusive_scan_may_overwrite_its_input():
    def step(member):
        x = values(member, "float32")
        assert member.exclusive_scan(x, Op.MIN, out=x) is x
        return x

    check_equal([2, 2], step)


@pytest.mark.usefixtures("short_messages")
@pytest.mark.parametrize("size", [5, (3, 4), (), 100_000])
def test_one_rank_may_pass_a_view_of_its_input_as_the_output(size):
    def step(member):
        x, y = values(member, "float32", size), np.empty(size, np.float32)
        out = x[...] if member.rank == 1 else y
        return member.all_reduce(x, out=out).copy()

    check_equal([2, 2], step)
    check_equal([1, 1], step)


@pytest.mark.parametrize("size", [0, 1, 3, 4097, 300_001, 2_000_000])
@pytest.mark.parametrize("shape", PLACEMENTS[:2], ids=str)
def test_every_size_has_the_bits_of_one_host(shape, size):
    check_equal(shape, lambda member: member.all_reduce(values(member, "float32", size)))


@pytest.mark.usefixtures("short_messages")
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "complex128"])
def test_a_large_mean_has_the_bits_of_one_host_for_every_size_of_its_elements(dtype):
    check_equal([2, 2], lambda member: member.all_reduce(values(member, dtype, 700_001), Op.MEAN))


@pytest.mark.parametrize("size", [5, 200_000, 3_000_000])
def test_an_output_may_be_the_input(size):
    def step(member):
        x = values(member, "float32", size)
        assert member.all_reduce(x, Op.MEAN, out=x) is x
        return x

    check_equal([2, 2], step)


def test_a_piece_is_not_overwritten_before_it_has_been_sent():
    def step(member):
        x = np.arange(3_000_000, dtype=np.float32)
        return member.all_reduce(x, out=x)

    for found in run_on_hosts([1, 1], step, network=Network(2, reads_late=True)):
        np.testing.assert_array_equal(found, 2 * np.arange(3_000_000, dtype=np.float32))


@pytest.mark.usefixtures("short_messages")
def test_many_arrays_of_several_dtypes_are_reduced_in_one_call():
    def step(member):
        arrays = [
            values(member, dtype, n)
            for dtype, n in [("float32", 3), ("float16", 90_000), ("float32", 70_000), ("int8", 1)]
        ]
        return member.all_reduce_many(arrays, Op.MEAN)

    check_equal([2, 2], step)


def test_the_prepared_messages_of_small_calls_are_freed_at_the_end():
    def step(member):
        for size in (2, 3, 2):
            assert member.all_reduce(np.ones(size)).tolist() == [2.0] * size
        member.close()

    network = Network(2)
    assert run_on_hosts([1, 1], step, network=network) == [None, None]
    assert [request.is_free for request in network.prepared] == [True] * 8  # of 2 sizes: to and from, on each host


def test_a_plan_reads_its_input_again():
    def step(member):
        x = np.zeros(3)
        plan = member.plan_all_reduce(x)
        x += member.rank
        return [plan(), plan()]

    check_equal([2, 1], step)


@pytest.mark.parametrize("root", range(4))
@pytest.mark.parametrize("size", [7, 400_000])
def test_rooted_collectives(root, size):
    def step(member):
        x = values(member, "float32", size)
        rows = np.arange(size * 4, dtype=np.int32).reshape(4, size) if member.rank == root else None
        return [
            member.reduce(x, Op.SUM, root),
            member.broadcast(x if member.rank == root else None, root),
            member.gather(x[: member.rank + 2], root),
            member.scatter(rows, root),
        ]

    check_equal([2, 2], step)


@pytest.mark.parametrize("root", range(4))
def test_rooted_data_movement_with_unequal_hosts(root):
    def step(member):
        x = values(member, "float16", 5)
        return [member.broadcast(x if member.rank == root else None, root), member.gather(x, root)]

    check_equal([1, 3], step)


@pytest.mark.parametrize("shape", PLACEMENTS, ids=str)
def test_data_movement(shape):
    def step(member):
        n = member.num_ranks
        x = values(member, ml_dtypes.bfloat16, (n, 3))
        counts = [(member.rank + target) % 3 for target in range(n)]
        ragged = np.arange(sum(counts) * 2, dtype=np.int16).reshape(-1, 2) + 100 * member.rank
        return [
            member.all_gather(x),
            member.all_gather(x[:, : member.rank + 1], axis=1),
            member.all_to_all(x),
            member.all_to_all(ragged, counts=counts),
            member.collective_permute(x, [(r, (r + 1) % n) for r in range(n - 1)]),
            member.reduce_scatter(values(member, "float32", (n * 2, 3)), Op.MEAN),
            member.scatter(None if member.rank else np.arange(n), 0),
        ]

    check_equal(shape, step)


@pytest.mark.parametrize("root", [0, 3])
def test_many_arrays_are_broadcast_in_one_call(root):
    def step(member):
        arrays = [np.full(number % 5, number, np.float32) for number in range(500)]
        return member.broadcast_many(arrays if member.rank == root else None, root)

    check_equal([2, 2], step)


def test_large_arrays_move_in_pieces():
    def step(member):
        x = values(member, "float64", 300_000)
        return [member.all_gather(x), member.all_to_all(x), member.reduce_scatter(x)]

    check_equal([2, 2], step)


def test_asynchronous_calls_run_in_order():
    def step(member):
        works = [member.all_reduce_async(np.full(n, member.rank + n, np.float32)) for n in (3, 500_000, 7)]
        last = member.all_gather(np.float64([member.rank]))
        return [*(work.wait() for work in works), last]

    check_equal([2, 2], step)


def test_calls_follow_each_other_in_any_order():
    def step(member):
        found = []
        for number in range(20):
            x = np.full(number * 3000, member.rank + number, np.float32)
            found.append(member.all_reduce(x))
            member.barrier(f"step {number}")
            found.append(member.all_gather(x[:number]))
        member.close()
        return found

    check_equal([2, 2], step)
