"""Runs recorded strategy cases."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.strategy.calls.value_context import ValueContext
from ringlet.values import Mirrored, PerReplica
from tests.conformance.common import decode
from tests.conformance.strategy_extended_cases import RUNNERS as EXTENDED_RUNNERS
from tests.conformance.strategy_extended_cases import gather_in_other_scope
from tests.conformance.strategy_functions import (
    MERGING,
    RETURNING,
    STRATEGIES,
    TAKING,
    Given,
    class_name,
    context,
    distributed,
    merge_context,
    per_replica,
    rid,
    state,
    strategy_of,
    t,
)

# --- run ------------------------------------------------------------------------------------------------------------


def run_nested_args(given: Given) -> Any:
    x, b = distributed(given), per_replica(strategy_of(given), given["kwarg_b"])

    def add(a: Any, b: Any = None) -> Any:
        return a["x"] + a["y"][0] + b

    return strategy_of(given).run(add, args=({"x": x, "y": [given["plain"]]},), kwargs={"b": b})


def run_raises(given: Given) -> str:
    def boom() -> Any:
        if rid() == given["failing_replica"]:
            raise KeyError(f"replica {given['failing_replica']} failed")
        return t(1)

    with pytest.raises(KeyError) as caught:
        strategy_of(given).run(boom)
    return f"KeyError: {caught.value.args[0]}"


def run_nested_run(given: Given) -> Any:
    strategy = strategy_of(given)
    return strategy.run(lambda: strategy.run(lambda: t(1)))


# --- merge_call -----------------------------------------------------------------------------------------------------


def run_merge(kind: str, given: Given) -> Any:
    strategy = strategy_of(given)
    if kind == "context":
        return strategy.run(merge_context(given))
    if kind in MERGING:
        return strategy.run(MERGING[kind])
    saved: list[ringlet.ReplicaContext] = []
    strategy.run(lambda: saved.append(context()))
    if kind == "outside":
        return saved[0].merge_call(lambda _: 1)
    assert kind == "stale_context"
    return strategy.run(lambda: saved[0].merge_call(lambda _: 1))


# --- contexts -------------------------------------------------------------------------------------------------------


def context_scope(given: Given) -> Any:
    strategy = strategy_of(given)
    with strategy.scope() as entered:
        return {"state": state(strategy), "yields_self": entered is strategy}


def context_same_scope_twice(given: Given) -> Any:
    strategy = strategy_of(given)
    with strategy.scope():
        with strategy.scope():
            inner = state(strategy)
        outer = state(strategy)
    return [inner, outer, state(strategy)]


def context_scope_in_run(given: Given) -> Any:
    def enter() -> int:
        with strategy_of(given).scope():
            return 1

    return strategy_of(given).run(enter)


def context_set_strategy(given: Given) -> Any:
    ringlet.experimental_set_strategy(strategy_of(given))
    inside = state(strategy_of(given))
    ringlet.experimental_set_strategy(None)
    return [inside, state(strategy_of(given))]


def context_set_strategy_in_scope(given: Given) -> None:
    with strategy_of(given).scope():
        ringlet.experimental_set_strategy(strategy_of(given))


def context_mixed_scopes(given: Given) -> None:
    with strategy_of(given).scope(), STRATEGIES[given["inner"]].scope():
        pass


def context_run_in_other_scope(given: Given) -> Any:
    with strategy_of(given).scope():
        return STRATEGIES[given["inner"]].run(lambda: 1)


def replica_context_properties(given: Given) -> Any:
    return strategy_of(given).run(
        lambda: {
            "id": context().replica_id_in_sync_group,
            "n": context().num_replicas_in_sync,
            "is_strategy": context().strategy is strategy_of(given),
            "in_cross": ringlet.in_cross_replica_context(),
            "has_strategy": ringlet.has_strategy(),
        }
    )


def properties(given: Given) -> Any:
    strategy = strategy_of(given)
    extended = strategy.extended
    return {
        "num_replicas_in_sync": strategy.num_replicas_in_sync,
        "worker_devices": list(extended.worker_devices),
        "parameter_devices": list(extended.parameter_devices),
        "require_static_shapes": extended.experimental_require_static_shapes,
        "cluster_resolver": strategy.cluster_resolver,
        "should_checkpoint": extended.should_checkpoint,
        "should_save_summary": extended.should_save_summary,
        "experimental_between_graph": extended.experimental_between_graph,
    }


# --- the default strategy -------------------------------------------------------------------------------------------

DEFAULT = ringlet.get_strategy()


def default_scope(_: Given) -> Any:
    with DEFAULT.scope():
        return state(DEFAULT)


def default_scope_in_scope(_: Given) -> None:
    with STRATEGIES[2].scope(), DEFAULT.scope():
        pass


DEFAULT_METHODS: dict[str, Callable[[], Any]] = {
    "run": lambda: DEFAULT.run(lambda x: x + 1, args=(t(2),)),
    "run_id": lambda: DEFAULT.run(rid),
    "reduce_sum": lambda: DEFAULT.reduce("SUM", t([1.0, 3.0]), axis=None),
    "reduce_sum0": lambda: DEFAULT.reduce("SUM", t([1.0, 3.0]), axis=0),
    "reduce_mean0": lambda: DEFAULT.reduce("MEAN", t([1.0, 3.0]), axis=0),
    "reduce_mean_int": lambda: DEFAULT.reduce("MEAN", t([1, 2]), axis=0),
    "local_results": lambda: DEFAULT.experimental_local_results(t(4)),
    "local_results_nested": lambda: DEFAULT.experimental_local_results({"a": 1}),
    "values": lambda: DEFAULT.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group),
    "worker_devices": lambda: DEFAULT.extended.worker_devices,
    "parameter_devices": lambda: DEFAULT.extended.parameter_devices,
    "num_replicas": lambda: DEFAULT.num_replicas_in_sync,
    "gather": lambda: DEFAULT.gather(t([1.0, 3.0]), axis=0),
    "all_reduce": lambda: context().all_reduce("SUM", t(3.0)),
    "all_gather": lambda: context().all_gather(t([3.0]), 0),
    "merge_call": lambda: context().merge_call(lambda _, x: x + t(1), args=(t(1),)),
    "deepcopy": lambda: copy.deepcopy(DEFAULT),
    "new": type(DEFAULT),
}

# --- reduce and all_reduce ------------------------------------------------------------------------------------------


def op_of(given: Given) -> Any:
    op = given["op"]
    return ringlet.VariableAggregation.SUM if op == "VariableAggregation.SUM" else op


def reduce(given: Given) -> Any:
    value = decode(given["plain"]) if "plain" in given else distributed(given)
    strategy = strategy_of(given)
    if isinstance(value, (int, float)):  # numbers have TensorFlow's dtypes under its names only
        strategy = tf.distribute.MirroredStrategy(strategy.extended.worker_devices)
    return strategy.reduce(op_of(given), value, axis=decode(given.get("axis")))


def reduce_nested(given: Given) -> Any:
    strategy, values = strategy_of(given), given["per_replica"]
    value = {"a": per_replica(strategy, values["a"]), "b": [per_replica(strategy, values["b"][0])]}
    return strategy.reduce(given["op"], value, axis=None)


def combine_in_other_scope(given: Given) -> Any:
    if given["method"] == "gather":
        return gather_in_other_scope(given)
    with STRATEGIES[2].scope():
        return STRATEGIES[4].reduce("SUM", per_replica(STRATEGIES[4], [[0.0]] * 4), axis=0)


def all_reduce(given: Given) -> Any:
    return strategy_of(given).run(lambda x: context().all_reduce(op_of(given), x), args=(distributed(given),))


def all_reduce_nested(given: Given) -> Any:
    strategy = strategy_of(given)
    arguments = tuple(per_replica(strategy, values) for values in given["per_replica"])
    nests: dict[str, Callable[..., Any]] = {
        "SUM": lambda x, y: {"a": x, "b": (y, [x])},
        "MEAN": lambda x, y: (x, [y, {"z": x}]),
    }
    return strategy.run(lambda x, y: context().all_reduce(given["op"], nests[given["op"]](x, y)), args=arguments)


# --- printed values -------------------------------------------------------------------------------------------------

SAMPLES: dict[str, Callable[[int], list[Any]]] = {
    "ints": lambda n: list(range(n)),
    "strings": lambda n: [f"r{i}" for i in range(n)],
    "arrays": lambda n: [np.arange(i + 1) for i in range(n)],
    "matrices": lambda n: [np.full((2, 2), i) for i in range(n)],
    "tuples": lambda n: [(i, "x") for i in range(n)],
    "none": lambda n: [None] * n,
}

PRINTED: dict[str, Callable[[], Any]] = {
    "CommunicationOptions()": lambda: str(ringlet.experimental.CommunicationOptions()),
    "InputContext(3, 1, 6)": lambda: [str(ringlet.data.InputContext(3, 1, 6))],
    "InputOptions()": ringlet.data.InputOptions,
    "RunOptions()": ringlet.RunOptions,
    "ReduceOp": lambda: [
        str(ringlet.ReduceOp.SUM),
        repr(ringlet.ReduceOp.MEAN),
        ringlet.ReduceOp.SUM.value,
        [op.name for op in ringlet.ReduceOp],
    ],
    "ValueContext(1, 4)": lambda: [str(ValueContext(1, 4))],
}


def printed_values(given: Given) -> Any:
    value = {"PerReplica": PerReplica, "Mirrored": Mirrored}[given["class"]](SAMPLES[given["values"]](given["n"]))
    return {"repr": repr(value), "str": str(value), "values_type": type(value.values).__name__}


# --- devices --------------------------------------------------------------------------------------------------------


def devices(given: Given) -> Any:
    if not given.get("devices"):
        return default_devices(8)
    strategy = ringlet.MirroredStrategy(given["devices"])
    return {"n": strategy.num_replicas_in_sync, "worker_devices": list(strategy.extended.worker_devices)}


def default_devices(count: int) -> Any:
    """The devices of a process with `count` logical devices, which this process can no longer set."""
    code = f"""
import json, ringlet
ringlet.set_logical_devices({count})
strategy = ringlet.MirroredStrategy()
print(json.dumps({{"n": strategy.num_replicas_in_sync, "worker_devices": list(strategy.extended.worker_devices)}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


# --- all together ---------------------------------------------------------------------------------------------------

RUNNERS: dict[str, Callable[[Given], Any]] = {
    **EXTENDED_RUNNERS,
    "all_reduce/dtypes": all_reduce,
    "all_reduce/nested": all_reduce_nested,
    "all_reduce/op_names": all_reduce,
    "context/copy": lambda given: copy.copy(strategy_of(given)),
    "context/cross_in_run": lambda given: strategy_of(given).run(lambda: class_name(context())),
    "context/experimental_set_strategy": context_set_strategy,
    "context/mixed_scopes": context_mixed_scopes,
    "context/outside": lambda _: state(),
    "context/run_in_other_scope": context_run_in_other_scope,
    "context/same_scope_twice": context_same_scope_twice,
    "context/scope": context_scope,
    "context/scope_in_run": context_scope_in_run,
    "context/set_strategy_in_scope": context_set_strategy_in_scope,
    "default/methods": lambda given: DEFAULT_METHODS[given["call"]](),
    "default/scope": default_scope,
    "default/scope_in_mirrored_scope": default_scope_in_scope,
    "extended/call_for_each_replica_in_replica": lambda given: strategy_of(given).run(
        lambda: strategy_of(given).extended.call_for_each_replica(rid)
    ),
    "mirrored/default_devices": lambda given: default_devices(given["logical_cpus"]),
    "mirrored/devices": devices,
    "properties": properties,
    "reduce/in_replica_ctx": lambda given: strategy_of(given).run(
        lambda: strategy_of(given).reduce("SUM", t(1.0), axis=None)
    ),
    "reduce/nested": reduce_nested,
    "reduce/other_strategy_scope": combine_in_other_scope,
    "replica_context/properties": replica_context_properties,
    "repr": printed_values,
    "repr_other": lambda given: PRINTED[given["object"]](),
    "run/args": lambda given: strategy_of(given).run(TAKING[given["fn"]], args=(distributed(given),)),
    "run/bad_args": lambda given: strategy_of(given).run(lambda *_: 1, args=given["args"]),
    "run/local_results": lambda given: strategy_of(given).experimental_local_results(
        strategy_of(given).run(RETURNING[given["fn"]])
    ),
    "run/mismatch_dict_keys": lambda given: strategy_of(given).run(lambda: {f"k{rid()}": t(0)}),
    "run/mismatch_tuple_len": lambda given: strategy_of(given).run(lambda: tuple(t(0) for _ in range(rid() + 1))),
    "run/nested_args": run_nested_args,
    "run/nested_run": run_nested_run,
    "run/raises": run_raises,
    "run/returns": lambda given: strategy_of(given).run(RETURNING[given["fn"]]),
}


def answer(case: dict[str, Any]) -> Any:
    """Run a case."""
    group, given = case["group"], case["input"]
    if group.startswith("merge_call/"):
        return run_merge(group.removeprefix("merge_call/"), given)
    runner = reduce if group not in RUNNERS and group.startswith("reduce/") else RUNNERS[group]
    return runner(given)
