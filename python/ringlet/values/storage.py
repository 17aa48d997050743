"""The memory of a variable: one buffer that all replicas share, until one of them writes its own.

A value that was read never changes. Readers get views of an array that NumPy refuses to make writeable. A write goes
into the same memory if no such view is left, and into memory of the pool otherwise. Reading takes no lock.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet import _core

__all__ = ["Change", "Storage", "replace"]

Array = NDArray[Any]
# Writes what becomes of `old` and `value` to `new`, which may be the same memory as `old`.
Change = Callable[[Array, Any, Array], Any]

# Without the lock of the interpreter the count of an object's references says nothing about other threads.
_COUNTS_ARE_EXACT = getattr(sys, "_is_gil_enabled", lambda: True)()


def replace(old: Array, value: Any, new: Array) -> None:
    """The change that :meth:`Storage.write_all` knows to leave all components alike.

    Examples
    --------
    >>> new = np.zeros(2)
    >>> replace(new, [1.0, 2.0], new)
    >>> new
    array([1., 2.])
    """
    new[...] = value


class _Block:
    """Memory with two arrays on it: `memory` to write to, and one whose views readers hold, alone in a list."""

    __slots__ = ("memory", "readable")

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.memory, array = _core.allocate(shape, dtype)
        self.readable = [array]

    @property
    def array(self) -> Array:
        """What readers take views of."""
        return self.readable[0]

    def is_held(self) -> bool:
        """Whether there is a view of the array, or a reader on its way to one; its storage must be closed."""
        return not (_COUNTS_ARE_EXACT and _core.holds_alone(self.readable))


class Storage:
    """The components of one variable.

    Parameters
    ----------
    value : ndarray
        Copied; every component has it at first. Its dtype is kept and holds no objects.
    num_components : int

    Examples
    --------
    >>> storage = Storage(np.array([1.0, 2.0]), 2)
    >>> before = storage.read(0)
    >>> storage.write_all(replace, np.array([3.0, 4.0]))
    >>> before, storage.read(1)
    (array([1., 2.]), array([3., 4.]))
    """

    __slots__ = ("__weakref__", "_blocks", "_closed", "_dtype", "_is_shared", "_lock", "_open")

    def __init__(self, value: Array, num_components: int) -> None:
        self._dtype = value.dtype
        block = _Block(value.shape, value.dtype)
        block.memory[...] = value
        self._blocks = [block] * num_components
        self._is_shared = True
        # What readers take a view of; None while its memory is being written to.
        self._open: list[Array | None] = [block.array] * num_components
        self._closed: list[Array | None] = [None] * num_components
        self._lock = threading.RLock()
        _storages.add(self)

    @property
    def is_shared(self) -> bool:
        """Whether all components are one buffer."""
        return self._is_shared

    def shape(self, component: int) -> tuple[int, ...]:
        """Give the shape of one component."""
        return self._blocks[component].memory.shape

    def read(self, component: int) -> Array:
        """Give a new read-only array of one component's value, which never changes."""
        array = self._open[component]
        view: Array = self._read_after_writer(component) if array is None else array.view()
        return view

    def _read_after_writer(self, component: int) -> Array:
        # Once the writer lets go of the lock, what it wrote is there.
        with self._lock:
            array = self._open[component]
            if array is not None:
                view: Array = array.view()
                return view
            # The writer is this very thread, in which a signal handler or a finalizer reads.
            copied: Array = self._blocks[component].memory.copy()
        copied.setflags(write=False)
        return copied

    def _reopen(self) -> None:
        """In a child process: forget the writers of the parent, which will never finish here."""
        self._lock = threading.RLock()
        self._open = [block.readable[0] for block in self._blocks]

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        """Components of the same values; all are one buffer if they are here."""
        with self._lock:
            twin = Storage(self._blocks[0].array, len(self._blocks))
            if not self._is_shared:
                for component, block in enumerate(self._blocks):
                    twin.write_one(component, replace, block.array, block.array.shape)
        return twin

    def write_one(self, component: int, change: Change, value: Any, shape: tuple[int, ...] | None = None) -> None:
        """Change one component, which has memory of its own from then on.

        Parameters
        ----------
        component : int
        change : callable
            Takes the old array, the value and the array to write to.
        value : object
        shape : tuple of int, optional
            What the new value has; as before unless given.
        """
        if len(self._closed) == 1:
            self.write_all(change, value, shape)
            return
        with self._lock:
            block = self._blocks[component]
            self._open[component] = None
            try:
                is_mine = not self._is_shared and sum(other is block for other in self._blocks) == 1
                target = self._target(block, shape) if is_mine else self._fresh(block, shape)
                change(block.readable[0], value, target.memory)
                self._blocks[component] = target
                self._is_shared = False
            finally:
                self._open[component] = self._blocks[component].array

    def write_all(self, change: Change, value: Any, shape: tuple[int, ...] | None = None) -> None:
        """Change every component in the same way; with :func:`replace` they are one buffer afterwards.

        Parameters
        ----------
        change, value, shape
            As in :meth:`write_one`.
        """
        with self._lock:
            if not self._is_shared and change is not replace:
                for component in range(len(self._blocks)):
                    self.write_one(component, change, value, shape)
                return
            block = self._blocks[0]
            self._open = self._closed
            try:
                target = self._target(block, shape)
                change(block.readable[0], value, target.memory)
                self._blocks = [target] * len(self._closed)
                self._is_shared = True
            finally:
                self._open = [block.readable[0] for block in self._blocks]

    def _target(self, block: _Block, shape: tuple[int, ...] | None) -> _Block:
        """Where the new value of a block goes, for components that are closed: into its own memory if that may be."""
        if block.is_held() or shape not in (None, block.memory.shape):
            return self._fresh(block, shape)
        return block

    def _fresh(self, block: _Block, shape: tuple[int, ...] | None) -> _Block:
        return _Block(block.memory.shape if shape is None else shape, self._dtype)


_storages: weakref.WeakSet[Storage] = weakref.WeakSet()


def _reopen_all() -> None:
    for storage in _storages:
        storage._reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen_all)
