"""Asynchronous collectives: results, order among blocking calls, errors, and groups that close or fail meanwhile."""

from __future__ import annotations

import gc
import inspect
import time
import weakref

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op, Work
from ringlet.errors import (
    CollectiveAborted,
    CollectiveMismatchError,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from ringlet.testing import run_on_ranks
from tests.collectives.contract import CALLS, outcomes_of

ASYNCHRONOUS = sorted(name for name in dir(Member) if name.endswith("_async") and not name.startswith(("send", "recv")))
ARGUMENTS = {
    "all_reduce": lambda rank: (np.arange(4) + rank, Op.MAX),
    "all_reduce_many": lambda rank: ([np.arange(4) + rank, 2.0],),
    "reduce": lambda rank: (np.arange(4) + rank, Op.MAX, 1),
    "exclusive_scan": lambda rank: (np.arange(4) + rank,),
    "gather": lambda rank: (np.arange(2) + rank, 1),
    "collective_permute": lambda rank: (np.arange(2) + rank, [(0, 1), (1, 0)]),
    "scatter": lambda rank: (None if rank else np.arange(4), 0),
    "broadcast_many": lambda rank: (None if rank else [np.arange(4), 2.0],),
    "reduce_scatter": lambda rank: (np.arange(4) + rank,),
    "all_gather": lambda rank: (np.arange(2) + rank,),
    "all_to_all": lambda rank: (np.arange(4) + rank,),
    "broadcast": lambda rank: (None if rank else np.arange(4), 0),
    "barrier": lambda rank: ("epoch",),
}


def test_every_collective_has_an_asynchronous_form():
    calls = {name.partition(" ")[0] for name in CALLS} - {"split", "plan"}
    assert {name.removesuffix("_async") for name in ASYNCHRONOUS} == calls


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_the_result_is_that_of_the_blocking_call(name):
    blocking = name.removesuffix("_async")

    def step(member):
        work = getattr(member, name)(*ARGUMENTS[blocking](member.rank))
        assert isinstance(work, Work)
        expected = getattr(member, blocking)(*ARGUMENTS[blocking](member.rank))
        assert work.is_done()  # calls run in order
        found = work.wait()
        return [found, work.wait()], [expected, expected]

    for found, expected in run_on_ranks(2, step):
        assert str(found) == str(expected)


@pytest.mark.parametrize("name", ASYNCHRONOUS)
def test_help_shows_the_parameters_of_the_blocking_call(name):
    start, call = getattr(Member, name), getattr(Member, name.removesuffix("_async"))
    assert start.__name__ == name
    assert call.__name__ in start.__doc__
    assert inspect.signature(start).parameters == inspect.signature(call).parameters
    assert inspect.signature(start).return_annotation == f"Work[{inspect.signature(call).return_annotation}]"


def test_blocking_calls_plans_and_splits_wait_for_asynchronous_ones():
    def step(member):
        x = np.zeros(1000)
        plan = member.plan_all_reduce(np.ones(1000))
        works, blocking = [], []
        for number in range(30):
            works.append(member.all_reduce_async(np.full(1000, float(number))))
            works.append(member.barrier_async(f"number {number}"))
            if number % 3 == 0:
                blocking.append(plan()[0])
            if number % 3 == 1:
                blocking.append(member.all_reduce(x + number)[0])
            if number == 20:
                member.split(0).barrier()
        return [work.wait()[0] for work in works[::2]], blocking

    for sums, blocking in run_on_ranks(3, step):
        assert sums == [3.0 * number for number in range(30)]
        assert blocking == [value for number in range(0, 30, 3) for value in (3.0, 3.0 * (number + 1))]


def test_calls_with_several_steps_do_not_interleave():
    def step(member):
        works = [member.reduce_scatter_async(np.ones((3, 4)) * number, axis=1) for number in range(20)]
        last = member.reduce_scatter(np.ones((3, 4)), axis=1)
        return [work.wait()[0, 0] for work in works], last[0, 0]

    assert run_on_ranks(2, step) == [([2.0 * number for number in range(20)], 2.0)] * 2


def test_the_program_runs_while_a_call_waits():
    group = Group(2, timeout_seconds=20)
    x = np.ones(3)
    work = group.member(0).all_reduce_async(x, out=x)
    assert not work.is_done()
    assert "all_reduce, running" in repr(work)
    group.member(1).all_reduce(x.copy(), out=np.empty(3))
    assert work.wait(20) is x
    assert x.tolist() == [2, 2, 2]
    assert "all_reduce, done" in repr(work)


def test_a_wait_that_is_over_leaves_the_call_running():
    group = Group(2, timeout_seconds=20)
    work = group.member(0).all_reduce_async([1])
    for _ in range(2):
        with pytest.raises(DeadlineExceededError, match=r"all_reduce did not complete within 0\.01 s, and continues"):
            work.wait(0.01)
    group.member(1).all_reduce([2])
    assert work.wait(0) == [3]  # 0: no limit
    with pytest.raises(ValueError, match="timeout_seconds is -1"):
        work.wait(-1)


def test_errors_of_a_call_are_raised_by_wait():
    def step(member):
        wrong = member.all_reduce_async(np.ones(2), "sum")
        with pytest.raises(InvalidArgumentError, match="op is 'sum'"):
            wrong.wait()
        assert wrong.is_done()
        assert member.all_reduce([1])[0] == 2  # the group is usable
        works = [member.all_reduce_async(np.ones(2 + member.rank)), member.barrier_async()]
        for work in works:
            work.wait()

    for error in outcomes_of(2, step):
        assert isinstance(error, CollectiveMismatchError)
        assert "float64[2]" in str(error)
        assert "float64[3]" in str(error)


def test_calls_after_a_failure_raise_its_cause():
    group = Group(2, timeout_seconds=20)
    works = [group.member(0).barrier_async(), group.member(0).all_reduce_async([1])]
    group.abort("rank 1 raised KeyError")
    for work in works:
        with pytest.raises(CollectiveAborted, match="rank 1 raised KeyError"):
            work.wait()


def test_a_time_out_of_the_group_names_the_missing_rank():
    work = Group(2, timeout_seconds=0.05).member(0).barrier_async("epoch 3")
    with pytest.raises(
        DeadlineExceededError, match=r"barrier\('epoch 3'\), call 1 of rank 0, waited 0.05 s for rank 1"
    ):
        work.wait()


def test_closing_with_calls_that_are_not_done_is_an_error_that_names_them():
    group = Group(2, timeout_seconds=20)
    member = group.member(0)
    running, queued = member.all_reduce_async([1]), member.barrier_async()
    time.sleep(0.2)  # it has begun
    with pytest.raises(FailedPreconditionError, match=r"rank 0 closed its group while .*: all_reduce, barrier\. Call"):
        member.close()
    with pytest.raises(FailedPreconditionError, match="closed its group before its barrier began"):
        queued.wait()
    assert group.member(1).all_reduce([2]) == [3]  # the call that had begun is completed
    assert running.wait() == [3]
    with pytest.raises(FailedPreconditionError, match="has closed its group"):
        member.all_reduce_async([1]).wait()
    member.close()


def test_a_with_block_that_raises_keeps_its_error():
    def block(error):
        with Group(2).member(0) as member:
            member.barrier_async()
            if error is not None:
                raise error

    with pytest.raises(KeyError, match="weights"):
        block(KeyError("weights"))
    with pytest.raises(FailedPreconditionError, match="while asynchronous calls ran: barrier"):
        block(None)


def test_closing_a_group_closes_the_parts_that_it_was_split_into():
    def step(member):
        part = member.split(0 if member.rank else 1)
        part.all_reduce_async([1]).wait()
        part.all_reduce_async([1])
        member.barrier_async().wait()
        member.close()

    assert [outcome for outcome in outcomes_of(2, step) if not isinstance(outcome, FailedPreconditionError)] in (
        [],
        [None],
        [None, None],
    )  # the last call of a part with one rank may be done


@pytest.mark.parametrize("is_closed", [True, False])
def test_the_thread_of_a_member_ends_with_it(is_closed):
    member = Group(1).member(0)
    assert member.all_reduce_async([1.0]).wait() == [1.0]
    thread = member._queue._thread
    assert thread.is_alive()
    if is_closed:
        member.close()
    else:
        del member
        gc.collect()
    thread.join(10)
    assert not thread.is_alive()


def test_arrays_of_calls_that_are_done_are_released():
    member = Group(1).member(0)
    x = np.ones(10)
    done = weakref.ref(x)
    work = member.all_reduce_async(x)
    work.wait()
    del x
    member.barrier()
    time.sleep(0.05)
    assert done() is None
