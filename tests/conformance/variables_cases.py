"""The scripts of recorded variable cases, as in gen_variables.py.

A case creates one variable in the scope of a strategy and runs a script. A step names where it runs (``ctx``), which
method it calls (``do``) and with what (``value``):

replica   inside strategy.run
cross     in cross-replica context, inside strategy.scope()
outside   outside of any scope
update    strategy.extended.update(v, fn, args=(value,)), where fn calls the method
merge     run, then merge_call, then strategy.extended.update
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import ringlet
from ringlet.values import DistributedValues, Variable
from tests.conformance.common import assert_same, facts

Given = dict[str, Any]
Sync, Agg = ringlet.VariableSynchronization, ringlet.VariableAggregation

# What TensorFlow calls the variables of strategies with one buffer.
CLASSES = {"Variable": "ResourceVariable"}


@functools.cache
def strategy_of(kind: str, n: int) -> ringlet.Strategy:
    devices = [f"CPU:{i}" for i in range(n)]
    if kind == "MirroredStrategy":
        return ringlet.MirroredStrategy(devices)
    if kind == "OneDeviceStrategy":
        return ringlet.OneDeviceStrategy("CPU:0")
    if kind == "CentralStorageStrategy":
        return ringlet.experimental.CentralStorageStrategy(devices, parameter_device="CPU:0")
    return ringlet.get_strategy()


# --- the script language ---------------------------------------------------------------------------------------------


class Player:
    """One variable, and the steps of its script."""

    def __init__(self, given: Given) -> None:
        self.n, self.dtype = given["replicas"], given["dtype"]
        self.strategy = strategy_of(given["strategy"], self.n)
        with self.strategy.scope():
            self.v: Any = ringlet.Variable(
                given["initial"],
                dtype=self.dtype,
                synchronization=Sync[given["synchronization"]],
                aggregation=Agg[given["aggregation"]],
                name="v",
            )

    def value(self, step: Given, ctx: str) -> Any:
        if "value" not in step:
            return None
        [(kind, x)] = step["value"].items()
        if kind == "python":
            return x
        if kind == "tensor":
            return np.array(x, self.dtype)
        if kind == "mirrored":
            x = [x] * self.n
        if ctx == "replica":
            replica = ringlet.get_replica_context()
            assert replica is not None
            return np.array(x[int(replica.replica_id_in_sync_group)], self.dtype)
        return self.strategy.experimental_distribute_values_from_function(
            lambda context: np.array(x[context.replica_id_in_sync_group], self.dtype)
        )

    def run(self, step: Given) -> Any:
        ctx, do, strategy = step["ctx"], step["do"], self.strategy
        if ctx == "replica":
            return strategy.run(lambda: call(self.v, do, self.value(step, ctx)))
        if ctx == "cross":
            with strategy.scope():
                return call(self.v, do, self.value(step, ctx))
        if ctx == "outside":
            return call(self.v, do, self.value(step, ctx))

        def update(strategy: Any, value: Any) -> Any:
            return strategy.extended.update(self.v, lambda a, b: call(a, do, b), args=(value,))

        if ctx == "update":
            return update(strategy, self.value(step, ctx))
        return strategy.run(lambda: context().merge_call(update, args=(self.value(step, "replica"),)))

    def created(self) -> Given:
        v = self.v
        name = type(v).__name__
        return {
            "class": CLASSES.get(name, name),
            "synchronization": v.synchronization.name,
            "aggregation": v.aggregation.name,
            "trainable": v.trainable,
            "name": v.name,
            "component_names": [c.name for c in v.values] if hasattr(v, "values") else None,
            "is_distributed_values": isinstance(v, DistributedValues),
        }

    def components(self) -> list[Any]:
        v = self.v
        return [c.numpy() for c in v.values] if hasattr(v, "values") else [v.read_value()]

    def read_in_replica(self) -> Any:
        return self.strategy.experimental_local_results(self.strategy.run(self.v.read_value))


def context() -> ringlet.ReplicaContext:
    replica = ringlet.get_replica_context()
    assert replica is not None
    return replica


def call(v: Any, do: str, x: Any) -> Any:
    if do == "add1":
        return np.asarray(v + 1)
    if do == "convert":
        return np.asarray(v)
    if do.startswith("scatter_"):
        row = np.asarray(x, v.dtype)
        return getattr(v, do)(ringlet.IndexedSlices(row.reshape(1), np.array([0])))
    method = getattr(v, do)
    return method() if x is None else method(x)


# --- comparing -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Replace the variables in a result by their values."""
    if isinstance(value, Variable):
        return [c.read_value() for c in value.values] if hasattr(value, "values") else value.read_value()
    if isinstance(value, DistributedValues):
        return type(value)([plain(component) for component in value.values])
    return value


def assert_message(expected: str, found: str) -> None:
    """Assert that a message has the facts of the recorded one; module names are ignored."""
    missing = [fact for fact in facts(without_module(expected)) if fact not in without_module(found).lower()]
    assert missing == [], f"recorded: {expected}\nours: {found}"


def without_module(message: str) -> str:
    return message.replace("tf.distribute.", "").replace("tf.", "").replace("ringlet.", "")


def assert_outcome(expected: Given, function: Callable[[], Any], where: str) -> None:
    """Assert that a call has the recorded result, or raises the recorded error class with the recorded facts."""
    if "ok" in expected:
        components = expected["ok"].get("__variable__") if isinstance(expected["ok"], dict) else None
        assert_same(expected["ok"] if components is None else components, plain(function()), where)
        return
    error = expected["error"]
    raised = None
    try:
        found = function()
    except Exception as exception:
        raised = exception
    if error.get("incidental"):
        return
    assert raised is not None, f"{where}: no error, but {found!r}, where TensorFlow said {error['message']}"
    assert error["type"] in [base.__name__ for base in type(raised).__mro__], f"{where}: {raised!r}"
    assert_message(error["message"], str(raised))


def check_script(given: Given, expect: Given) -> None:
    if "error" in expect:
        assert_outcome(expect, lambda: Player(given), "creation")
        return
    recorded = expect["ok"]
    player = Player(given)
    assert player.created() == recorded["created"]
    for i, (step, outcome) in enumerate(zip(given["script"], recorded["steps"], strict=True)):
        assert_outcome(outcome, functools.partial(player.run, step), f"step {i} {step}")
    assert_same(recorded["components"], player.components(), "components")
    assert_outcome(recorded["read_outside"], player.v.read_value, "read outside")
    assert_outcome(recorded["read_in_replica"], player.read_in_replica, "read in replicas")
    assert_outcome(
        recorded["reduce_sum"], lambda: player.strategy.reduce("SUM", player.v, axis=None), "the sum over replicas"
    )


# --- groups of their own ---------------------------------------------------------------------------------------------

INITIAL = {
    "callable": lambda: np.float32(4),
    "list": np.array([1, 2], np.int32),  # TensorFlow makes int32 of Python's integers
    "matrix": np.ones((2, 2)),
}


def initial_value(given: Given) -> Any:
    with strategy_of("MirroredStrategy", given["replicas"]).scope():
        v: Any = ringlet.Variable(INITIAL[given["initial_value"]])
    return {"dtype": v.dtype.name, "shape": list(v.shape), "components": [c.numpy() for c in v.values]}


def created_in_run(given: Given) -> Any:
    box: list[Any] = []

    def step() -> Any:
        v = ringlet.Variable(np.float32(context().replica_id_in_sync_group + 2), aggregation=Agg.SUM)
        box.append(v)
        return v.assign_add(1.0)

    strategy_of("MirroredStrategy", given["replicas"]).run(step)
    return {
        "types": sorted({type(v).__name__ for v in box}),
        "same_object": all(v is box[0] for v in box),
        "components": [c.numpy() for c in box[0].values],
    }


BAD = {"None": None, "ReduceOp.SUM": ringlet.ReduceOp.SUM}


def bad_enum(given: Given) -> Any:
    keywords: Given = {key: BAD.get(text, text) for key, text in given.items() if key != "replicas"}
    with strategy_of("MirroredStrategy", given["replicas"]).scope():
        return ringlet.Variable(np.float32(1), **keywords)


GROUPS = {"initial_value": initial_value, "created_in_run": created_in_run, "bad_enum": bad_enum}


def check(case: Given) -> None:
    """Assert that a case has the recorded result."""
    if case["group"] in GROUPS:
        function = functools.partial(GROUPS[case["group"]], case["input"])
        assert_outcome(case["expect"], function, case["group"])
        return
    check_script(case["input"], case["expect"])
