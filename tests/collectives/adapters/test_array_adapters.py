"""Arrays of other libraries go into every collective and come back as their kind."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op, all_reduce_buffers
from ringlet.collectives.adapters.array_adapters import (
    common_kind,
    in_kind_of,
    in_memory,
    kind_of,
    own_copy,
    register_kind,
    result_memory,
)
from ringlet.errors import InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.kinds import Frozen, Written, WrittenKind

KINDS = [Written, Frozen]

# What is called: the call, and what NumPy's arrays of two ranks, [0 1 2 3] and [10 11 12 13], give on rank 0.
CALLS: dict[str, tuple[Callable[[Member, Any], Any], list[Any]]] = {
    "all_reduce": (lambda member, x: member.all_reduce(x), [10, 12, 14, 16]),
    "all_reduce_many": (lambda member, x: member.all_reduce_many([x])[0], [10, 12, 14, 16]),
    "passes": (lambda member, x: member.all_reduce_many([x, x], bytes_per_pack=8)[1], [10, 12, 14, 16]),
    "mean": (lambda member, x: member.all_reduce(x, Op.MEAN), [5.0, 6.0, 7.0, 8.0]),
    "plan": (lambda member, x: member.plan_all_reduce(x)(), [10, 12, 14, 16]),
    "reduce": (lambda member, x: member.reduce(x), [10, 12, 14, 16]),
    "reduce_scatter": (lambda member, x: member.reduce_scatter(x), [10, 12]),
    "exclusive_scan": (lambda member, x: member.exclusive_scan(x), [0, 0, 0, 0]),
    "all_gather": (lambda member, x: member.all_gather(x), [0, 1, 2, 3, 10, 11, 12, 13]),
    "gather": (lambda member, x: member.gather(x), [0, 1, 2, 3, 10, 11, 12, 13]),
    "scatter": (lambda member, x: member.scatter(x if member.rank == 0 else None), [0, 1]),
    "broadcast": (lambda member, x: member.broadcast(x), [0, 1, 2, 3]),
    "broadcast_many": (lambda member, x: member.broadcast_many([x], bytes_per_pack=4)[0], [0, 1, 2, 3]),
    "all_to_all": (lambda member, x: member.all_to_all(x), [0, 1, 10, 11]),
    "collective_permute": (lambda member, x: member.collective_permute(x, [(0, 1), (1, 0)]), [10, 11, 12, 13]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_a_result_is_of_the_kind_of_what_was_given(name: str, kind: type[Written]) -> None:
    call, expected = CALLS[name]
    result = run_on_ranks(2, lambda member: call(member, kind(10 * member.rank + np.arange(4))))[0]
    assert type(result) is kind
    assert result.array.tolist() == expected


@pytest.mark.parametrize("name", CALLS)
def test_what_may_be_written_to_has_memory_of_its_own(name: str) -> None:
    call = CALLS[name][0]

    def step(member: Member) -> Any:
        x = Written(10 * member.rank + np.arange(4))
        results = [call(member, x) for _ in range(2)]
        return [result.array for result in results if isinstance(result, Written)]

    arrays = [array for rank in run_on_ranks(2, step) for array in rank]
    before = [array.tolist() for array in arrays]
    for number, array in enumerate(arrays):
        np.add(array, number + 1, out=array)
    assert [array.tolist() for array in arrays] == [
        [value + number + 1 for value in values] for number, values in enumerate(before)
    ]


def test_replicas_share_the_memory_of_what_nobody_writes_to() -> None:
    # Few bytes travel in the slots of the ranks, and have no memory to share.
    first, second = run_on_ranks(2, lambda member: member.all_reduce(Frozen(np.ones(100_000))))
    assert np.shares_memory(first.array, second.array)
    assert first is not second


def test_one_call_may_bring_arrays_of_several_kinds() -> None:
    def step(member: Member) -> Any:
        return member.all_reduce_many([np.ones(2), Written([1, 2]), 3.0, Frozen([5])])

    plain, written, number, frozen = run_on_ranks(2, step)[0]
    assert (type(plain), type(written), type(number), type(frozen)) == (np.ndarray, Written, np.ndarray, Frozen)
    assert not plain.flags.writeable
    assert [plain.tolist(), written.array.tolist(), number.tolist(), frozen.array.tolist()] == [[2, 2], [2, 4], 6, [10]]


@pytest.mark.parametrize("out", [Written(np.zeros(4)), Written(np.zeros(8)[::2]), Written(np.zeros(4, ">f8"))])
def test_an_output_of_another_kind_is_filled_and_given_back(out: Written) -> None:
    member = Group(1).member(0)
    x = np.arange(4.0)
    assert member.all_reduce(x, out=out) is out  # type: ignore[arg-type, comparison-overlap]
    assert out.array.tolist() == [0, 1, 2, 3]
    out.array[...] = 0
    plan = member.plan_all_reduce(x, out=out)  # type: ignore[arg-type]
    assert plan() is out  # type: ignore[comparison-overlap]
    assert out.array.tolist() == [0, 1, 2, 3]


def test_an_output_that_cannot_be_written_to_is_refused_with_its_kind() -> None:
    with pytest.raises(InvalidArgumentError, match=r"out is a other\.Frozen, which is immutable"):
        Group(1).member(0).all_reduce(np.ones(2), out=Frozen(np.ones(2)))  # type: ignore[arg-type]


def test_a_plan_follows_the_values_of_its_array() -> None:
    x = Written(np.zeros(2))
    plan = Group(1).member(0).plan_all_reduce(x)
    first: Any = plan()
    x.array += 1
    second: Any = plan()
    assert (first.array.tolist(), second.array.tolist()) == ([0, 0], [1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_one_thread_may_combine_the_arrays_of_all_ranks(kind: type[Written]) -> None:
    arrays = [kind(np.arange(3)), kind(np.arange(3))]
    group = Group(2)
    for result in (all_reduce_buffers(arrays), group.all_reduce_all(arrays), group.plan_all_reduce_all(arrays)()):
        assert type(result) is kind
        assert result.array.tolist() == [0, 2, 4]


def test_one_thread_may_write_over_the_arrays_of_all_ranks() -> None:
    arrays = [Written(np.arange(3)), Written(np.arange(3))]
    out = Written(np.zeros(3, int))
    assert all_reduce_buffers(arrays, out=out) is out  # type: ignore[arg-type, comparison-overlap]
    Group(2).all_reduce_all(arrays, outs=arrays)  # type: ignore[arg-type]
    plan = Group(2).plan_all_reduce_all(arrays, outs=arrays)  # type: ignore[arg-type]
    assert plan() == arrays
    assert [array.array.tolist() for array in (out, *arrays)] == [[0, 2, 4], [0, 4, 8], [0, 4, 8]]


def test_arrays_of_different_libraries_are_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"rank 0 has a numpy\.ndarray, but rank 1 has an other\.Written"):
        all_reduce_buffers([np.ones(2), Written(np.ones(2))])
    with pytest.raises(InvalidArgumentError, match=r"replica 0 has an other\.Frozen, but replica 1 has an int"):
        common_kind([Frozen(1), 1])


def test_what_numpy_makes_arrays_of_has_no_kind() -> None:
    memory = (ctypes.c_double * 3)()  # whose class has no module
    assert [kind_of(value) for value in (np.ones(2), [1.0], 2, "text", memory)] == [None] * 5


def test_a_subclass_has_the_kind_of_its_base() -> None:
    class Special(Written):
        pass

    assert kind_of(Special(1)) is kind_of(Written(1))


def test_a_class_that_was_seen_may_be_registered_later() -> None:
    class Late:
        pass

    assert kind_of(Late()) is None
    kind = WrittenKind()
    register_kind(Late, kind)
    assert kind_of(Late()) is kind


def test_classes_without_end_do_not_fill_the_memory() -> None:
    from ringlet.collectives.adapters import array_adapters

    for number in range(array_adapters._MOST_KNOWN + 10):
        kind_of(type(f"Class{number}", (), {})())
    assert len(array_adapters._kinds) <= array_adapters._MOST_KNOWN + 1


def test_a_copy_is_another_object_in_other_memory() -> None:
    x = Written(np.ones(2))
    copy = own_copy(x)
    assert copy is not x
    assert not np.shares_memory(copy.array, x.array)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2", "bool", "complex64", "int8"])
def test_memory_of_a_result_is_lent_for_writing_whatever_its_dtype(dtype: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    wanted = np.dtype(getattr(ml_dtypes, dtype, dtype))
    _, readable = result_memory((2, 3), wanted)
    array = in_kind_of(Written(0), readable.T, is_own=True).array
    assert (array.dtype, array.shape) == (wanted, (3, 2))
    array[...] = 1
    assert (readable == np.ones((2, 3), wanted)).all()
    assert array.ctypes.data == readable.ctypes.data


def test_memory_that_was_lent_stays_while_it_is_used() -> None:
    from ringlet import _core

    before = _core.pool_statistics()["live_blocks"]
    memory = result_memory((1000,), np.dtype(float))
    result = in_kind_of(Written(0), memory[1], is_own=True)
    del memory
    assert _core.pool_statistics()["live_blocks"] == before + 1
    result.array[:] = 3
    del result
    assert _core.pool_statistics()["live_blocks"] == before


def test_written_memory_of_numpy_s_refuses_to_be_written_to() -> None:
    memory = result_memory((2,), np.dtype("int32"))
    memory[0][:] = 5
    result = in_memory([1, 2], memory)
    with pytest.raises(ValueError, match="WRITEABLE"):
        result.setflags(write=True)
