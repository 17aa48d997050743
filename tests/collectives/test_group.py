"""Groups and members: results of every kind of input, arguments, life time."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest

from ringlet import _core
from ringlet.collectives import Group, Member
from ringlet.errors import InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import CALLS, LARGE

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


# --- arguments and life time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_ranks", [0, -1, 5000, 2.0, None])
def test_impossible_sizes_are_refused(num_ranks: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="ranks"):
        Group(num_ranks)


@pytest.mark.parametrize("rank", [1.0, "0", None, 2**70, -1, 2])
def test_a_rank_that_does_not_exist_is_refused(rank: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"rank .*(expected an integer|is not in this group)"):
        Group(2, timeout_seconds=10).member(rank)


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


@pytest.mark.parametrize("count", [24, LARGE])
@pytest.mark.parametrize("name", CALLS)
def test_no_collective_keeps_memory_or_arrays(name: str, count: int) -> None:
    inputs = [np.ones(count) for _ in range(3)]

    def step(member: Member) -> None:
        for _ in range(10):
            CALLS[name](member, count)
            member.broadcast(inputs[member.rank], out=np.empty(count))
            member.all_gather(inputs[member.rank])

    run_on_ranks(3, step)
    before = _core.pool_statistics()["live_blocks"], [sys.getrefcount(x) for x in inputs]
    run_on_ranks(3, step)
    assert (_core.pool_statistics()["live_blocks"], [sys.getrefcount(x) for x in inputs]) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_ranks": 2**40}, "num_ranks is 1099511627776"),
        ({"num_ranks": 1, "epoch": -1}, "epoch is -1: expected a non-negative number"),
        ({"num_ranks": 1, "epoch": 1.5}, "epoch is 1.5: expected an integer"),
        ({"num_ranks": 1, "timeout_seconds": "x"}, "timeout_seconds is 'x': expected seconds"),
    ],
)
def test_a_group_says_which_argument_is_wrong(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Group(**arguments)
