"""Runs recorded cases of gathering, extended objects, and strategies other than MirroredStrategy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ringlet
from tests.conformance.common import decode
from tests.conformance.strategy_functions import (
    STRATEGIES,
    Given,
    context,
    distributed,
    per_replica,
    rid,
    strategy_of,
    t,
)

# --- gather and all_gather ------------------------------------------------------------------------------------------


def gather(given: Given) -> Any:
    value = decode(given["plain"]) if "plain" in given else distributed(given)
    return strategy_of(given).gather(value, axis=given["axis"])


def gather_in_replica(given: Given) -> Any:
    return strategy_of(given).run(lambda: strategy_of(given).gather(t([1.0]), axis=0))


def gather_in_other_scope(_: Given) -> Any:
    with STRATEGIES[2].scope():
        return STRATEGIES[4].gather(per_replica(STRATEGIES[4], [[0.0]] * 4), axis=0)


def all_gather(given: Given) -> Any:
    return strategy_of(given).run(lambda x: context().all_gather(x, axis=given["axis"]), args=(distributed(given),))


def all_gather_nested(given: Given) -> Any:
    return strategy_of(given).run(
        lambda x: context().all_gather({"p": x, "q": [x * 2]}, axis=given["axis"]), args=(distributed(given),)
    )


# --- extended objects -----------------------------------------------------------------------------------------------


def variable_in(strategy: ringlet.Strategy, value: Any, dtype: Any = np.float64) -> Any:
    with strategy.scope():
        return ringlet.Variable(np.asarray(value, dtype))


def update(given: Given) -> Any:
    strategy = strategy_of(given)
    variable = variable_in(strategy, given["initial"])
    result = strategy.extended.update(
        variable, lambda a, b: a.assign_add(b), args=(distributed(given),), group=given["group"]
    )
    return {
        "result": None if given["group"] else tuple(np.asarray(part) for part in result),
        "values": [component.numpy() for component in variable.values],
    }


def reduce_to_variable(given: Given) -> Any:
    strategy = strategy_of(given)
    return strategy.extended.reduce_to("SUM", distributed(given), variable_in(strategy, [0.0, 0.0]))


def batch_reduce_to(given: Given) -> Any:
    pairs = [(distributed(given), "CPU:0"), (distributed(given), distributed(given))]
    return strategy_of(given).extended.batch_reduce_to("MEAN", pairs)


def colocate(strategy: ringlet.Strategy, variable: Any) -> None:
    with strategy.scope(), strategy.extended.colocate_vars_with(variable):
        pass


def other_than(given: Given) -> ringlet.Strategy:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(given["replicas"])])


def colocate_other_strategy(given: Given) -> str | None:
    other = other_than(given)
    try:
        colocate(strategy_of(given), variable_in(other, 1.0))
    except ValueError as error:
        return f"ValueError: {error}".split(", not")[0]
    return None


def created_in_scope(given: Given) -> list[bool]:
    strategy, other = strategy_of(given), other_than(given)
    variable, plain = variable_in(strategy, 1.0), ringlet.Variable(1.0)
    return [
        strategy.extended.variable_created_in_scope(variable),
        other.extended.variable_created_in_scope(variable),
        ringlet.get_strategy().extended.variable_created_in_scope(plain),
    ]


# --- other strategies -----------------------------------------------------------------------------------------------

OTHERS = {
    "OneDeviceStrategy": ringlet.OneDeviceStrategy("CPU:0"),
    "CentralStorageStrategy": ringlet.experimental.CentralStorageStrategy(["CPU:0", "CPU:1"], parameter_device="CPU:0"),
}

OTHER_CALLS: dict[str, Callable[[Any], Any]] = {
    "num_replicas": lambda s: s.num_replicas_in_sync,
    "run_id": lambda s: s.run(lambda: t(rid())),
    "run_python": lambda s: s.run(rid),
    "reduce_sum": lambda s: s.reduce("SUM", s.run(lambda: t([1.0, 2.0]) * t(rid()).astype(np.float32)), axis=None),
    "reduce_mean": lambda s: s.reduce("MEAN", s.run(lambda: t([1.0, 2.0])), axis=None),
    "reduce_sum0": lambda s: s.reduce("SUM", s.run(lambda: t([1.0, 2.0])), axis=0),
    "gather": lambda s: s.gather(s.run(lambda: t([1.0, 2.0])), axis=0),
    "all_reduce": lambda s: s.run(lambda: context().all_reduce("SUM", t(2.0))),
    "all_gather": lambda s: s.run(lambda: context().all_gather(t([2.0]), axis=0)),
    "merge_call": lambda s: s.run(lambda: context().merge_call(lambda _, x: x, args=(t(1.0),))),
    "values": lambda s: s.experimental_distribute_values_from_function(lambda c: c.replica_id_in_sync_group),
    "local_results": lambda s: s.experimental_local_results(s.run(lambda: t(rid()))),
    "worker_devices": lambda s: list(s.extended.worker_devices),
    "parameter_devices": lambda s: list(s.extended.parameter_devices),
    "reduce_wrong_op": lambda s: s.reduce("MAX", t(1.0), axis=None),
}


def other_strategy(given: Given, kind: str) -> Any:
    return OTHER_CALLS[given["call"]](OTHERS[kind])


# --- options --------------------------------------------------------------------------------------------------------


def communication_options(given: Given) -> str:
    return str(ringlet.experimental.CommunicationOptions(**given))


RUNNERS: dict[str, Callable[[Given], Any]] = {
    "all_gather/bad_rank": all_gather,
    "all_gather/equal": all_gather,
    "all_gather/nested": all_gather_nested,
    "all_gather/unequal": all_gather,
    "communication_options": communication_options,
    "extended/batch_reduce_to": batch_reduce_to,
    "extended/colocate_other_strategy": colocate_other_strategy,
    "extended/colocate_with_plain": lambda given: colocate(strategy_of(given), t(1.0)),
    "extended/reduce_to_bad_destination": lambda given: strategy_of(given).extended.reduce_to(
        "SUM", per_replica(strategy_of(given), [[1.0, 2.0]] * given["replicas"]), given["destination"]
    ),
    "extended/reduce_to_variable": reduce_to_variable,
    "extended/update": update,
    "extended/variable_created_in_scope": created_in_scope,
    "gather/bad_rank": gather,
    "gather/equal": gather,
    "gather/in_replica_ctx": gather_in_replica,
    "gather/plain_value": gather,
    "gather/unequal": gather,
    "other_strategies/CentralStorageStrategy": lambda given: other_strategy(given, "CentralStorageStrategy"),
    "other_strategies/OneDeviceStrategy": lambda given: other_strategy(given, "OneDeviceStrategy"),
}
