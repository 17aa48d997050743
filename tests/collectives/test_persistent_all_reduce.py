"""plan_all_reduce: arguments looked at once, runs many times."""

from __future__ import annotations

import ctypes
import gc
import itertools
from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member, Op
from ringlet.collectives.persistent_all_reduce import StagedPlan
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import (
    ALGORITHMS,
    KIND_OF,
    OPERATIONS,
    PLACES,
    Array,
    assert_same,
    cases,
    fits,
    inputs_of,
    is_possible,
    outcomes_of,
)

NUM_RUNS = 4


@pytest.mark.parametrize(("dtype", "place"), cases(("float32", "uint8", "bool", "complex128", "bfloat16"), PLACES))
@pytest.mark.parametrize("count", [0, 1, 200, 5000, 70_001])
def test_each_run_combines_what_the_arrays_hold_then(count: int, dtype: str, place: str) -> None:
    num_ranks = 3
    for number, algorithm in enumerate(Algorithm):
        op = OPERATIONS[KIND_OF[dtype]][number % len(OPERATIONS[KIND_OF[dtype]])]
        if not fits(algorithm, count, dtype) or not is_possible(op, dtype, place):
            continue
        turns = [inputs_of(num_ranks, count, dtype, seed) for seed in range(NUM_RUNS)]
        expected = [ALGORITHMS[algorithm](inputs, op) for inputs in turns]

        def step(member: Member) -> list[Array]:
            x = turns[0][member.rank].copy()  # noqa: B023
            out = {"shared": None, "in_place": x}.get(place, np.empty(x.shape, expected[0].dtype))  # noqa: B023
            plan = member.plan_all_reduce(x, op, algorithm=algorithm, out=out)  # noqa: B023
            found = []
            for inputs in turns:  # noqa: B023
                x[...] = inputs[member.rank]
                result = plan()
                assert (result is out) == (out is not None)
                found.append(result if out is None else result.copy())
            return found

        for results in run_on_ranks(num_ranks, step):
            for result, wanted in zip(results, expected, strict=True):
                assert_same(result, wanted, (op, algorithm))


LAYOUTS = {
    "strided": lambda x: np.repeat(x, 2)[::2],
    "byte-swapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
    "memoryview": lambda x: memoryview(x.copy()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("out_layout", [None, "strided", "byte-swapped"])
def test_arrays_of_any_layout_are_followed(layout: str, out_layout: str | None) -> None:
    def step(member: Member) -> list[list[float]]:
        memory = np.full(3, 1.0 + member.rank)
        x: Any = LAYOUTS[layout](memory)
        source = memory if layout == "read-only" else np.asarray(x)
        out = None if out_layout is None else LAYOUTS[out_layout](np.zeros(3))
        plan = member.plan_all_reduce(x, out=out)
        found = []
        for _ in range(NUM_RUNS):
            result = plan()
            assert (result is out) == (out is not None)
            found.append(result.tolist())
            source += 1
        return found

    for found in run_on_ranks(2, step):
        assert found == [[3.0 + 2 * turn] * 3 for turn in range(NUM_RUNS)]


def test_an_output_may_overlap_the_input() -> None:
    def step(member: Member) -> list[list[float]]:
        memory = np.arange(5.0)
        plan = member.plan_all_reduce(memory[:-1], out=memory[1:])
        assert isinstance(plan, StagedPlan)
        return [plan().tolist() for _ in range(2)]

    assert run_on_ranks(2, step) == [[[0, 2, 4, 6], [0, 0, 4, 8]]] * 2


def test_shared_results_are_read_only_and_stay_as_they_are() -> None:
    def step(member: Member) -> list[Array]:
        x = np.zeros(9000)
        plan = member.plan_all_reduce(x)
        kept = []
        for turn in range(NUM_RUNS):
            x[:] = turn
            kept.append(plan())
            assert not kept[-1].flags.writeable
        return kept

    first, second = run_on_ranks(2, step)
    for turn, (one, other) in enumerate(zip(first, second, strict=True)):
        assert (one == 2 * turn).all()
        assert np.shares_memory(one, other)


def test_a_plan_meets_the_same_call_in_another_form() -> None:
    x = np.ones(100)

    def step(member: Member) -> float:
        result = member.all_reduce(x) if member.rank else member.plan_all_reduce(x)()
        return float(result[0])

    assert run_on_ranks(2, step) == [2, 2]


def test_plans_and_calls_may_be_mixed() -> None:
    def step(member: Member) -> list[float]:
        one, other = np.ones(3), np.full(5000, 2.0)
        plans = [member.plan_all_reduce(one), member.plan_all_reduce(other, Op.MEAN)]
        found = []
        for _ in range(3):
            found += [float(plan()[0]) for plan in plans]
            member.barrier()
            found.append(float(member.all_reduce(one, Op.MAX)[0]))
        return found

    assert run_on_ranks(3, step) == [[3, 2, 1] * 3] * 3


# --- life time and failure --------------------------------------------------------------------------------------------


def test_a_plan_keeps_its_arrays_and_its_group() -> None:
    def make() -> Any:
        return Group(1).member(0).plan_all_reduce(np.arange(9000.0), out=np.zeros(9000))

    plans = [make() for _ in range(5)]
    gc.collect()
    for plan in plans:
        assert plan()[8999] == 8999


@pytest.mark.parametrize("layout", ["plain", "strided"])
def test_a_plan_of_a_failed_group_raises_its_first_cause(layout: str) -> None:
    group = Group(2)
    plan = group.member(0).plan_all_reduce(np.ones(4)[:: 1 + (layout == "strided")])
    group.abort("the end")
    del group
    gc.collect()
    for _ in range(2):
        with pytest.raises(CollectiveAborted, match="the end"):
            plan()


def test_plans_that_differ_are_a_mismatch() -> None:
    for outcome in outcomes_of(2, lambda m: m.plan_all_reduce(np.ones(3 + m.rank))()):
        assert isinstance(outcome, CollectiveMismatchError)


def test_making_a_plan_is_no_call() -> None:
    member = Group(2).member(0)
    member.plan_all_reduce(np.ones(3))
    assert member._core.calls == 0


def test_a_plan_takes_no_arguments() -> None:
    for x in (np.ones(4), np.ones(4)[::2]):
        plan: Any = Group(1).member(0).plan_all_reduce(x)
        for arguments, keywords in (((1,), {}), ((), {"x": 1})):
            with pytest.raises(TypeError):
                plan(*arguments, **keywords)


@pytest.mark.parametrize("x", [1.0, [1.0, 2.0], (1,), np.float32(3), True])
def test_what_is_no_array_cannot_be_followed(x: Any) -> None:
    with pytest.raises(
        InvalidArgumentError, match=rf"x has type {type(x).__name__}, of which a plan would only see a copy"
    ):
        Group(1).member(0).plan_all_reduce(x)


def test_an_output_or_algorithm_that_does_not_fit_is_refused() -> None:
    member = Group(1).member(0)
    with pytest.raises(InvalidArgumentError, match=r"out is float64\[4\], expected float64\[3\]"):
        member.plan_all_reduce(np.ones(3), out=np.ones(4))
    with pytest.raises(InvalidArgumentError, match="algorithm is 1"):
        member.plan_all_reduce(np.ones(3), algorithm=1)  # type: ignore[arg-type]
    for place, op in itertools.product((None, np.ones(1000)), (Op.SUM, Op.MAX)):
        with pytest.raises(InvalidArgumentError, match="SMALL carries at most"):
            member.plan_all_reduce(np.ones(1000), op, algorithm=Algorithm.SMALL, out=place)()


def test_a_plan_refuses_to_run_on_memory_that_was_replaced_or_made_read_only() -> None:
    member = Group(1).member(0)
    x = np.ones(1 << 16)
    plan = member.plan_all_reduce(x)
    x.resize(10, refcheck=False)
    with pytest.raises(InvalidArgumentError, match=r"memory of an array of a plan was replaced.*make a new plan"):
        plan()
    out = np.ones(4)
    into_out = member.plan_all_reduce(np.ones(4), out=out)
    buffers = [np.ones(4), np.ones(4)]
    of_all = Group(2).plan_all_reduce_all(buffers, outs=[out, np.ones(4)])
    out.flags.writeable = False
    for call in (into_out, of_all):
        with pytest.raises(InvalidArgumentError, match="made read-only"):
            call()


def test_a_plan_leaves_a_read_only_input_with_a_written_byte_order_alone() -> None:
    x = np.asarray((ctypes.c_float * 4)(1, 2, 3, 4))
    x.flags.writeable = False
    np.testing.assert_array_equal(Group(1).member(0).plan_all_reduce(x)(), [1, 2, 3, 4])


def test_a_plan_refuses_what_gives_other_memory_each_time() -> None:
    class Counter:
        number = 0

        def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
            self.number += 1
            return np.full(2, self.number)

    texts = ["a plan cannot read"] + ["a plan would only see a copy"] * 3
    for x, text in zip((Counter(), 1.0, np.float32(1), [1, 2]), texts, strict=True):
        with pytest.raises(InvalidArgumentError, match=text):
            Group(1).member(0).plan_all_reduce(x)


def test_the_list_of_a_controllers_plan_belongs_to_the_caller() -> None:
    buffers = [np.ones(2), np.ones(2)]
    plan = Group(2).plan_all_reduce_all(buffers, outs=buffers)
    plan().clear()
    assert len(plan()) == 2
