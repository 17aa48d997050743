"""Storage of a variable: one buffer that all replicas share until a replica writes a different value.

Arrays returned by reads never change. Readers get views of a read-only array. A write reuses the memory if no such view
exists, and allocates a new block from the pool otherwise. Reads take no lock unless a write is in progress.
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

Array = NDArray[Any]
Shape = tuple[int, ...]
# update(old, value, new) writes the result to `new`, which may be the same memory as `old`.
Change = Callable[[Array, Any, Array], Any]

# In free-threaded builds a reference count does not exclude concurrent readers.
_COUNTS_ARE_EXACT = getattr(sys, "_is_gil_enabled", lambda: True)()
# The state of np.errstate is a context variable since NumPy 2, and thread-local in NumPy 1.
_CONTEXTS_CARRY_ERRSTATE = int(np.__version__.partition(".")[0]) >= 2
_QUIET = contextvars.Context()
if _CONTEXTS_CARRY_ERRSTATE:
    _QUIET.run(np.seterr, all="ignore")


def quietly(function: Callable[..., Any], *args: Any) -> None:
    """Call a NumPy function with all floating-point warnings and errors ignored.

    Used for in-place writes: NumPy raises an error after writing, which would leave a partly updated value. As in
    TensorFlow, results are infinite or NaN instead. The function must not read context variables of the caller.
    """
    if _CONTEXTS_CARRY_ERRSTATE:  # 20 times faster than np.errstate, and safe against Ctrl-C
        _QUIET.copy().run(function, *args)
        return
    with np.errstate(all="ignore"):
        function(*args)


def replace(old: Array, value: Any, new: Array) -> None:
    """Update that assigns `value`; :meth:`Storage.write_all` lets all components share its result."""
    quietly(operator.setitem, new, ..., value)


class _Block:
    """A memory block: the writeable array `memory`, and a read-only array for readers, the only item of `readable`.

    `open` is the read-only array; a write closes the block by setting `open` to None.
    """

    __slots__ = ("memory", "open", "readable")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], array_type: type[Array]) -> None:
        self.memory, array = _core.allocate(shape, dtype)
        if array_type is not np.ndarray:
            array = array.view(array_type)
        self.readable: list[Array] = [array]
        self.open: Array | None = array

    def is_held(self) -> bool:
        """Return whether a reader may have, or be creating, a view of the array; `open` must be None."""
        return not (_COUNTS_ARE_EXACT and _core.holds_alone(self.readable))


class Storage:
    """The components of one variable. The initial value is copied; its dtype is fixed and must not hold objects.

    KeyboardInterrupt may occur between any two instructions. A write computes its result, then installs it for all
    components in one instruction; it reopens closed blocks without a function call.
    """

    __slots__ = ("__weakref__", "_array_type", "_blocks", "_dtype", "_lock")

    def __init__(self, value: Array, num_components: int, array_type: type[Array] = np.ndarray) -> None:
        self._dtype = value.dtype
        self._array_type = array_type
        block = _Block(value.shape, value.dtype, array_type)
        block.memory[...] = value
        # One block for each component; the tuple is replaced, never modified.
        self._blocks: tuple[_Block, ...] = (block,) * num_components
        self._lock = threading.RLock()
        _storages.add(self)

    @property
    def is_shared(self) -> bool:
        """Whether all components share one block."""
        blocks = self._blocks
        return blocks.count(blocks[0]) == len(blocks)

    def shape(self, component: int) -> Shape:
        """Return the shape of one component."""
        return self._blocks[component].memory.shape

    def read(self, component: int) -> Array:
        """Return one component's value as a new read-only array, which never changes."""
        array = self._blocks[component].open
        view: Array = self._read_after_writer(component) if array is None else array.view()
        return view

    def read_all(self) -> list[Array]:
        """Return an atomic snapshot of all components."""
        with self._lock:
            return [self.read(component) for component in range(len(self._blocks))]

    def _read_after_writer(self, component: int) -> Array:
        # Wait for the writer, which holds the lock.
        with self._lock:
            block = self._blocks[component]
            if block.open is not None:
                view: Array = block.open.view()
                return view
            # This thread is the writer; the read is in a signal handler or a finalizer.
            copied: Array = block.memory.copy()
        copied.setflags(write=False)
        return copied.view(self._array_type)

    def _reopen(self) -> None:
        self._lock = threading.RLock()
        for block in self._blocks:
            block.open = block.readable[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        """Copy the components; the copies share one block if the originals do."""
        with self._lock:
            values = [block.readable[0] for block in self._blocks]
            twin = Storage(values[0], len(values), self._array_type)
            if not self.is_shared:
                twin.write_each(replace, values, [value.shape for value in values])
        return twin

    def write_one(self, component: int, change: Change, value: Any, shape: Shape | None = None) -> Array:
        """Update one component, which then no longer shares its block; `shape` is the shape of the new value.

        `change` is called with the old array, the value and the array to write to. Returns the new value, read-only and
        never modified while referenced: expose only views of it.
        """
        with self._lock:
            blocks = self._blocks
            block = blocks[component]
            target = self._updated_block(block, change, value, shape, blocks.count(block) == 1)
            self._blocks = (*blocks[:component], target, *blocks[component + 1 :])
            return target.readable[0]

    def write_all(self, change: Change, value: Any, shape: Shape | None = None) -> tuple[Array, ...]:
        """Apply the same update to every component; after :func:`replace`, all components share one block."""
        with self._lock:
            blocks = self._blocks
            count = len(blocks)
            is_shared = blocks.count(blocks[0]) == count
            if not is_shared and change is not replace:
                return self.write_each(change, (value,) * count, (shape,) * count)
            target = self._updated_block(blocks[0], change, value, shape, is_shared)
            self._blocks = (target,) * count
            return (target.readable[0],) * count

    def write_each(self, change: Change, values: Sequence[Any], shapes: Sequence[Shape | None]) -> tuple[Array, ...]:
        """Update every component with its own value; if an update raises an error, no component changes.

        With :func:`replace`, consecutive components that get the same object share a block.
        """
        with self._lock:
            targets: list[_Block] = []
            for component, (block, value, shape) in enumerate(zip(self._blocks, values, shapes, strict=True)):
                is_same = component > 0 and change is replace and value is values[component - 1]
                targets.append(targets[-1] if is_same else self._updated_block(block, change, value, shape, False))
            self._blocks = tuple(targets)
            return tuple([target.readable[0] for target in targets])

    def _updated_block(self, block: _Block, change: Change, value: Any, shape: Shape | None, may_reuse: bool) -> _Block:
        """Return a block with the new value; the same block if reuse is allowed and no reader holds the old value."""
        # A closed block indicates a nested write of this thread, in a signal handler or a finalizer.
        if not may_reuse or block.open is None:
            target = self._new_block(block, shape)
            change(block.readable[0], value, target.memory)
            return target
        try:
            block.open = None
            fits = shape is None or shape == block.memory.shape
            target = block if fits and not block.is_held() else self._new_block(block, shape)
            change(block.readable[0], value, target.memory)
        finally:
            block.open = block.readable[0]
        return target

    def _new_block(self, block: _Block, shape: Shape | None) -> _Block:
        return _Block(block.memory.shape if shape is None else shape, self._dtype, self._array_type)


_storages: weakref.WeakSet[Storage] = weakref.WeakSet()


def _reopen_all() -> None:
    for storage in _storages:
        storage._reopen()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reopen_all)
