"""Several variables at one moment: what all of them hold, and new values for all of them."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import numpy as np

from ringlet import _core
from ringlet.values.variables.row_lookup import RowReader, copy_rows
from ringlet.values.variables.sharded_variable import ShardedVariable
from ringlet.values.variables.storage import Array, Shape, Storage, _Block
from ringlet.values.variables.table_variable import TableVariable
from ringlet.values.variables.variable import Variable

__all__ = ["NewValue", "read_at_one_moment", "write_at_one_moment"]

T = TypeVar("T")

_acquire = operator.methodcaller("acquire")
_release = operator.methodcaller("release")
_set_blocks = vars(Storage)["_blocks"].__set__


# A variable that is read and written as a whole, whatever it consists of; or one with components of its own.
AnyVariable = Variable | ShardedVariable


def components_of(variable: AnyVariable) -> range:
    """Which components of its storage a variable has: all, or one if it is a component itself, or is made of rows.

    Examples
    --------
    >>> components_of(Variable(1.5))
    range(0, 1)
    """
    if isinstance(variable, RowReader):
        return range(1)
    if variable._container is None:
        return range(len(variable._storage._blocks))
    return range(variable._component, variable._component + 1)


def read_at_one_moment(variables: Sequence[AnyVariable]) -> list[list[Array]]:
    """Give what the components of variables hold, all at one moment: no write is half done or comes in between.

    What other processes write to, too, is read row by row: each row is whole, others may be newer or older.

    Parameters
    ----------
    variables : sequence of Variable or ShardedVariable

    Returns
    -------
    list of list of ndarray
        For each variable its components, read-only, without copies; one copy of the whole of those made of rows.
        Components that share memory are one object.

    Examples
    --------
    >>> read_at_one_moment([Variable(1.5), Variable([2, 3])])
    [[array(1.5)], [array([2, 3])]]
    """
    parts = [variable.variables if isinstance(variable, ShardedVariable) else [variable] for variable in variables]
    private = [part for each in parts for part in each if not isinstance(part, TableVariable)]
    read = dict(zip(map(id, private), _read_private(private), strict=True))
    return [
        [_whole(variable, read)] if isinstance(variable, RowReader) else read[id(variable)] for variable in variables
    ]


def _whole(variable: TableVariable | ShardedVariable, read: dict[int, list[Array]]) -> Array:
    """All rows of a variable, those of private shards as they were read."""
    if isinstance(variable, TableVariable):
        return np.asarray(variable.read_value())
    memory, whole = _core.allocate(variable.shape, variable.dtype)
    begin = 0
    for shard in variable.variables:
        end = begin + shard.shape[0]
        if id(shard) in read:
            memory[begin:end] = read[id(shard)][0]
        else:
            copy_rows(shard, 0, end - begin, memory[begin:end])
        begin = end
    return whole


def _read_private(variables: Sequence[Variable]) -> list[list[Array]]:
    storages = [variable._storage for variable in variables]

    def read() -> list[list[Array]]:
        values = []
        for variable, storage in zip(variables, storages, strict=True):
            views = {id(block): storage.read(i) for i, block in enumerate(storage._blocks)}
            values.append([views[id(storage._blocks[i])] for i in components_of(variable)])
        return values

    return _while_nobody_writes(storages, read)


@dataclasses.dataclass(frozen=True)
class NewValue:
    """Memory for what a variable is going to hold: fill it, then :func:`write_at_one_moment` puts it in its place.

    Parameters
    ----------
    variable : Variable or ShardedVariable
    blocks : tuple
        Memory for each component, or a single one for all of them to share. One of the whole for a variable that is
        made of rows.

    Examples
    --------
    >>> v = Variable([1.0, 2.0])
    >>> value = NewValue.of(v, [(2,)])
    >>> value.arrays[0][...] = 5.0
    >>> write_at_one_moment([value])
    >>> v.numpy()
    array([5., 5.])
    """

    variable: AnyVariable
    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, variable: AnyVariable, shapes: Sequence[Shape]) -> NewValue:
        """Give memory for every component, or one for all of them."""
        kind = np.ndarray if isinstance(variable, RowReader) else variable._storage._array_type
        return cls(variable, tuple([_Block(shape, variable.dtype, kind) for shape in shapes]))

    @property
    def arrays(self) -> list[Array]:
        """What to fill: uninitialized, contiguous, writeable."""
        return [block.memory for block in self.blocks]

    def among(self, present: tuple[_Block, ...]) -> tuple[_Block, ...]:
        """Give what the storage of the variable holds with this in its place."""
        places = components_of(self.variable)
        mine = self.blocks * len(places) if len(self.blocks) == 1 else self.blocks
        return (*present[: places.start], *mine, *present[places.stop :])


def write_at_one_moment(values: Sequence[NewValue]) -> None:
    """Put new values in the place of what variables hold: in all of them, or in none if Ctrl-C comes first.

    Arrays that were read before do not change. What is made of rows is written after that, row by row.

    Parameters
    ----------
    values : sequence of NewValue
        Filled; nobody may write to them any more.

    Examples
    --------
    See :class:`NewValue`.
    """
    private = [value for value in values if not isinstance(value.variable, RowReader)]
    storages = [cast("Variable", value.variable)._storage for value in private]

    def write() -> None:
        blocks: dict[int, tuple[_Block, ...]] = {}
        for value, storage in zip(private, storages, strict=True):
            blocks[id(storage)] = value.among(blocks.get(id(storage), storage._blocks))
        targets = [blocks[id(storage)] for storage in storages]
        # One call, in which no signal handler runs.
        collections.deque(map(_set_blocks, storages, targets), 0)

    _while_nobody_writes(storages, write)
    for value in values:
        if isinstance(value.variable, RowReader):
            value.variable.assign(value.arrays[0])


def _while_nobody_writes(storages: Sequence[Storage], action: Callable[[], T]) -> T:
    """Call a function while this thread has the locks of all storages, which all threads take in the same order."""
    locks = [storage._lock for storage in sorted({id(storage): storage for storage in storages}.values(), key=id)]
    taken: list[bool] = []
    # Neither taking and noting nor giving back lets a signal handler in between: it would leave a lock taken for ever.
    releases = map(_release, itertools.compress(locks, taken))
    try:
        taken.extend(map(_acquire, locks))
        return action()
    finally:
        collections.deque(releases, 0)
