"""Variables with a component for each replica: mirrored and sync-on-read variables."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ringlet import context
from ringlet.collectives import ReduceOp
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.values.distributed_values import DistributedValues
from ringlet.values.indexed_slices import IndexedSlices, reduce_slices
from ringlet.values.mirrored_value import Mirrored
from ringlet.values.per_replica import PerReplica
from ringlet.values.select_replica import check_components
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.scatter_nd import ND_SCATTERS
from ringlet.values.variables.storage import Change, Storage, replace
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.update_opcodes import NAMES
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import VariableSpec

Array = NDArray[Any]
V = TypeVar("V", bound="DistributedVariable")

_COMBINING = frozenset({VariableAggregation.SUM, VariableAggregation.MEAN})
# Scatters that cannot be aggregated with SUM or MEAN.
_SCATTERS_OF_ONE = frozenset({"scatter_min", "scatter_max", "scatter_update"})


def refuse_mixing(variable: Variable, mode: context.Mode) -> NoReturn:
    """Raise the error for a variable whose strategy is not the current strategy."""
    strategy = None if variable._strategy is None else variable._strategy()
    mine = "a deleted strategy" if strategy is None else repr(strategy)
    raise RuntimeError(
        f"Mixing different strategies: {mode.strategy!r} is current, but {mine} created variable '{variable.name}'. "
        "Leave the scope of the current strategy first"
    )


def refuse_late(variable: Variable, mode: context.Mode) -> None:
    """Raise an error if the replica's ``run`` has already raised: the program may be using the variable again."""
    if mode.is_abandoned:
        raise FailedPreconditionError(
            f"replica {mode.local_replica_id} tried to update variable '{variable.name}' after its strategy.run had "
            "raised. Increase the time-out with RINGLET_TIMEOUT_SECONDS, or make the step function faster"
        )


def reduced(variable: Variable, strategy: Any, value: Any) -> Any:
    """Aggregate a distributed value, or an object that all replicas share, with the aggregation of `variable`."""
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return value.values[0] if isinstance(value, DistributedValues) else value
    op = ReduceOp.from_variable_aggregation(variable.aggregation)
    if op is ReduceOp.MEAN and isinstance(value, MirroredVariable):
        return value  # the mean of equal components is each component
    if not isinstance(value, PerReplica):
        if strategy.extended._workers is None or isinstance(value, DistributedValues):
            return strategy.extended._reduce(op, value)
        # The replicas of this process share the object, but other processes also have replicas.
        value = PerReplica((value,) * strategy.extended._num_local_replicas)
    spec = variable._spec
    if isinstance(value.values[0], IndexedSlices):
        parts = [(as_value(part.values, spec.dtype, None, spec.name), part.indices) for part in value.values]
        slices = [IndexedSlices(*part) for part in parts]
        if strategy.extended._workers is None:
            return reduce_slices(op, slices)
        return strategy.extended._reduce(op, PerReplica(slices))
    numbers = [np.asarray(variable._checked(part), spec.dtype) for part in value.values]
    return strategy.extended._reduce(op, PerReplica(numbers))


class DistributedVariable(Variable, DistributedValues[Variable]):
    """A variable with one component for each replica of this process; created by strategies."""

    is_distributed_variable = True
    _repr_html_ = DistributedValues._repr_html_

    @classmethod
    def _over(cls: type[V], spec: VariableSpec, storage: Storage, devices: tuple[str, ...], strategy: Any) -> V:
        base = spec.name.removesuffix(":0")
        names = [base, *(f"{base}/replica_{i}" for i in range(1, len(devices)))]
        variable = cls._of(spec, storage, 0, devices[0], strategy)
        variable._values = tuple(
            Variable._of(spec.renamed(name), storage, i, device, strategy)
            for i, (name, device) in enumerate(zip(names, devices, strict=True))
        )
        for component in variable._values:
            component._container = weakref.ref(variable)
        return variable

    def component(self, local_replica_id: int) -> Any:
        """Return the variable itself: it selects the component of the current replica at each use."""
        return self

    @property
    def device(self) -> str:
        """Full name of the device of the current replica's or the updated component, else of the first component."""
        return self._values[self._reader()]._device

    def read_value(self) -> Any:
        """Return the current replica's or the updated component's value, else the whole variable's value; read-only."""
        mode = context.current()
        if mode is not None and mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
            refuse_mixing(self, mode)
        return self._as_operand()

    def _reader(self) -> int:
        """Return the index of the component to read: the current replica's or the updated component's, else 0."""
        mode = context.current()
        if mode is None:
            return 0
        replica = mode.local_replica_id
        if replica is None:
            replica = mode.update_replica_id or 0
        if replica >= len(self._values):
            refuse_mixing(self, mode)
        return replica

    def _as_operand(self) -> Any:
        return self._as_read(self._storage.read(self._reader()))

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        mode = context.current()
        replica = None
        if mode is not None:
            if mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
                refuse_mixing(self, mode)
            if mode.local_replica_id is not None:
                refuse_late(self, mode)
                return self._update_in_replica(mode, change, value, read_value)
            replica = mode.update_replica_id
        if replica is None:
            return self._update_all(change, value, read_value)
        return self._update_one(replica, change, value, read_value)

    def _update_one(self, replica: int, change: Change, value: Any, read_value: bool) -> Any:
        written = self._write_one(replica, change, self._checked(value))
        return self._as_read(written.view()) if read_value else None

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        raise NotImplementedError

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        raise NotImplementedError

    def _write_all(self, change: Change, value: Any) -> tuple[Array, ...]:
        """Update every component, each with its component of a distributed value, or all with the same value.

        Return the new array of each component; expose only views of them.
        """
        parts = self._parts(value) if isinstance(value, DistributedValues) else None
        if parts is None or all(part is parts[0] for part in parts):
            checked = self._checked(value if parts is None else parts[0])
            return self._storage.write_all(change, checked, self._new_shape(change, checked))
        values = [self._checked(part) for part in parts]
        return self._storage.write_each(change, values, [self._new_shape(change, part) for part in values])

    def _parts(self, value: DistributedValues[Any]) -> tuple[Any, ...]:
        check_components(value, len(self._values), f"variable '{self.name}' was given")
        if not isinstance(value, DistributedVariable):
            return value.values
        if value._storage.is_shared:
            return (value._storage.read(0),) * len(self._values)
        return tuple(value._storage.read_all())

    def __repr__(self) -> str:
        return self._table(repr)

    def __str__(self) -> str:
        return self._table(str)

    def __deepcopy__(self: V, memo: dict[int, Any]) -> V:
        devices = tuple(component._device for component in self._values)
        twin = self._over(self._spec, copy.deepcopy(self._storage, memo), devices, None)
        variables: tuple[Variable, ...] = (twin, *twin._values)
        for variable in variables:
            variable._strategy = self._strategy  # the copy belongs to the same strategy, as in TensorFlow
        memo[id(self)] = twin
        return twin


class MirroredVariable(DistributedVariable):
    """A variable whose components are kept equal; created by strategies for ON_WRITE and AUTO.

    Updates by replicas are collective: the values are combined according to the aggregation. With aggregation NONE,
    each replica updates its own component, and the components may diverge.
    """

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        if name in ND_SCATTERS:
            raise NotImplementedError(
                f"{name} is not supported for variable '{self.name}', which has a component for each replica: modify a "
                "copy of its value and assign it, or scatter whole rows (scatter_update)"
            )
        if name in _SCATTERS_OF_ONE and self.aggregation in _COMBINING:
            raise NotImplementedError(
                f"{name} is only supported for mirrored variable (variable created within certain "
                "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: "
                f"{self.aggregation}. Create the variable with one of these, or assign a modified copy of its value"
            )
        return super()._scatter(name, sparse_delta)

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        if self._spec.aggregation is VariableAggregation.NONE:
            return self._update_one(mode.local_replica_id, change, value, read_value)

        def merge_fn(strategy: Any, merged: Any) -> PerReplica[Array]:
            refuse_late(self, mode)
            return PerReplica(self._write_all(change, reduced(self, strategy, merged)))

        # Checked here, because merge_call would flatten lists.
        given = self._checked(value) if isinstance(value, (list, tuple)) else value
        # The result of this update; another thread may have written since.
        written = mode._merge_named(f"{NAMES[change]} of '{self.name}'", merge_fn, (given,), any_thread=True)
        return self._as_read(written.view()) if read_value else None

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        written = self._write_all(change, value)
        if not read_value:
            return None
        if len(written) == 1:
            return self._as_read(written[0].view())
        return Mirrored([self._as_read(array.view()) for array in written])


class SyncOnReadVariable(DistributedVariable):
    """A variable that each replica updates separately; reads in cross-replica context aggregate the components."""

    def _as_operand(self) -> Any:
        mode = context.current()
        if mode is None:
            return self._aggregated(self._storage.read_all())
        if mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
            refuse_mixing(self, mode)
        if mode.local_replica_id is not None:
            return self._as_read(self._storage.read(mode.local_replica_id))
        replica = mode.update_replica_id
        return (
            self._aggregated(self._storage.read_all())
            if replica is None
            else self._as_read(self._storage.read(replica))
        )

    def _aggregated(self, components: Sequence[Array]) -> Any:
        if self._spec.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return self._as_read(components[0])
        op = ReduceOp.from_variable_aggregation(self._spec.aggregation)
        return self._as_read(self.distribute_strategy.extended._reduce(op, PerReplica(components)))

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        raise NotImplementedError(
            f"Variables with `synchronization=ON_READ` doesn't support `{name}`: modify a copy of the value and assign "
            "it inside strategy.run, or create the variable with synchronization=ON_WRITE"
        )

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        return self._update_one(mode.local_replica_id, change, value, read_value)

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        is_sum = self.aggregation is VariableAggregation.SUM
        if is_sum and change is not replace:
            name = change.__name__
            raise ValueError(
                f"SyncOnReadVariable does not support `{name}` in cross-replica context when aggregation is set to "
                "`tf.VariableAggregation.SUM`: it would be applied once per replica. Call it inside strategy.run, or "
                "assign the new total"
            )
        if isinstance(value, PerReplica):
            raise TypeError(
                f"a PerReplica cannot be assigned to '{self.name}' outside replica context, where one value is "
                "written into all components. Pass the value to strategy.run, and assign it inside"
            )
        value = self._checked(np.asarray(value) if isinstance(value, DistributedValues) else value)
        if is_sum:
            written = self._write_parts(np.asarray(value, self.dtype))
        else:
            written = self._storage.write_all(change, value, self._new_shape(change, value))
        return self._aggregated([array.view() for array in written]) if read_value else None

    def _write_parts(self, total: Array) -> tuple[Array, ...]:
        """Write each component's part of `total`; the first replica receives the remainder of integers."""
        if self.dtype.kind in "bSU":
            raise InvalidArgumentError(
                f"variable '{self.name}' is the SUM of its components, but {self.dtype} does not support SUM: "
                "create it with an integer dtype, or with the aggregation ONLY_FIRST_REPLICA"
            )
        parts = self._split_total(total)
        shapes = [self._new_shape(replace, part) for part in parts]
        if len(parts) == 1:
            return self._storage.write_all(replace, parts[0], shapes[0])
        return self._storage.write_each(replace, parts, shapes)

    def _split_total(self, total: Array) -> list[Array]:
        strategy = self.distribute_strategy
        count = strategy.num_replicas_in_sync
        if total.dtype.kind not in "iu":
            return [np.asarray(np.true_divide(total, count).astype(self.dtype))]
        # Computed in 64 bits, because the number of replicas may exceed the dtype; wrapping sums restore the total.
        wide = total.astype(np.int64 if total.dtype.kind == "i" else np.uint64)
        share, rest = np.divmod(wide, wide.dtype.type(count))
        mine = np.asarray(share.astype(self.dtype))
        if not rest.any():
            return [mine]
        first = share + rest if strategy.extended._first_replica == 0 else share
        return [np.asarray(first.astype(self.dtype)), *[mine] * (len(self._values) - 1)]


KINDS: dict[VariableSynchronization, type[DistributedVariable]] = {
    VariableSynchronization.ON_WRITE: MirroredVariable,
    VariableSynchronization.ON_READ: SyncOnReadVariable,
}
