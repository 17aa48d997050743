"""Conversion of saved variables to a different number of replicas.

Every component of a variable is saved; for ON_READ variables, this includes the components of all workers. A variable
of the same sort with the same number of components takes the saved components unchanged. Otherwise the new variable
takes the value that a read outside of replicas returned for the saved variable:

- The value is the sum or mean of the components of an ON_READ variable with SUM or MEAN, else the first component.
- A new ON_READ variable with SUM splits the value, so that the sum is the same; for integers, the first replica gets
the remainder. In other variables, every component gets the value.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

from ringlet.collectives import Op
from ringlet.collectives.single_controller import all_reduce_buffers
from ringlet.errors import InvalidArgumentError
from ringlet.train.checkpoint_reader import CheckpointFile, Entry
from ringlet.train.tensor_dtypes import Array
from ringlet.values import SyncOnReadVariable, Variable, VariableAggregation
from ringlet.values.value_conversion import fits
from ringlet.values.variables.atomic_snapshot import NewValue, components_of

_OPS = {VariableAggregation.SUM.name: Op.SUM, VariableAggregation.MEAN.name: Op.MEAN}


class Sort(enum.Enum):
    """Whether a variable has one component, equal components, or components that a read combines."""

    PLAIN = "plain"
    MIRRORED = "mirrored"
    ON_READ = "on_read"


def sort_of(variable: Variable) -> Sort:
    """Return the :class:`Sort` of a variable."""
    if isinstance(variable, SyncOnReadVariable):
        return Sort.ON_READ
    return Sort.PLAIN if len(components_of(variable)) == 1 else Sort.MIRRORED


class SavedVariable:
    """A variable as saved in a file: an entry for each component; components that share memory share an entry."""

    def __init__(self, sort: Sort, aggregation: str, entries: Sequence[Entry]) -> None:
        self.sort = sort
        self.aggregation = aggregation
        self.entries = list(entries)

    def problem_for(self, variable: Variable) -> str | None:
        """Return the reason why `variable` cannot take this value; None if it can."""
        wanted = variable._spec.shape
        for entry in self.entries:
            if entry.form.dtype != variable.dtype:
                return f"saved as {entry.form.dtype}, but variable '{variable.name}' holds {variable.dtype}"
            if not fits(entry.shape, wanted):
                return (
                    f"Received incompatible tensor with shape {entry.shape} when attempting to restore variable with "
                    f"shape {wanted} and name {variable.name}"
                )
        return None

    def new_value(self, variable: Variable, file: CheckpointFile) -> NewValue:
        """Read a new value for `variable` from the file, converted to the number of components of `variable`."""
        if self._fits_as_it_is(variable):
            entries = self.entries[:1] if self._is_shared else self.entries[_place_of(variable)]
            value = NewValue.of(variable, [entry.shape for entry in entries])
            for entry, array in zip(entries, value.arrays, strict=True):
                file.read_into(entry, array)
            return value
        whole = self._cross_replica_value(file)
        is_total = isinstance(variable, SyncOnReadVariable) and variable.aggregation is VariableAggregation.SUM
        # Values that cannot be summed, such as text, cannot be split.
        parts = _shares(variable, whole) if is_total and whole.dtype.kind not in "bSUmM" else [whole]
        value = NewValue.of(variable, [part.shape for part in parts])
        for part, array in zip(parts, value.arrays, strict=True):
            array[...] = part
        return value

    @property
    def _is_shared(self) -> bool:
        return all(entry is self.entries[0] for entry in self.entries)

    def _fits_as_it_is(self, variable: Variable) -> bool:
        count = _count_of(variable)
        if len(self.entries) != count:
            # If the components share memory, any number of components can be restored from one entry.
            return self._is_shared and Sort.ON_READ not in (self.sort, sort_of(variable))
        return count == 1 or sort_of(variable) is self.sort

    def _cross_replica_value(self, file: CheckpointFile) -> Array:
        """Return the value that a read outside of replicas returned when the variable was saved."""
        op = _OPS.get(self.aggregation) if self.sort is Sort.ON_READ else None
        if op is None or len(self.entries) == 1:
            return file.read(self.entries[0])
        arrays = {entry.name: file.read(entry) for entry in self.entries}
        components = [arrays[entry.name] for entry in self.entries]
        try:
            return all_reduce_buffers(components, op)
        except InvalidArgumentError:  # values that cannot be reduced: use the first component
            return components[0]


def _count_of(variable: Variable) -> int:
    """Return the number of components; for an ON_READ variable, one for each replica of all workers."""
    own = len(components_of(variable))
    if not isinstance(variable, SyncOnReadVariable):
        return own
    strategy = variable.distribute_strategy
    return strategy.num_replicas_in_sync if own == strategy.extended._num_local_replicas else own


def _place_of(variable: Variable) -> slice:
    """Return the slice of the components that belong to this process."""
    own = len(components_of(variable))
    if _count_of(variable) == own:
        return slice(0, own)
    first = variable.distribute_strategy.extended._first_replica
    return slice(first, first + own)


def _shares(variable: Variable, total: Array) -> list[Array]:
    assert isinstance(variable, SyncOnReadVariable)
    return variable._split_total(total)
