"""ClusterCoordinator answers what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_ps.py, on real worker and parameter servers. A case names a scenario,
which is written out below. Here the workers are threads of this process.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import pytest

from ringlet.compat import tf
from ringlet.errors import InvalidArgumentError
from tests.conformance.common import assert_same, assert_same_error, case_id, load
from tests.coordinator.in_threads import strategy_of

CASES = [case for case in load("parameter_server") if case["group"] == "coordinator"]

# What TensorFlow answered in the scenarios that the public cases leave out, on two workers.
LEFT_OUT: dict[str, Any] = {
    "concrete_function": {"__array__": ["int32", [], [12]]},
    "per_worker_dataset": {
        "sum": 10,
        "values_type": "PerWorkerDistributedIterator",
        "next": {
            "error": {
                "type": "NotImplementedError",
                "message": "Iterating over an `AsyncDistributedIterator` is not supported right now.",
            }
        },
    },
    "properties": {
        "num_replicas_in_sync": 1,
        "worker_devices": ["/device:CPU:0"],
        "cluster_resolver": "NoneType",
        "plain_fetch": [1, {"a": 2}],
    },
}

# What TensorFlow calls the class of a tensor.
CLASSES = {"Tensor": "EagerTensor"}


def error_of(call: Callable[[], Any]) -> str:
    """The name of the error that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "ok"


def outcome_of(call: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"ok": call()}
    except Exception as error:
        return {"error": error}


@tf.function
def add(x, y=1):
    return {"sum": x + y, "pair": (x, [y])}


@tf.function
def fail():
    raise InvalidArgumentError("boom")


@tf.function
def take(iterator):
    return next(iterator)


class Scenarios:
    """The scenarios by their names, on one cluster."""

    def __init__(self, strategy: Any) -> None:
        self.strategy = strategy
        self.coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)

    def properties(self) -> Any:
        return {
            "num_replicas_in_sync": self.strategy.num_replicas_in_sync,
            "worker_devices": list(self.strategy.extended.worker_devices),
            "cluster_resolver": type(self.strategy.cluster_resolver).__name__,
            "plain_fetch": self.coordinator.fetch([1, {"a": 2}]),
        }

    def basics(self) -> Any:
        value = self.coordinator.schedule(add, args=(tf.constant(3),), kwargs={"y": 4})
        self.coordinator.join()
        return {
            "fetch": self.coordinator.fetch(value),
            "type_is_remote": isinstance(value, tf.distribute.coordinator.RemoteValue),
            "done": self.coordinator.done(),
            "remote_fetch": value.fetch(),
            "get_type": CLASSES[type(value.get()["sum"]).__name__],
            "fetch_nested": self.coordinator.fetch({"a": [value, 5]}),
        }

    def counter(self) -> Any:
        with self.strategy.scope():
            v = tf.Variable(0.0)

        @tf.function
        def step():
            v.assign_add(1.0)
            return v.read_value()

        for _ in range(20):
            self.coordinator.schedule(step)
        self.coordinator.join()
        return v.numpy()

    def error_in_join(self) -> Any:
        self.coordinator.schedule(fail)
        first = error_of(self.coordinator.join)
        second = outcome_of(self.coordinator.join)
        value = self.coordinator.schedule(add, args=(tf.constant(1),))
        self.coordinator.join()
        return {"first_join": first, "second_join": second, "works_again": self.coordinator.fetch(value)["sum"]}

    def error_in_fetch(self) -> Any:
        value = self.coordinator.schedule(fail)
        return {"fetch": error_of(value.fetch), "join": error_of(self.coordinator.join)}

    def error_in_done(self) -> Any:
        value = self.coordinator.schedule(fail)
        error_of(value.fetch)
        return {"done": error_of(self.coordinator.done), "then_done": outcome_of(self.coordinator.done)}

    def cancelled_after_error(self) -> Any:
        self.coordinator.schedule(fail)
        rest = []

        def schedule_more() -> None:
            for _ in range(50):
                rest.append(self.coordinator.schedule(add, args=(tf.constant(1),)))
            self.coordinator.join()

        raised = error_of(schedule_more)
        kinds = {error_of(value.fetch) for value in rest}
        return {"raised": raised, "rest_subset_of": sorted(kinds | {"CancelledError", "ok"})}

    def remote_value_as_input(self) -> Any:
        value = self.coordinator.schedule(add, args=(tf.constant(3),))
        self.coordinator.join()
        return self.coordinator.schedule(add, args=(value,))

    def not_a_function(self) -> Any:
        return self.coordinator.schedule(lambda: 1)

    def concrete_function(self) -> Any:
        # There are no graphs: the function itself is what TensorFlow asks one of.
        value = self.coordinator.schedule(add, args=(tf.constant(3), tf.constant(9)))
        return self.coordinator.fetch(value)["sum"]

    def per_worker_dataset(self) -> Any:
        dataset = self.coordinator.create_per_worker_dataset(
            lambda: tf.data.Dataset.from_tensor_slices([1, 1, 1]).repeat()
        )
        iterator = iter(dataset)
        values = [self.coordinator.schedule(take, args=(iterator,)) for _ in range(10)]
        self.coordinator.join()
        return {
            "sum": int(sum(value.fetch() for value in values)),
            "values_type": type(iterator).__name__,
            "next": outcome_of(lambda: next(iterator)),
        }

    def per_worker_dataset_from_dataset(self) -> Any:
        dataset = self.strategy.experimental_distribute_dataset(tf.data.Dataset.range(6).batch(2))
        iterator = iter(self.coordinator.create_per_worker_dataset(dataset))
        value = self.coordinator.schedule(tf.function(lambda it: next(it).numpy().sum()), args=(iterator,))
        self.coordinator.join()
        return [int(value.fetch())]

    def exhausted_dataset(self) -> Any:
        iterator = iter(self.coordinator.create_per_worker_dataset(lambda: tf.data.Dataset.range(0)))
        value = self.coordinator.schedule(take, args=(iterator,))
        return {"join": error_of(self.coordinator.join), "fetch": error_of(value.fetch)}

    def iterate_dataset_directly(self) -> Any:
        return next(iter(self.strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(2))))

    def variable_in_dataset_fn(self) -> Any:
        def dataset_fn():
            tf.Variable(1.0)
            return tf.data.Dataset.range(3)

        return self.coordinator.create_per_worker_dataset(dataset_fn)

    def singleton(self) -> Any:
        other = tf.distribute.coordinator.ClusterCoordinator(self.strategy)
        return [other is self.coordinator, self.coordinator.strategy is self.strategy]

    def run_inside(self) -> Any:
        strategy = self.strategy

        @tf.function
        def step():
            def replica():
                return tf.constant(tf.distribute.get_replica_context().num_replicas_in_sync) * 10

            return strategy.reduce("SUM", strategy.run(replica), axis=None)

        return self.coordinator.fetch(self.coordinator.schedule(step))

    def worker_index_outside(self) -> Any:
        return tf.distribute.coordinator.experimental_get_current_worker_index()

    def mirrored_coordinator(self) -> Any:
        return tf.distribute.coordinator.ClusterCoordinator(tf.distribute.OneDeviceStrategy("CPU:0"))


@pytest.fixture(scope="module")
def scenarios():
    """Gives the scenarios on a cluster of some size, each made once."""
    made: dict[tuple[int, int], Scenarios] = {}

    def on(worker: int, ps: int) -> Scenarios:
        if (worker, ps) not in made:
            made[worker, ps] = Scenarios(strategy_of(worker, ps, tf.distribute.ParameterServerStrategy))
        return made[worker, ps]

    yield on
    for each in made.values():
        each.coordinator.shutdown()


@pytest.mark.parametrize("case", CASES, ids=[f"{case['input']['scenario']}-{case_id(case)}" for case in CASES])
def test_a_recorded_scenario_has_the_recorded_outcome(case, scenarios):
    run = getattr(scenarios(**case["input"]["cluster"]), case["input"]["scenario"])
    if "error" in case["expect"]:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - compared below
            run()
        assert_same_error(case["expect"]["error"], caught.value)
    else:
        assert_same(case["expect"]["ok"], run())


@pytest.mark.parametrize("scenario", LEFT_OUT)
def test_a_scenario_without_a_public_case_has_the_same_outcome(scenario, scenarios):
    assert_same(LEFT_OUT[scenario], getattr(scenarios(worker=2, ps=1), scenario)())


def test_cases_are_counted(capsys):
    kinds = collections.Counter(case["input"]["scenario"] for case in CASES)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    with capsys.disabled():
        print(
            f"\nrecorded coordinator cases: {len(CASES)} of {len(CASES)} compared, none differs on purpose ({counts})"
        )
    assert CASES
