"""Variables with a component for each replica: mirrored ones, and those that are combined when they are read."""

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
from ringlet.values.variables.storage import Change, Storage, replace
from ringlet.values.variables.synchronization import VariableAggregation, VariableSynchronization
from ringlet.values.variables.update_opcodes import NAMES
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import VariableSpec

__all__ = ["DistributedVariable", "MirroredVariable", "SyncOnReadVariable", "reduced", "refuse_late", "refuse_mixing"]

Array = NDArray[Any]
V = TypeVar("V", bound="DistributedVariable")

_COMBINING = frozenset({VariableAggregation.SUM, VariableAggregation.MEAN})
# Scatters whose result depends on which replica is asked first, so that there is nothing to aggregate.
_SCATTERS_OF_ONE = frozenset({"scatter_min", "scatter_max", "scatter_update"})


def refuse_mixing(variable: Variable, mode: context.Mode) -> NoReturn:
    """Refuse the use of a variable while another strategy than its own is current."""
    strategy = None if variable._strategy is None else variable._strategy()
    mine = "a strategy that is gone" if strategy is None else repr(strategy)
    raise RuntimeError(
        f"Mixing different strategies: {mode.strategy!r} is current and is not {mine}, which made variable "
        f"'{variable.name}'. Leave the scope of the first before using variables of the second"
    )


def refuse_late(variable: Variable, mode: context.Mode) -> None:
    """Refuse a change by a replica whose run has raised: the variable belongs to the caller again."""
    if mode.is_given_up:
        raise FailedPreconditionError(
            f"variable '{variable.name}' was to be changed by replica {mode.local_replica_id} after its strategy.run "
            "had raised. Allow the run more time with RINGLET_TIMEOUT_SECONDS, or let the step function end earlier"
        )


def reduced(variable: Variable, strategy: Any, value: Any) -> Any:
    """Combine what the replicas gave, as the variable's aggregation says.

    Parameters
    ----------
    variable : Variable
    strategy : Strategy
        The variable's.
    value : object
        As ``merge_call`` hands it on: a PerReplica, or what is the same object in all replicas.

    Returns
    -------
    object
        What all components are to be changed with.
    """
    if variable.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return value.values[0] if isinstance(value, DistributedValues) else value
    op = ReduceOp.from_variable_aggregation(variable.aggregation)
    if op is ReduceOp.MEAN and isinstance(value, MirroredVariable):
        return value  # taken to be its own mean; each component gets its part, even where they have come to differ
    if not isinstance(value, PerReplica):
        if strategy.extended._workers is None or isinstance(value, DistributedValues):
            return strategy.extended._reduce(op, value)
        # The same object for the replicas of this process, where there are replicas of others.
        value = PerReplica((value,) * strategy.extended._num_local_replicas)
    spec = variable._spec
    if isinstance(value.values[0], IndexedSlices):
        parts = [(as_value(part.values, spec.dtype, None, spec.name), part.indices) for part in value.values]
        slices = [IndexedSlices(*part) for part in parts]
        if strategy.extended._workers is None:
            return reduce_slices(op, slices)
        return strategy.extended._reduce(op, PerReplica(slices))
    # Python numbers take the variable's dtype before they are combined.
    numbers = [np.asarray(variable._checked(part), spec.dtype) for part in value.values]
    return strategy.extended._reduce(op, PerReplica(numbers))


class DistributedVariable(Variable, DistributedValues[Variable]):
    """A variable with one component for each replica of this process; made by strategies.

    Examples
    --------
    >>> import ringlet
    >>> with ringlet.MirroredStrategy(["CPU:0", "CPU:1"]).scope():
    ...     v = ringlet.Variable(1.5, name="v")
    >>> isinstance(v, DistributedVariable), [component.name for component in v.values]
    (True, ['v:0', 'v/replica_1:0'])
    """

    is_distributed_variable = True

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
        """Give the variable itself: replicas use it as a whole, and it knows which of them asks."""
        return self

    @property
    def device(self) -> str:
        """The full name of the device of the component that would be read."""
        return self._values[self._reader()]._device

    def read_value(self) -> Any:
        """Give the current replica's value, or outside of replicas that of all; read-only, without a copy."""
        mode = context.current()
        if mode is not None and mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
            refuse_mixing(self, mode)
        return self._as_operand()

    def _reader(self) -> int:
        """Whose component is read here: the current replica's, that of the update that goes on, else the first."""
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
        return self._seen(self._storage.read(self._reader()))

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
        return self._seen(written.view()) if read_value else None

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        raise NotImplementedError

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        raise NotImplementedError

    def _write_all(self, change: Change, value: Any) -> tuple[Array, ...]:
        """Change every component: each with its own part of a distributed value, or all with the same value.

        Gives what each component has now, for views of it to be given away.
        """
        parts = self._parts(value) if isinstance(value, DistributedValues) else None
        if parts is None or all(part is parts[0] for part in parts):
            checked = self._checked(value if parts is None else parts[0])
            return self._storage.write_all(change, checked, self._new_shape(change, checked))
        values = [self._checked(part) for part in parts]
        return self._storage.write_each(change, values, [self._new_shape(change, part) for part in values])

    def _parts(self, value: DistributedValues[Any]) -> tuple[Any, ...]:
        """What each component is given of a distributed value."""
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
            variable._strategy = self._strategy  # as in TensorFlow the copy belongs to the same strategy
        memo[id(self)] = twin
        return twin


class MirroredVariable(DistributedVariable):
    """A variable whose components are kept equal; made by strategies (ON_WRITE, which AUTO means).

    Replicas write to it together: what they give is combined as the aggregation says. With the aggregation NONE each
    writes its own component, and the components may come to differ.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope():
    ...     v = ringlet.Variable(0.0, aggregation=ringlet.VariableAggregation.SUM)
    >>> def step():
    ...     v.assign_add(np.float64(ringlet.get_replica_context().replica_id_in_sync_group + 1))
    >>> strategy.run(step)
    >>> print(v.read_value())
    3.0
    """

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        if name in _SCATTERS_OF_ONE and self.aggregation in _COMBINING:
            raise NotImplementedError(
                f"{name} is only supported for mirrored variable (variable created within certain "
                "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: "
                f"{self.aggregation}. Make the variable with one of these, or assign a changed copy of its value"
            )
        return super()._scatter(name, sparse_delta)

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        if self._spec.aggregation is VariableAggregation.NONE:
            return self._update_one(mode.local_replica_id, change, value, read_value)

        def merge_fn(strategy: Any, merged: Any) -> PerReplica[Array]:
            refuse_late(self, mode)
            return PerReplica(self._write_all(change, reduced(self, strategy, merged)))

        # Lists would be taken apart on the way.
        given = self._checked(value) if isinstance(value, (list, tuple)) else value
        # What was written here: another thread may have written since.
        written = mode._merge_named(f"{NAMES[change]} of '{self.name}'", merge_fn, (given,))
        return self._seen(written.view()) if read_value else None

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        written = self._write_all(change, value)
        if not read_value:
            return None
        if len(written) == 1:
            return self._seen(written[0].view())
        return Mirrored([self._seen(array.view()) for array in written])


class SyncOnReadVariable(DistributedVariable):
    """A variable that each replica writes to by itself; reads outside of replicas combine them; made by strategies.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> with strategy.scope():
    ...     count = ringlet.Variable(
    ...         0, synchronization=ringlet.VariableSynchronization.ON_READ, aggregation=ringlet.VariableAggregation.SUM)
    >>> _ = strategy.run(lambda: count.assign_add(5))
    >>> print(count.read_value())
    10
    """

    def _as_operand(self) -> Any:
        mode = context.current()
        if mode is None:
            return self._combined(self._storage.read_all())
        if mode.strategy is not self._strategy():  # type: ignore[misc]  # made by a strategy
            refuse_mixing(self, mode)
        if mode.local_replica_id is not None:
            return self._seen(self._storage.read(mode.local_replica_id))
        replica = mode.update_replica_id
        return self._combined(self._storage.read_all()) if replica is None else self._seen(self._storage.read(replica))

    def _combined(self, components: Sequence[Array]) -> Any:
        """Combine what the replicas had at one moment."""
        if self._spec.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return self._seen(components[0])
        op = ReduceOp.from_variable_aggregation(self._spec.aggregation)
        return self._seen(self.distribute_strategy.extended._reduce(op, PerReplica(components)))

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        raise NotImplementedError(
            f"Variables with `synchronization=ON_READ` doesn't support `{name}`: read the value, change it and assign "
            "it inside strategy.run, or make the variable with synchronization=ON_WRITE"
        )

    def _update_in_replica(self, mode: Any, change: Change, value: Any, read_value: bool) -> Any:
        return self._update_one(mode.local_replica_id, change, value, read_value)

    def _update_all(self, change: Change, value: Any, read_value: bool) -> Any:
        is_sum = self.aggregation is VariableAggregation.SUM
        if is_sum and change is not replace:
            name = change.__name__
            raise ValueError(
                f"SyncOnReadVariable does not support `{name}` in cross-replica context when aggregation is set to "
                "`tf.VariableAggregation.SUM`: it would count once for each replica. Call it inside strategy.run, or "
                "assign the new total"
            )
        if isinstance(value, PerReplica):
            raise TypeError(
                f"a PerReplica cannot go into '{self.name}' outside of replicas: one value is written to all its "
                "components there. Pass the value to strategy.run, and assign it inside"
            )
        value = self._checked(np.asarray(value) if isinstance(value, DistributedValues) else value)
        if is_sum:
            written = self._share_out(np.asarray(value, self.dtype))
        else:
            written = self._storage.write_all(change, value, self._new_shape(change, value))
        return self._combined([array.view() for array in written]) if read_value else None

    def _share_out(self, total: Array) -> tuple[Array, ...]:
        """Give each replica its part, so that the total is what was assigned; the first one gets what is left over."""
        if self.dtype.kind in "bSU":
            raise InvalidArgumentError(
                f"variable '{self.name}' is the SUM of its components, and there is no SUM of {self.dtype}: make it "
                "with an integer dtype, or with the aggregation ONLY_FIRST_REPLICA"
            )
        parts = self._shares(total)
        shapes = [self._new_shape(replace, part) for part in parts]
        if len(parts) == 1:
            return self._storage.write_all(replace, parts[0], shapes[0])
        return self._storage.write_each(replace, parts, shapes)

    def _shares(self, total: Array) -> list[Array]:
        """What the components get of a total; one array if all get the same."""
        strategy = self.distribute_strategy
        count = strategy.num_replicas_in_sync
        if total.dtype.kind not in "iu":
            return [np.asarray(np.true_divide(total, count).astype(self.dtype))]
        # The number of replicas may be more than the dtype holds; sums wrap round, so that the total is right again.
        wide = total.astype(np.int64 if total.dtype.kind == "i" else np.uint64)
        share, rest = np.divmod(wide, wide.dtype.type(count))
        mine = np.asarray(share.astype(self.dtype))
        if not rest.any():
            return [mine]
        first = share + rest if strategy.extended._first_replica == 0 else share
        return [np.asarray(first.astype(self.dtype)), *[mine] * (len(self._values) - 1)]


KINDS = {
    VariableSynchronization.ON_WRITE: MirroredVariable,
    VariableSynchronization.ON_READ: SyncOnReadVariable,
}
