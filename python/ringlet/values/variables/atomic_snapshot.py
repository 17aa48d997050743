"""Atomic reads and writes of several variables."""

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

T = TypeVar("T")

_acquire = operator.methodcaller("acquire")
_release = operator.methodcaller("release")
_set_blocks = vars(Storage)["_blocks"].__set__


AnyVariable = Variable | ShardedVariable


def components_of(variable: AnyVariable) -> range:
    """Return the indices of a variable's components in its storage; only 0 for table and sharded variables."""
    if isinstance(variable, RowReader):
        return range(1)
    if variable._container is None:
        return range(len(variable._storage._blocks))
    return range(variable._component, variable._component + 1)


def read_atomically(variables: Sequence[AnyVariable]) -> list[list[Array]]:
    """Return the components of each variable as read-only arrays, in one atomic snapshot.

    Variables shared between processes are copied row by row: each row is consistent, but rows may differ in age.
    Components that share memory are returned as the same array.
    """
    parts = [variable.variables if isinstance(variable, ShardedVariable) else [variable] for variable in variables]
    private = [part for each in parts for part in each if not isinstance(part, TableVariable)]
    read = dict(zip(map(id, private), _read_private(private), strict=True))
    return [
        [_whole(variable, read)] if isinstance(variable, RowReader) else read[id(variable)] for variable in variables
    ]


def _whole(variable: TableVariable | ShardedVariable, read: dict[int, list[Array]]) -> Array:
    """Return all rows of a variable; `read` holds the values of private shards, by id."""
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

    return _without_writers(storages, read)


@dataclasses.dataclass(frozen=True)
class NewValue:
    """Memory for a new value of a variable: fill it, then pass it to :func:`write_atomically`.

    There is one block for each component, or a single block for all components, or for all rows of a RowReader.
    """

    variable: AnyVariable
    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, variable: AnyVariable, shapes: Sequence[Shape]) -> NewValue:
        """Allocate a block for each shape: one per component, or one for all components."""
        kind = np.ndarray if isinstance(variable, RowReader) else variable._storage._array_type
        return cls(variable, tuple([_Block(shape, variable.dtype, kind) for shape in shapes]))

    @property
    def arrays(self) -> list[Array]:
        """The arrays to fill: uninitialized, contiguous, writeable."""
        return [block.memory for block in self.blocks]

    def among(self, present: tuple[_Block, ...]) -> tuple[_Block, ...]:
        """Return `present`, the blocks of the storage, with the new blocks in place of those of this variable."""
        places = components_of(self.variable)
        mine = self.blocks * len(places) if len(self.blocks) == 1 else self.blocks
        return (*present[: places.start], *mine, *present[places.stop :])


def write_atomically(values: Sequence[NewValue]) -> None:
    """Replace the values of all variables atomically; Ctrl-C cannot interrupt between variables.

    Arrays that were read earlier do not change. RowReader variables are written last, row by row. The values must
    not be modified afterwards.
    """
    private = [value for value in values if not isinstance(value.variable, RowReader)]
    storages = [cast("Variable", value.variable)._storage for value in private]

    def write() -> None:
        blocks: dict[int, tuple[_Block, ...]] = {}
        for value, storage in zip(private, storages, strict=True):
            blocks[id(storage)] = value.among(blocks.get(id(storage), storage._blocks))
        targets = [blocks[id(storage)] for storage in storages]
        # A single C call, during which no signal handler runs.
        collections.deque(map(_set_blocks, storages, targets), 0)

    _without_writers(storages, write)
    for value in values:
        if isinstance(value.variable, RowReader):
            value.variable.assign(value.arrays[0])


def _without_writers(storages: Sequence[Storage], action: Callable[[], T]) -> T:
    """Call a function while holding the locks of all storages, acquired in a global order."""
    locks = [storage._lock for storage in sorted({id(storage): storage for storage in storages}.values(), key=id)]
    taken: list[bool] = []
    # Acquiring and releasing run in single C calls: a signal handler in between could leave a lock held forever.
    releases = map(_release, itertools.compress(locks, taken))
    try:
        taken.extend(map(_acquire, locks))
        return action()
    finally:
        collections.deque(releases, 0)
