"""Iterators and steps of TensorFlow 1 answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_v1.py, on tf.compat.v1's MirroredStrategy of 1, 2 and 4 CPU devices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet import nest
from ringlet.compat import tf
from tests.conformance.common import assert_same, assert_same_error, case_id, decode, is_incidental, load

CASES = load("v1")

# --- what cases ask for ----------------------------------------------------------------------------------------------


def strategy_of(given: dict[str, Any]) -> Any:
    return tf.compat.v1.distribute.MirroredStrategy([f"CPU:{i}" for i in range(given["replicas"])])


def batches(given: dict[str, Any]) -> Any:
    return tf.data.Dataset.range(given["range"]).batch(given["batch"], drop_remainder=given["drop_remainder"])


def steps_of(strategy: Any, iterator: Any, limit: int = 12) -> dict[str, Any]:
    steps: list[Any] = []
    for _ in range(limit):
        try:
            steps.append(list(strategy.experimental_local_results(iterator.get_next())))
        except ringlet.errors.OutOfRangeError:
            return {"steps": steps, "end": "OutOfRangeError"}
    return {"steps": steps, "end": None}


def run_steps(given: dict[str, Any]) -> Any:
    strategy = strategy_of(given)
    iterator = strategy.make_dataset_iterator(batches({**given, "drop_remainder": True}))
    op = given["reduce_op"] and tf.distribute.ReduceOp[given["reduce_op"]]

    def step(context: Any, batch: Any) -> None:
        def in_replica(part: Any) -> Any:
            if given["where"] == "replica":
                context.set_last_step_output("out", np.sum(part), reduce_op=op)
            return np.sum(part)

        sums = strategy.extended.call_for_each_replica(in_replica, args=(batch,))
        if given["where"] == "cross":
            context.set_last_step_output("out", sums, reduce_op=op)
        context.set_non_tensor_output("raw", sums)

    done = strategy.extended.experimental_run_steps_on_iterator(step, iterator, iterations=given["iterations"])
    return {"last_step_outputs": done.last_step_outputs, "non_tensor_outputs": done.non_tensor_outputs}


def initialize_again(given: dict[str, Any]) -> Any:
    strategy = strategy_of(given)
    iterator = strategy.make_dataset_iterator(batches(given))
    first = steps_of(strategy, iterator)
    iterator.initialize()
    return [first, steps_of(strategy, iterator)]


def input_fn_callable(given: dict[str, Any]) -> Any:
    calls: list[int] = []

    def call() -> Any:
        calls.append(0)
        return tf.constant(len(calls))

    strategy = strategy_of(given)
    return steps_of(strategy, strategy.make_input_fn_iterator(lambda _: call), 3)


def make_numpy_dataset(given: dict[str, Any]) -> Any:
    rows = strategy_of(given).experimental_make_numpy_dataset(decode(given["value"]))
    return [nest.map_structure(np.asarray, row) for row in rows]


def with_strategy(answer: Callable[[Any, dict[str, Any]], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda given: answer(strategy_of(given), given)


GROUPS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "run_steps": run_steps,
    "make_dataset_iterator": with_strategy(lambda s, given: steps_of(s, s.make_dataset_iterator(batches(given)))),
    "make_input_fn_iterator": with_strategy(
        lambda s, given: steps_of(s, s.make_input_fn_iterator(lambda _: batches(given)))
    ),
    "initialize_again": initialize_again,
    "input_fn_callable": input_fn_callable,
    "input_fn_bad": with_strategy(lambda s, _: s.make_input_fn_iterator(lambda _: 5)),
    "make_numpy_dataset": make_numpy_dataset,
    "reduce_default_axis": with_strategy(
        lambda s, _: s.reduce(tf.distribute.ReduceOp.SUM, s.run(lambda: tf.constant([1.0, 2.0])))
    ),
    "has_attribute": with_strategy(lambda s, given: hasattr(s, given["name"])),
}

# --- the cases -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What was found, with tensors as the arrays that they hold."""
    if isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return type(value)(map(plain, value.values)) if isinstance(value, ringlet.DistributedValues) else value


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    ask, expected = GROUPS[case["group"]], case["expect"]
    if "ok" in expected:
        assert_same(expected["ok"], plain(ask(case["input"])))
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011  # which one is compared below
        ask(case["input"])
    assert_same_error(expected["error"], caught.value)


def test_the_cases_are_counted(capsys):
    accidents = sum(is_incidental(case["expect"]) for case in CASES)
    with capsys.disabled():
        print(f"\nrecorded cases of TensorFlow 1: all {len(CASES)} compared, {accidents} of them incidental errors")
    assert accidents <= len(CASES) / 10
