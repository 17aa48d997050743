"""The functions that recorded strategy cases name, as in gen_strategy.py."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np

import ringlet
from tests.conformance.common import decode_components

STRATEGIES = {n: ringlet.MirroredStrategy([f"CPU:{i}" for i in range(n)]) for n in (1, 2, 3, 4, 8)}

Given = dict[str, Any]

Point = collections.namedtuple("Point", ["x", "y"])
SAME = np.arange(3)


def t(value: Any) -> np.ndarray[Any, Any]:
    """A new array with TensorFlow's dtype for Python numbers."""
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
