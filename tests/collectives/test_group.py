"""Groups: results of every kind of input, collectives, arguments."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import _core
from ringlet.collectives import Group, Member, Op, all_reduce_buffers
from ringlet.errors import (
    CollectiveMismatchError,
    InvalidArgumentError,
)
from ringlet.testing import reduce_in_tree_order, run_on_ranks
from tests.collectives.contract import outcomes_of

# --- results ----------------------------------------------------------------------------------------------------------


def test_ranks_have_their_own_array_objects_on_one_buffer() -> None:
    first, second = run_on_ranks(2, lambda member: member.all_reduce(np.ones(5000)))
    assert first is not second
    assert np.shares_memory(first, second)


@pytest.mark.parametrize("count", [3, 5000])
def test_numpy_refuses_to_write_to_a_result(count: int) -> None:
    result = run_on_ranks(2, lambda member: member.all_reduce(np.ones(count)))[0]
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 3
    with pytest.raises(ValueError, match="WRITEABLE"):
        result.flags.writeable = True
    with pytest.raises(ValueError, match="read-only"):
        result += 1


def test_result_memory_is_reused_once_the_last_view_dies() -> None:
    def step(member: Member) -> int:
        view = member.all_reduce(np.ones(50_000))[10:20]
        return int(view.ctypes.data)

    group = Group(1)
    member = group.member(0)
    assert step(member) == step(member)


def test_a_view_keeps_its_memory_after_group_and_result_are_gone() -> None:
    view = run_on_ranks(2, lambda member: member.all_reduce(np.full(50_000, member.rank + 1.0)))[0][100:200]
    gc.collect()
    run_on_ranks(2, lambda member: member.all_reduce(np.zeros(50_000)))
    assert view.tolist() == [3.0] * 100


def test_inputs_are_left_as_they_are() -> None:
    inputs = [np.arange(5000.0), np.arange(5000.0)]
    run_on_ranks(2, lambda member: member.all_reduce(inputs[member.rank]))
    np.testing.assert_array_equal(inputs[0], np.arange(5000.0))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3, 4), (1,) * 20])
def test_any_shape_is_kept(shape: tuple[int, ...]) -> None:
    result = run_on_ranks(3, lambda member: member.all_reduce(np.full(shape, member.rank + 1.0)))[1]
    assert result.shape == shape
    assert (result == 6.0).all()


LAYOUTS: dict[str, Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]] = {
    "transposed": np.asfortranarray,
    "strided": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "reversed": lambda x: x[::-1][::-1, :][::-1],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape),
    "misaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape),
    "masked base class": lambda x: np.ma.MaskedArray(x).data,
    "memoryview": memoryview,  # type: ignore[dict-item]
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_any_layout_gives_the_same_bits(layout: str) -> None:
    plain = [np.random.default_rng(rank).standard_normal((41, 67)) for rank in range(2)]
    expected = reduce_in_tree_order([np.array(LAYOUTS[layout](x)) for x in plain]).astype("float64")
    result = run_on_ranks(2, lambda member: member.all_reduce(LAYOUTS[layout](plain[member.rank])))[0]
    assert result.tobytes() == expected.tobytes()
    assert result.dtype.isnative


def test_scalars_and_lists_follow_numpy() -> None:
    assert run_on_ranks(2, lambda member: member.all_reduce(1.5))[0] == 3.0
    assert run_on_ranks(2, lambda member: member.all_reduce([member.rank, 2]))[0].tolist() == [1, 4]


def test_an_exporter_of_dlpack_is_taken() -> None:
    class Exporter:
        def __init__(self, array: np.ndarray[Any, Any]) -> None:
            self.array = array

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    assert run_on_ranks(2, lambda member: member.all_reduce(Exporter(np.arange(3.0))))[0].tolist() == [0, 2, 4]


@pytest.mark.parametrize(
    "value",
    [np.array([object()]), np.array(["a"]), np.array([True]), np.ones(2, "f2"), np.ones(2, "c8"), None, "x"],
)
def test_other_dtypes_are_refused_with_the_ones_that_are_taken(value: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"collectives take float32, float64, int32 and int64"):
        run_on_ranks(2, lambda member: member.all_reduce(value))


# --- many arrays in one pass ------------------------------------------------------------------------------------------


@given(
    shapes=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 90)), max_size=8),
    num_ranks=st.integers(1, 4),
    op=st.sampled_from(Op),
    into_outs=st.booleans(),
)
def test_many_arrays_are_reduced_as_one_by_one(
    shapes: list[tuple[int, int]], num_ranks: int, op: Op, into_outs: bool
) -> None:
    dtypes = ("float32", "int64", "float64", "int32")
    random = np.random.default_rng(0)
    inputs = [
        [random.integers(-9, 9, shape).astype(dtypes[i % 4]) for i, shape in enumerate(shapes)]
        for _ in range(num_ranks)
    ]
    expected = [reduce_in_tree_order([rank[i] for rank in inputs], op) for i in range(len(shapes))]

    def step(member: Member) -> list[Any]:
        outs = [np.empty(e.shape, e.dtype) for e in expected] if into_outs else None
        return member.all_reduce_many(inputs[member.rank], op, outs=outs)

    for results in run_on_ranks(num_ranks, step):
        assert [r.tobytes() for r in results] == [e.tobytes() for e in expected]
        assert [r.dtype for r in results] == [e.dtype for e in expected]


# --- broadcast and barrier --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 3, 5000, 600_000])
@pytest.mark.parametrize("root", [0, 2])
def test_every_rank_receives_the_array_of_the_root(count: int, root: int) -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        return member.broadcast(np.arange(count) * 3 if member.rank == root else None, root)

    for result in run_on_ranks(3, step):
        np.testing.assert_array_equal(result, np.arange(count) * 3)
        assert not result.flags.writeable


def test_broadcast_fills_outputs_and_changes_nothing_at_the_root() -> None:
    buffers = [np.full((50, 60), rank) for rank in range(3)]
    run_on_ranks(3, lambda member: member.broadcast(root=1, out=buffers[member.rank]))
    assert all((buffer == 1).all() for buffer in buffers)


def test_a_receiver_that_expects_another_shape_is_a_mismatch() -> None:
    outcomes = outcomes_of(2, lambda member: member.broadcast(np.ones(3 + member.rank), 0))
    assert all(isinstance(outcome, CollectiveMismatchError) for outcome in outcomes)


def test_a_root_that_does_not_exist_or_sends_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank 2 is not in this group: its ranks are 0 to 1"):
        Group(2).member(0).broadcast(np.ones(2), 2)
    with pytest.raises(InvalidArgumentError, match="the root of a broadcast must pass"):
        Group(2).member(0).broadcast(None, 0)


def test_nobody_passes_a_barrier_before_all_have_come() -> None:
    arrived: list[int] = []

    def step(member: Member) -> int:
        arrived.append(member.rank)
        member.barrier("here")
        return len(arrived)

    assert run_on_ranks(5, step) == [5] * 5


@pytest.mark.parametrize("num_ranks", [0, -1, 5000, 2.0, None])
def test_impossible_sizes_are_refused(num_ranks: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ranks"):
        Group(num_ranks)


@pytest.mark.parametrize("rank", [1.0, "0", None, 2**70, -1, 2])
def test_a_rank_that_does_not_exist_is_refused(rank: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"rank .*(expected a whole number|is not in this group)"):
        Group(2).member(rank)


def test_a_member_keeps_its_group_alive() -> None:
    member = Group(1).member(0)
    gc.collect()
    assert member.all_reduce(2.0) == 2.0


def test_an_operation_or_algorithm_of_another_kind_is_refused() -> None:
    member = Group(1).member(0)
    with pytest.raises(InvalidArgumentError, match=r"op is 'SUM': expected one of ringlet.collectives.Op.SUM, Op.MEAN"):
        member.all_reduce(1.0, "SUM")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match=r"algorithm is 1: expected one of .*Algorithm.RING"):
        member.all_reduce(1.0, algorithm=1)  # type: ignore[arg-type]
    assert member.all_reduce(2.0) == 2.0


def test_a_thousand_groups_leave_no_memory_behind() -> None:
    gc.collect()
    before = _core.pool_statistics()["live_blocks"]
    for _ in range(1000):
        Group(1).member(0).all_reduce(np.ones(3000))
    assert _core.pool_statistics()["live_blocks"] == before


# --- one controller ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 8, 11])
@pytest.mark.parametrize("op", list(Op))
def test_one_thread_with_all_buffers_gets_the_bits_of_the_group(num_ranks: int, op: Op) -> None:
    inputs = [np.random.default_rng(rank).standard_normal((100, 333)).astype("float32") for rank in range(num_ranks)]
    expected = run_on_ranks(num_ranks, lambda member: member.all_reduce(inputs[member.rank], op))[0]
    assert all_reduce_buffers(inputs, op).tobytes() == expected.tobytes()
    out = inputs[0].copy()
    assert all_reduce_buffers([out, *inputs[1:]], op, out=out) is out
    assert out.tobytes() == expected.tobytes()


def test_buffers_that_differ_or_are_missing_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"float64\[2\] at rank 0, float64\[3\] at rank 1"):
        all_reduce_buffers([np.ones(2), np.ones(3)])
    with pytest.raises(InvalidArgumentError, match="there is nothing to reduce"):
        all_reduce_buffers([])
