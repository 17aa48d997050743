"""merge_call: one call for all replicas, each of which gets its component of the result."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.errors import CollectiveMismatchError
from ringlet.values import PerReplica
from tests.strategy.replicas import all_reduce, assert_usable, mirrored, replica, replica_id


def test_merge_call_hands_every_replica_its_slice():
    def step() -> Any:
        return replica().merge_call(lambda _, x, *, y: {"x": x, "y": y, "z": "same"}, (replica_id(),), {"y": "same"})

    answer = mirrored(3).run(step)
    assert (answer["x"].values, answer["y"], answer["z"]) == ((0, 1, 2), "same", "same")


def test_merge_calls_in_a_row_do_not_mix():
    def step() -> list[Any]:
        rows = [
            replica().merge_call(lambda _, x: sum(x.values), args=(replica_id() + 100.5 * round_number,))
            for round_number in range(50)
        ]
        assert rows == [3 + 3 * 100.5 * round_number for round_number in range(50)]
        return rows

    assert mirrored(3).run(step)


def test_merge_fn_may_run_the_strategy():
    def merge(strategy: ringlet.Strategy) -> Any:
        return strategy.reduce("SUM", strategy.run(all_reduce), axis=None)

    for result in mirrored(3).run(lambda: replica().merge_call(merge) + 0).values:
        assert result.tolist() == [9, 9, 9]


def test_merge_fn_runs_in_replica_0s_thread():
    def step() -> bool:
        thread = threading.get_ident()
        merged = replica().merge_call(lambda _: threading.get_ident())
        return merged == thread

    assert mirrored(3).run(step).values[0] is True


def test_an_exception_of_merge_fn_is_raised():
    def merge(_: ringlet.Strategy) -> None:
        raise KeyError("from merge_fn")

    strategy = mirrored(3)
    with pytest.raises(KeyError, match="from merge_fn"):
        strategy.run(lambda: replica().merge_call(merge))
    assert_usable(strategy)


def test_an_exception_of_merge_fn_may_be_handled_by_every_replica():
    def merge(_: ringlet.Strategy) -> None:
        raise KeyError("from merge_fn")

    def step() -> Any:
        with pytest.raises(KeyError, match="from merge_fn"):
            replica().merge_call(merge)
        return replica().merge_call(lambda _: "the next one")

    assert mirrored(3).run(step) == "the next one"


@pytest.mark.parametrize("num_replicas", [1, 3])
def test_a_merge_fn_that_returns_too_few_components_is_an_error(num_replicas):
    strategy = mirrored(num_replicas)
    with pytest.raises(
        ValueError, match=f"merge_fn returned a PerReplica with 2 components for {num_replicas} replicas"
    ):
        strategy.run(lambda: replica().merge_call(lambda _: {"x": PerReplica([1, 2])}))


def test_a_different_number_of_merge_calls_is_named():
    def step() -> None:
        for _ in range(1 + (replica_id() == 1)):
            replica().merge_call(lambda _: None)

    strategy = mirrored(3)
    with pytest.raises(CollectiveMismatchError, match=r"different number of replica_context.*merge_call"):
        strategy.run(step)
    assert_usable(strategy)


class Answer:
    """An object whose end can be observed."""


def test_the_result_of_a_merge_call_is_freed_once_the_replicas_drop_it():
    given: list[Any] = []

    def merge(_: ringlet.Strategy, argument: Any) -> Any:
        answer = Answer()
        given.extend(map(weakref.ref, (answer, *argument.values)))
        return answer

    def step() -> Any:
        answer = replica().merge_call(merge, (Answer(),))
        seen = type(answer)
        del answer
        replica().all_reduce("SUM", 1.0)  # all replicas have passed the merge_call
        return seen, [reference() for reference in given]

    assert mirrored(3).run(step) == (Answer, [None] * 4)


def test_merge_calls_keep_results_that_other_replicas_still_need():
    def step() -> list[Any]:
        answers = []
        for number in range(200):
            if (number + replica_id()) % 3 == 0:
                time.sleep(0)
            answers.append(replica().merge_call(lambda _, x: [x.values], args=(Answer(),))[0])
        return [len(answer) for answer in answers]

    assert all(
        part == 3 for row in mirrored(3).run(step) for part in ringlet.get_strategy().experimental_local_results(row)
    )


def test_an_update_after_a_handled_mismatch_writes_nothing():
    """The call of replica 0 stays recorded until its error is raised; with it, a second call would seem complete."""
    strategy = mirrored(2)
    with strategy.scope():
        variable = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.SUM)

    def step() -> None:
        calls = [lambda: variable.assign_add(1.0 + replica_id()), lambda: replica().all_reduce("SUM", 1.0)]
        for call in calls if replica_id() == 0 else calls[::-1]:
            with pytest.raises((CollectiveMismatchError, ringlet.errors.CollectiveAborted)):
                call()

    strategy.run(step)
    assert variable.numpy() == 0
    assert_usable(strategy)


def test_updates_in_a_row_by_replicas_that_are_late_in_turn():
    strategy = mirrored(3)
    with strategy.scope():
        variable = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.SUM)

    def step() -> list[float]:
        seen = []
        for number in range(60):
            if (number + replica_id()) % 3 == 0:
                time.sleep(0.001)
            seen.append(float(variable.assign_add(float(number + replica_id()))))
        return seen

    expected = [(sum(3.0 * number + 3 for number in range(last + 1)),) * 3 for last in range(60)]
    assert [total.values for total in strategy.run(step)] == expected


class _Interrupted:
    """A value that is interrupted when it is read for the first time."""

    def __init__(self) -> None:
        self.is_read = False

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if not self.is_read:
            self.is_read = True
            raise KeyboardInterrupt
        return np.asarray(1.0, dtype)


def test_after_a_handled_interrupt_of_an_update_no_update_is_lost():
    strategy, value = mirrored(2), _Interrupted()
    with strategy.scope():
        variable = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.SUM)

    def step() -> None:
        for number in (value, value, np.asarray(10.0)):
            try:
                variable.assign_add(number if number is value else number + 0, read_value=False)
            except KeyboardInterrupt:
                variable.assign_add(value, read_value=False)

    with pytest.raises((ringlet.errors.CollectiveAborted, CollectiveMismatchError)):
        strategy.run(step)
    assert_usable(strategy)
