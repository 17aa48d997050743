"""What becomes of a variable that is restored where there are more or fewer replicas than where it was saved.

Every component is saved, of ON_READ variables those of all workers. Into as many components of a variable of the same
sort each goes as it is. Otherwise what the
saved variable is worth as a whole, as a read outside of replicas gives it, becomes what the new one is worth:

- saved as ON_READ with SUM or MEAN: the sum or the mean of its components; of all others the first component;
- into an ON_READ variable with SUM: shared out, so that the sum is the same; the first replica gets what is left over
  of whole numbers. Into all others: every component has it.
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

__all__ = ["SavedVariable", "Sort", "sort_of"]

_OPS = {VariableAggregation.SUM.name: Op.SUM, VariableAggregation.MEAN.name: Op.MEAN}


class Sort(enum.Enum):
    """What the components of a variable are to each other."""

    PLAIN = "plain"
    MIRRORED = "mirrored"
    ON_READ = "on_read"


def sort_of(variable: Variable) -> Sort:
    """Tell what the components of a variable are to each other.

    Examples
    --------
    >>> sort_of(Variable(1.5))
    <Sort.PLAIN: 'plain'>
    """
    if isinstance(variable, SyncOnReadVariable):
        return Sort.ON_READ
    return Sort.PLAIN if len(components_of(variable)) == 1 else Sort.MIRRORED


class SavedVariable:
    """What a file has of a variable.

    Parameters
    ----------
    sort : Sort
    aggregation : str
        Name of a VariableAggregation.
    entries : sequence of Entry
        Of each component; those that shared memory have one.
    """

    def __init__(self, sort: Sort, aggregation: str, entries: Sequence[Entry]) -> None:
        self.sort = sort
        self.aggregation = aggregation
        self.entries = list(entries)

    def problem_for(self, variable: Variable) -> str | None:
        """Say why a variable cannot take this; None if it can."""
        wanted = variable._spec.shape
        for entry in self.entries:
            if entry.form.dtype != variable.dtype:
                return f"saved as {entry.form.dtype}, and variable '{variable.name}' holds {variable.dtype}"
            if not fits(entry.shape, wanted):
                return (
                    f"Received incompatible tensor with shape {entry.shape} when attempting to restore variable with "
                    f"shape {wanted} and name {variable.name}"
                )
        return None

    def new_value(self, variable: Variable, file: CheckpointFile) -> NewValue:
        """Read what a variable is going to hold."""
        if self._fits_as_it_is(variable):
            entries = self.entries[:1] if self._is_shared else self.entries[_place_of(variable)]
            value = NewValue.of(variable, [entry.shape for entry in entries])
            for entry, array in zip(entries, value.arrays, strict=True):
                file.read_into(entry, array)
            return value
        whole = self._worth(file)
        is_total = isinstance(variable, SyncOnReadVariable) and variable.aggregation is VariableAggregation.SUM
        # What cannot be added up, such as text, is not shared out either.
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
            # All of them are the same, which is what all of another number are going to be.
            return self._is_shared and Sort.ON_READ not in (self.sort, sort_of(variable))
        return count == 1 or sort_of(variable) is self.sort

    def _worth(self, file: CheckpointFile) -> Array:
        """What a read outside of replicas would have given where it was saved."""
        op = _OPS.get(self.aggregation) if self.sort is Sort.ON_READ else None
        if op is None or len(self.entries) == 1:
            return file.read(self.entries[0])
        arrays = {entry.name: file.read(entry) for entry in self.entries}
        components = [arrays[entry.name] for entry in self.entries]
        try:
            return all_reduce_buffers(components, op)
        except InvalidArgumentError:  # of what cannot be combined, the first one
            return components[0]


def _count_of(variable: Variable) -> int:
    """How many components a variable has; one of ON_READ has one for each replica of all workers."""
    own = len(components_of(variable))
    if not isinstance(variable, SyncOnReadVariable):
        return own
    strategy = variable.distribute_strategy
    return strategy.num_replicas_in_sync if own == strategy.extended._num_local_replicas else own


def _place_of(variable: Variable) -> slice:
    """Which of all these components this process has."""
    own = len(components_of(variable))
    if _count_of(variable) == own:
        return slice(0, own)
    first = variable.distribute_strategy.extended._first_replica
    return slice(first, first + own)


def _shares(variable: Variable, total: Array) -> list[Array]:
    """What each component gets of a total, as if it was assigned."""
    assert isinstance(variable, SyncOnReadVariable)
    return variable._shares(total)
