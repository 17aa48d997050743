"""Creation of variables for strategies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ringlet import context
from ringlet.devices import canonicalize
from ringlet.values.value_conversion import is_floating
from ringlet.values.variables.aggregating_variable import AggregatingVariable
from ringlet.values.variables.distributed_variable import KINDS, DistributedVariable
from ringlet.values.variables.storage import Storage, replace
from ringlet.values.variables.synchronization import (
    VariableAggregation,
    VariableSynchronization,
    check_aggregation,
    check_synchronization,
)
from ringlet.values.variables.table_storage import TableForm, TableStorage
from ringlet.values.variables.table_variable import TableVariable
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import VariableRequest, VariableSpec

_HOST = "CPU:0"  # the device of variables without a strategy


def create_plain(strategy: Any, request: VariableRequest) -> Variable:
    """Create a variable with one buffer; `strategy` is None outside strategies."""
    variable: Variable = _create_single(Variable, strategy, request)
    return variable


def create_aggregating(strategy: Any, request: VariableRequest) -> Variable:
    """Create a variable with one buffer that aggregates assignments by replicas; a plain Variable for one replica."""
    kind = AggregatingVariable if strategy.num_replicas_in_sync > 1 else Variable
    variable: Variable = _create_once(request, lambda: _create_single(kind, strategy, request))
    return variable


def create_mirrored(strategy: Any, request: VariableRequest) -> DistributedVariable:
    """Create a variable with a component for each of ``extended.worker_devices``; the same object on all replicas.

    All components have the initial value of replica 0.
    """
    variable: DistributedVariable = _create_once(request, lambda: _create_distributed(strategy, request))
    return variable


def create_on_table(
    strategy: Any, request: VariableRequest, device: str, make: Callable[[TableForm, type[Any]], TableStorage]
) -> TableVariable:
    """Create a variable that several processes share; `make` returns zero-filled storage."""
    spec, value = _single(request)
    # A table has a fixed shape, and reads return plain arrays.
    spec = dataclasses.replace(spec, shape=value.shape, reader=None)
    storage = make(TableForm(value.shape, value.dtype), request.array_type)
    storage.write(replace, value)
    return TableVariable._on(spec, storage, device, strategy)


def _create_single(cls: type[Any], strategy: Any, request: VariableRequest) -> Any:
    spec, value = _single(request)
    device = _HOST if strategy is None else strategy.extended.parameter_devices[0]
    return cls._of(spec, Storage(value, 1, request.array_type), 0, canonicalize(device), strategy)


def _single(request: VariableRequest) -> tuple[VariableSpec, Any]:
    asked = request.synchronization
    synchronization = VariableSynchronization.AUTO if asked is None else check_synchronization(asked, request.name)
    aggregation = check_aggregation(request.aggregation, request.name)
    value = request.first_value()
    return VariableSpec.of(request, value, synchronization, aggregation), value


def _create_distributed(strategy: Any, request: VariableRequest) -> DistributedVariable:
    name = request.name
    synchronization = check_synchronization(request.synchronization, name)
    if synchronization is VariableSynchronization.NONE:
        raise ValueError(
            "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
            f"`synchronization` for variable: {name} to ON_WRITE or ON_READ, or omit it"
        )
    if synchronization is VariableSynchronization.AUTO:
        synchronization = VariableSynchronization.ON_WRITE
    aggregation = check_aggregation(request.aggregation, name)
    value = strategy.extended._first_value(request)
    if aggregation is VariableAggregation.MEAN and not is_floating(value.dtype):
        raise ValueError(
            "creating distributed tf.Variable with aggregation=MEAN and a non-floating dtype is not supported, please "
            f"use a different aggregation or dtype: variable {name} would hold {value.dtype}"
        )
    devices = strategy.extended.worker_devices
    spec = VariableSpec.of(request, value, synchronization, aggregation)
    storage = Storage(value, len(devices), request.array_type)
    return KINDS[synchronization]._over(spec, storage, devices, strategy)


def _create_once(request: VariableRequest, create: Callable[[], Any]) -> Any:
    """Call a function once for all replicas, which must make the same request."""
    mode: Any = context.current()
    if mode is None or mode.local_replica_id is None:
        return create()
    return mode._merge_named(request.describe(), lambda _: create())
