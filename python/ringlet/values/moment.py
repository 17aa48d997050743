"""Several variables at one moment: what all of them hold, and new values for all of them."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import TypeVar

from ringlet.values.storage import Array, Shape, Storage, _Block
from ringlet.values.variable import Variable

__all__ = ["NewValue", "read_at_one_moment", "write_at_one_moment"]

T = TypeVar("T")

_acquire = operator.methodcaller("acquire")
_release = operator.methodcaller("release")
_set_blocks = vars(Storage)["_blocks"].__set__


def components_of(variable: Variable) -> range:
    """Which components of its storage a variable has: all, or one if it is a component itself.

    Examples
    --------
    >>> components_of(Variable(1.5))
    range(0, 1)
    """
    if variable._container is None:
        return range(len(variable._storage._blocks))
    return range(variable._component, variable._component + 1)


def read_at_one_moment(variables: Sequence[Variable]) -> list[list[Array]]:
    """Give what the components of variables hold, all at one moment: no write is half done or comes in between.

    Parameters
    ----------
    variables : sequence of Variable

    Returns
    -------
    list of list of ndarray
        For each variable its components, read-only, without copies. Components that share memory are one object.

    Examples
    --------
    >>> read_at_one_moment([Variable(1.5), Variable([2, 3])])
    [[array(1.5)], [array([2, 3])]]
    """
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
    variable : Variable
    shapes : sequence of tuple of int
        One for each component, or a single one for all of them to share.

    Examples
    --------
    >>> v = Variable([1.0, 2.0])
    >>> value = NewValue.of(v, [(2,)])
    >>> value.arrays[0][...] = 5.0
    >>> write_at_one_moment([value])
    >>> v.numpy()
    array([5., 5.])
    """

    variable: Variable
    blocks: tuple[_Block, ...]

    @classmethod
    def of(cls, variable: Variable, shapes: Sequence[Shape]) -> NewValue:
        """Give memory for every component, or one for all of them."""
        storage = variable._storage
        return cls(variable, tuple([storage._fresh(storage._blocks[0], shape) for shape in shapes]))

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

    Arrays that were read before do not change.

    Parameters
    ----------
    values : sequence of NewValue
        Filled; nobody may write to them any more.

    Examples
    --------
    See :class:`NewValue`.
    """
    storages = [value.variable._storage for value in values]

    def write() -> None:
        blocks: dict[int, tuple[_Block, ...]] = {}
        for value, storage in zip(values, storages, strict=True):
            blocks[id(storage)] = value.among(blocks.get(id(storage), storage._blocks))
        targets = [blocks[id(storage)] for storage in storages]
        # One call, in which no signal handler runs.
        collections.deque(map(_set_blocks, storages, targets), 0)

    _while_nobody_writes(storages, write)


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
