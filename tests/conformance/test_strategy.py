"""Strategies, replica contexts and values answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_strategy.py, on MirroredStrategies of 1, 2, 3, 4 and 8 CPU devices.
Cases name functions, which are written out here as that script wrote them.
"""

from __future__ import annotations

import collections
import copy
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.collectives import all_reduce_buffers
from ringlet.errors import InvalidArgumentError
from ringlet.strategy import ValueContext
from ringlet.values import Mirrored, PerReplica
from tests.conformance.common import assert_same, assert_same_error, case_id, decode, decode_components, load

CASES = load("strategy")
STRATEGIES = {n: ringlet.MirroredStrategy([f"CPU:{i}" for i in range(n)]) for n in (1, 2, 3, 4, 8)}

Given = dict[str, Any]

# --- cases that are not run -----------------------------------------------------------------------------------------

# Start of a group, or a call of the group: what its cases need that is still to come.
LATER = {
    "all_gather/": "gather",
    "gather/": "gather",
    "communication_options": "CommunicationOptions",
    "extended/batch_reduce_to": "variables and updates",
    "extended/colocate": "variables and updates",
    "extended/reduce_to": "variables and updates",
    "extended/update": "variables and updates",
    "extended/variable": "variables and updates",
    "other_strategies/": "other strategies",
    "default/methods all_gather": "gather",
    "default/methods gather": "gather",
    "reduce/other_strategy_scope gather": "gather",
    "repr_other CommunicationOptions()": "CommunicationOptions",
    "repr_other RunOptions()": "RunOptions",
}

# Groups whose answers differ on purpose, each a row of docs/differences.md.
DIFFERENT = {
    "all_reduce/shape_mismatch": "a mismatch is a CollectiveMismatchError that names every replica's call",
    "all_reduce/python_value": "numbers are taken for arrays",
}


def is_reducible(dtype: str) -> bool:
    try:
        all_reduce_buffers([np.zeros(1, dtype)] * 2)
    except (InvalidArgumentError, TypeError):
        return False
    return True


def dtypes_in(value: Any) -> set[str]:
    if isinstance(value, dict) and "__array__" in value:
        return {value["__array__"][0]}
    if isinstance(value, (dict, list)):
        items = value.values() if isinstance(value, dict) else value
        return set().union(*map(dtypes_in, items))
    return {"bool"} if isinstance(value, bool) else set()


def needed(case: dict[str, Any]) -> str:
    """What a case needs that is still to come; empty if it can run."""
    group, given = case["group"], case["input"]
    name = f"{group} {given.get('call') or given.get('method') or given.get('object') or ''}"
    for start, need in LATER.items():
        if name.startswith(start):
            return need
    if "ok" in case["expect"] and given.get("replicas", 1) > 1 and group.startswith(("reduce/", "all_reduce/")):
        missing = sorted(dtype for dtype in dtypes_in(given.get("per_replica")) if not is_reducible(dtype))
        return f"dtype {missing[0]}" if missing else ""
    return ""


def difference(case: dict[str, Any]) -> str:
    """Why the answer differs on purpose; empty if it should not."""
    if case["group"] == "all_reduce/nested" and "error" in case["expect"]:
        return "one call may mix dtypes"
    return DIFFERENT.get(case["group"], "")


# --- the functions of the recording ---------------------------------------------------------------------------------

Point = collections.namedtuple("Point", ["x", "y"])
SAME = np.arange(3)


def t(value: Any) -> np.ndarray[Any, Any]:
    """A fresh array, of the dtype that TensorFlow gives to Python numbers."""
    array = np.array(value)
    return array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))


def context() -> ringlet.ReplicaContext:
    replica = ringlet.get_replica_context()
    assert replica is not None
    return replica


def rid() -> int:
    return int(context().replica_id_in_sync_group)


RETURNING: dict[str, Callable[[], Any]] = {
    "id": lambda: t(rid()),
    "id_array": lambda: t([rid(), rid() + 10]),
    "ragged": lambda: np.arange(rid() + 1, dtype=np.int32),
    "python_int": lambda: 7,
    "python_id": rid,
    "string": lambda: "text",
    "none": lambda: None,
    "same_object": lambda: SAME,
    "tuple": lambda: (t(rid()), t(1.5)),
    "list": lambda: [t(rid()), "c"],
    "dict": lambda: {"a": t(rid()), "b": {"c": (t(2.0), None)}},
    "namedtuple": lambda: Point(x=t(rid()), y=5),
    "empty_tuple": lambda: (),
    "num_replicas": lambda: context().num_replicas_in_sync,
}
TAKING: dict[str, Callable[[Any], Any]] = {
    "double": lambda x: x * 2,
    "identity": lambda x: x,
    "swap": lambda x: {"out": (x, x + 1)},
}


def strategy_of(given: Given) -> ringlet.MirroredStrategy:
    return STRATEGIES[given["replicas"]]


def per_replica(strategy: ringlet.Strategy, values: list[Any]) -> Any:
    components = decode_components(values)
    return strategy.experimental_distribute_values_from_function(lambda c: components[c.replica_id_in_sync_group])


def distributed(given: Given) -> Any:
    return per_replica(strategy_of(given), given["per_replica"])


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


def merge_sum(strategy: ringlet.Strategy, value: Any) -> Any:
    return strategy.reduce("SUM", value, axis=None)


def merge_raises(_: ringlet.Strategy) -> None:
    raise ValueError("from merge_fn")


def merge_uneven() -> Any:
    if rid() == 0:
        context().merge_call(lambda _: None)
    return t(0)


def merge_context(given: Given) -> Callable[[], Any]:
    def merged(strategy: ringlet.Strategy) -> Any:
        current = ringlet.get_strategy() is strategy_of(given)
        is_none = ringlet.get_replica_context() is None
        return ringlet.in_cross_replica_context(), is_none, current, strategy is strategy_of(given)

    return lambda: context().merge_call(merged)


MERGING: dict[str, Callable[[], Any]] = {
    "reduce": lambda: context().merge_call(merge_sum, args=(t(rid() + 1),)),
    "returns_arg": lambda: context().merge_call(lambda _, v: v, args=(t(rid()),)),
    "kwargs": lambda: context().merge_call(
        lambda _, a, b=0: (a, b), args=(t(rid()),), kwargs={"b": {"k": t(rid() * 10)}}
    ),
    "types": lambda: context().merge_call(
        lambda _, *values: tuple(type(value).__name__ for value in values), args=(rid(), "same", [rid()])
    ),
    "twice": lambda: context().merge_call(merge_sum, args=(context().merge_call(merge_sum, args=(t(rid() + 1),)),)),
    "none": lambda: context().merge_call(lambda _: None),
    "uneven_counts": merge_uneven,
    "raises": lambda: context().merge_call(merge_raises),
    "run_inside": lambda: context().merge_call(lambda strategy: strategy.run(lambda: t(rid()))),
}


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

# TensorFlow's private classes, by the names that they have here.
CLASSES = {
    "ReplicaContext": "_MirroredReplicaContext",
    "DefaultReplicaContext": "_DefaultReplicaContext",
    "DefaultStrategy": "_DefaultDistributionStrategy",
}


def class_name(value: object) -> str:
    return CLASSES.get(type(value).__name__, type(value).__name__)


def state(strategy: ringlet.Strategy | None = None) -> dict[str, Any]:
    replica = ringlet.get_replica_context()
    return {
        "has_strategy": ringlet.has_strategy(),
        "in_cross": ringlet.in_cross_replica_context(),
        "replica_context": replica
        and {
            "class": class_name(replica),
            "id": int(replica.replica_id_in_sync_group),
            "n": replica.num_replicas_in_sync,
        },
        "strategy": class_name(ringlet.get_strategy()),
        "is_s": ringlet.get_strategy() is strategy,
    }


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
    "all_reduce": lambda: context().all_reduce("SUM", t(3.0)),
    "merge_call": lambda: context().merge_call(lambda _, x: x + t(1), args=(t(1),)),
    "deepcopy": lambda: copy.deepcopy(DEFAULT),
    "new": type(DEFAULT),
}

# --- reduce and all_reduce ------------------------------------------------------------------------------------------


def op_of(given: Given) -> Any:
    """VariableAggregation is not here yet: an enumeration that is no ReduceOp stands for it."""
    op = given["op"]
    return ringlet.collectives.Op.SUM if op == "VariableAggregation.SUM" else op


def reduce(given: Given) -> Any:
    value = decode(given["plain"]) if "plain" in given else distributed(given)
    return strategy_of(given).reduce(op_of(given), value, axis=decode(given.get("axis")))


def reduce_nested(given: Given) -> Any:
    strategy, values = strategy_of(given), given["per_replica"]
    value = {"a": per_replica(strategy, values["a"]), "b": [per_replica(strategy, values["b"][0])]}
    return strategy.reduce(given["op"], value, axis=None)


def reduce_in_other_scope(_: Given) -> Any:
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
    "InputContext(3, 1, 6)": lambda: [str(ringlet.data.InputContext(3, 1, 6))],
    "InputOptions()": ringlet.data.InputOptions,
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
    """The devices of a process that asked for so many, which this one cannot do any more."""
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
    "reduce/other_strategy_scope": reduce_in_other_scope,
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
    group, given = case["group"], case["input"]
    if group.startswith("merge_call/"):
        return run_merge(group.removeprefix("merge_call/"), given)
    runner = reduce if group not in RUNNERS and group.startswith("reduce/") else RUNNERS[group]
    return runner(given)


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    if need := needed(case):
        pytest.skip(f"needs {need}")
    if reason := difference(case):
        pytest.skip(f"differs on purpose: {reason}")
    if "ok" in case["expect"]:
        assert_same(case["expect"]["ok"], answer(case))
        return
    expected = case["expect"]["error"]
    try:
        found = answer(case)
    except Exception as error:
        assert_same_error(expected, error)
    else:
        assert expected.get("incidental"), f"no error, but {found!r}, where TensorFlow said {expected['message']}"


def test_cases_that_are_not_run_are_counted(capsys):
    needs = collections.Counter(need for case in CASES if (need := needed(case)))
    differ = sum(bool(difference(case)) for case in CASES if not needed(case))
    counts = ", ".join(f"{need} {count}" for need, count in sorted(needs.items()))
    num_run = len(CASES) - needs.total() - differ
    with capsys.disabled():
        print(f"\nrecorded strategy cases: {num_run} of {len(CASES)} run, {differ} differ on purpose, later: {counts}")
    assert num_run > len(CASES) / 3
