"""The memory of a variable: one buffer that all replicas share, until one of them writes its own.

A value that was read never changes. Readers get views of an array that NumPy refuses to make writeable. A write goes
into the same memory if no such view is left, and into memory of the pool otherwise. Reading takes no lock.
"""

from __future__ import annotations

import contextvars
import operator
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import _core

__all__ = ["Change", "Storage", "quietly", "replace"]

Array = NDArray[Any]
Shape = tuple[int, ...]
# Writes what becomes of `old` and `value` to `new`, which may be the same memory as `old`.
Change = Callable[[Array, Any, Array], Any]

# Without the lock of the interpreter the count of an object's references says nothing about other threads.
_COUNTS_ARE_EXACT = getattr(sys, "_is_gil_enabled", lambda: True)()
# np.errstate is a context variable from NumPy 2 on, and a property of threads before.
_CONTEXTS_CARRY_ERRSTATE = int(np.__version__.partition(".")[0]) >= 2
_QUIET = contextvars.Context()
if _CONTEXTS_CARRY_ERRSTATE:
    _QUIET.run(np.seterr, all="ignore")


def quietly(function: Callable[..., Any], *args: Any) -> None:
    """Call a function of NumPy that neither warns nor raises when a number overflows, whatever ``np.errstate`` says.

    For what writes in place: NumPy would raise after it has written, which leaves the value half changed. As in
    TensorFlow the result is then infinite, or not a number.

    Parameters
    ----------
    function : callable
        Asks for no context variable of ours.
    *args : object

    Examples
    --------
    >>> total = np.array([1e308])
    >>> with np.errstate(all="raise"):
    ...     quietly(np.add, total, total, total)
    >>> total
    array([inf])
    """
    if _CONTEXTS_CARRY_ERRSTATE:  # a twentieth of what np.errstate costs, and Ctrl-C does not leave it behind
        _QUIET.copy().run(function, *args)
        return
    with np.errstate(all="ignore"):
        function(*args)


def replace(old: Array, value: Any, new: Array) -> None:
    """The change that :meth:`Storage.write_all` knows to leave all components alike.

    Examples
    --------
    >>> new = np.zeros(2)
    >>> replace(new, [1.0, 2.0], new)
    >>> new
    array([1., 2.])
    """
    quietly(operator.setitem, new, ..., value)


class _Block:
    """Memory with two arrays on it: `memory` to write to, and one whose views readers hold, alone in a list.

    `open` is the second one as well, for readers to find; None while the memory is being written to.
    """

    __slots__ = ("memory", "open", "readable")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], array_type: type[Array]) -> None:
        self.memory, array = _core.allocate(shape, dtype)
        if array_type is not np.ndarray:
            array = array.view(array_type)
        self.readable: list[Array] = [array]
        self.open: Array | None = array

    def is_held(self) -> bool:
        """Whether there is a view of the array, or a reader on its way to one; the block must be closed."""
        return not (_COUNTS_ARE_EXACT and _core.holds_alone(self.readable))


class Storage:
    """The components of one variable.

    Parameters
    ----------
    value : ndarray
        Copied; every component has it at first. Its dtype is kept and holds no objects.
    num_components : int
    array_type : type, optional
        A subclass of ndarray that reads are of.

    Notes
    -----
    Ctrl-C may come between any two instructions. A write first makes its result and then puts it in its place for all
    components in one instruction, and what it closed for readers it opens again without any call.

    Examples
    --------
    >>> storage = Storage(np.array([1.0, 2.0]), 2)
    >>> before = storage.read(0)
    >>> storage.write_all(replace, np.array([3.0, 4.0]))
    (array([3., 4.]), array([3., 4.]))
    >>> before, storage.read(1)
    (array([1., 2.]), array([3., 4.]))
    """

    __slots__ = ("__weakref__", "_array_type", "_blocks", "_dtype", "_lock")

    def __init__(self, value: Array, num_components: int, array_type: type[Array] = np.ndarray) -> None:
        self._dtype = value.dtype
        self._array_type = array_type
        block = _Block(value.shape, value.dtype, array_type)
        block.memory[...] = value
        # One for each component; never changed, but replaced by others.
        self._blocks: tuple[_Block, ...] = (block,) * num_components
        self._lock = threading.RLock()
        _storages.add(self)

    @property
    def is_shared(self) -> bool:
        """Whether all components are one buffer."""
        blocks = self._blocks
        return blocks.count(blocks[0]) == len(blocks)

    def shape(self, component: int) -> Shape:
        """Give the shape of one component."""
        return self._blocks[component].memory.shape

    def read(self, component: int) -> Array:
        """Give a new read-only array of one component's value, which never changes."""
        array = self._blocks[component].open
        view: Array = self._read_after_writer(component) if array is None else array.view()
        return view

    def read_all(self) -> list[Array]:
        """Give what :meth:`read` gives, of all components at one moment."""
        with self._lock:
            return [self.read(component) for component in range(len(self._blocks))]

    def _read_after_writer(self, component: int) -> Array:
        # Once the writer lets go of the lock, what it wrote is there.
        with self._lock:
            block = self._blocks[component]
            if block.open is not None:
                view: Array = block.open.view()
                return view
            # The writer is this very thread, in which a signal handler or a finalizer reads.
            copied: Array = block.memory.copy()
        copied.setflags(write=False)
        return copied.view(self._array_type)

    def _reopen(self) -> None:
        """In a child process: forget the writers of the parent, which will never finish here."""
        self._lock = threading.RLock()
        for block in self._blocks:
            block.open = block.readable[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        """Components of the same values; all are one buffer if they are here."""
        with self._lock:
            values = [block.readable[0] for block in self._blocks]
            twin = Storage(values[0], len(values), self._array_type)
            if not self.is_shared:
                twin.write_each(replace, values, [value.shape for value in values])
        return twin

    def write_one(self, component: int, change: Change, value: Any, shape: Shape | None = None) -> Array:
        """Change one component, which has memory of its own from then on.

        Parameters
        ----------
        component : int
        change : callable
            Takes the old array, the value and the array to write to.
        value : object
        shape : tuple of int, optional
            What the new value has; as before unless given.

        Returns
        -------
        ndarray
            What was written, read-only. It never changes while it is held; give away views of it only.
        """
        with self._lock:
            blocks = self._blocks
            block = blocks[component]
            target = self._changed(block, change, value, shape, blocks.count(block) == 1)
            self._blocks = (*blocks[:component], target, *blocks[component + 1 :])
            return target.readable[0]

    def write_all(self, change: Change, value: Any, shape: Shape | None = None) -> tuple[Array, ...]:
        """Change every component in the same way; with :func:`replace` they are one buffer afterwards.

        Parameters
        ----------
        change, value, shape
            As in :meth:`write_one`.

        Returns
        -------
        tuple of ndarray
            What :meth:`write_one` gives, of each component.
        """
        with self._lock:
            blocks = self._blocks
            count = len(blocks)
            is_shared = blocks.count(blocks[0]) == count
            if not is_shared and change is not replace:
                return self.write_each(change, (value,) * count, (shape,) * count)
            target = self._changed(blocks[0], change, value, shape, is_shared)
            self._blocks = (target,) * count
            return (target.readable[0],) * count

    def write_each(self, change: Change, values: Sequence[Any], shapes: Sequence[Shape | None]) -> tuple[Array, ...]:
        """Change every component with a value of its own: all of them, or none if a change raises.

        Parameters
        ----------
        change : callable
        values, shapes : sequence
            For each component what :meth:`write_one` takes. Neighbours that are replaced by one object share memory.

        Returns
        -------
        tuple of ndarray
            What :meth:`write_one` gives, of each component.
        """
        with self._lock:
            targets: list[_Block] = []
            for component, (block, value, shape) in enumerate(zip(self._blocks, values, shapes, strict=True)):
                is_same = component > 0 and change is replace and value is values[component - 1]
                targets.append(targets[-1] if is_same else self._changed(block, change, value, shape, False))
            self._blocks = tuple(targets)
            return tuple([target.readable[0] for target in targets])

    def _changed(self, block: _Block, change: Change, value: Any, shape: Shape | None, may_reuse: bool) -> _Block:
        """Give a block with the new value: this very one if that may be, and nobody holds the old value."""
        # A closed block is being written to by this very thread, in which a signal handler or a finalizer writes.
        if not may_reuse or block.open is None:
            target = self._fresh(block, shape)
            change(block.readable[0], value, target.memory)
            return target
        try:
            block.open = None
            fits = shape is None or shape == block.memory.shape
            target = block if fits and not block.is_held() else self._fresh(block, shape)
            change(block.readable[0], value, target.memory)
        finally:
            block.open = block.readable[0]
        return target

    def _fresh(self, block: _Block, shape: Shape | None) -> _Block:
        return _Block(block.memory.shape if shape is None else shape, self._dtype, self._array_type)


_storages: weakref.WeakSet[Storage] = weakref.WeakSet()


def _reopen_all() -> None:
    for storage in _storages:
        storage._reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen_all)
