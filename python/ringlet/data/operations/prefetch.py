"""Elements made ahead of time, in a thread."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import RestoredFailure
from ringlet.data.graph.node import Node, RowStream, Run, State, Stream, Transformation
from ringlet.data.graph.thread_map import DROPPED_SECONDS, WORTH_A_THREAD_BYTES, other_process
from ringlet.data.operations.counts import AUTOTUNE, check_buffer_size
from ringlet.data.state.saved_elements import load_elements, save_elements

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Prefetch", "PrefetchElements", "prefetch"]

# What AUTOTUNE means for a buffer: one element in work while one is ready.
_AUTOMATIC_SIZE = 2


def prefetch(self: Dataset, buffer_size: int | None, name: str | None = None) -> Dataset:
    """Make elements in a thread, before they are asked for.

    Parameters
    ----------
    buffer_size : int or None
        How many elements may wait to be asked for. AUTOTUNE (-1) and None choose; 0 makes them when they are asked for.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        The same elements in the same order. Where nothing but slices of arrays, or small batches of them, are made, no
        thread is used: handing over would cost more than making.

    Raises
    ------
    InvalidArgumentError
        If `buffer_size` is less than -1.

    Notes
    -----
    The thread starts with the first element that an iterator is asked for. It ends with the last element, with an
    exception (which surfaces at the iterator, in its place; going on behind it starts another thread), and when the
    iterator is closed, dropped, or the interpreter exits.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(3).map(lambda x: x * x).prefetch(2)]
    [0, 1, 4]
    """
    return type(self)(Prefetch(self.node, check_buffer_size(buffer_size)))


@dataclass(frozen=True, eq=False)
class Prefetch(Transformation):
    """The same elements, made ahead."""

    buffer_size: int

    @property
    def from_row_zero(self) -> bool:
        """Whether those of the input are."""
        return self.input.from_row_zero

    def open_rows(self, run: Run) -> RowStream:
        """Row numbers are there at once: nothing to be ahead of."""
        return self.input.open_rows(run)

    def open_elements(self, run: Run) -> Stream:
        """Start a run, with a thread where that can pay."""
        stream = self.input.open(run)
        is_cheap = not (self.runs_user_code or self.has_files) and self.bytes_copied < WORTH_A_THREAD_BYTES
        if self.buffer_size == 0 or is_cheap:
            return stream
        size = _AUTOMATIC_SIZE if self.buffer_size == AUTOTUNE else self.buffer_size
        return PrefetchElements(stream, size, self.input)


class _Failed:
    """An exception on its way from the thread to who asks for elements."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


class _Channel:
    """What the thread and the reader share; the thread must not know the reader, or dropping it would never be seen."""

    def __init__(self, stream: Stream, size: int) -> None:
        self.stream = stream
        self._size = size
        self._ready: deque[object] = deque()
        # Reentrant: a garbage collection inside may drop another reader, or even this one, and shut its channel.
        # Always notify_all: readers and the thread wait for different changes, and one wake-up could go to who waits
        # for another.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._is_shut = False
        self._is_held = False  # while a snapshot is taken
        self._is_making = False  # while the thread uses the stream
        self._process = os.getpid()

    def take(self) -> object:
        """Wait for the next element; start a thread where none is at work."""
        if os.getpid() != self._process:
            raise other_process(self._process)
        with self._changed:
            while not self._ready:
                if self._is_shut:
                    return _END
                if self._thread is None:
                    self._start()
                self._changed.wait()
            self._changed.notify_all()
            return self._ready.popleft()

    def _start(self) -> None:
        # The thread sees what the reader set: the current strategy, np.errstate, ...
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._fill,), name="ringlet-prefetch", daemon=True)
        thread.start()
        self._thread = thread

    def _fill(self) -> None:
        """Make elements while there is room; the body of the thread."""
        is_last = False
        while not is_last and self._wait_for_room():
            item = self._make()
            is_last = item is _END or type(item) is _Failed
            with self._changed:
                self._is_making = False
                self._ready.append(item)
                self._changed.notify_all()
            del item  # or this frame would keep it alive until the next one is there
        self._leave()

    def get_state(self) -> State:
        """Hold the thread between two elements, and give what is ready and the state of the stream behind it."""
        if os.getpid() != self._process:
            raise other_process(self._process)
        with self._changed:
            self._is_held = True
            try:
                while self._is_making:
                    self._changed.wait()
                return {"input": self.stream.get_state(), **self._save_ready()}
            finally:
                self._is_held = False
                self._changed.notify_all()

    def _save_ready(self) -> State:
        items = [item for item in self._ready if item is not _END]
        failures = [RestoredFailure.text(item.error) for item in items if isinstance(item, _Failed)]
        ready = [item for item in items if not isinstance(item, _Failed)]
        return {"ready": save_elements(ready), "failure": failures[0] if failures else None}  # it is the last one

    def set_state(self, state: State, node: Node) -> None:
        """Go on where a snapshot was taken; no thread has started yet."""
        self.stream.set_state(state["input"])
        self._ready.extend(load_elements(state["ready"], node))
        if state["failure"] is not None:
            self._ready.append(_Failed(RestoredFailure(state["failure"])))

    def _make(self) -> object:
        try:
            return next(self.stream)
        except StopIteration:
            return _END
        except BaseException as error:
            return _Failed(error)

    def _wait_for_room(self) -> bool:
        with self._changed:
            while (self._is_held or len(self._ready) >= self._size) and not self._is_shut:
                self._changed.wait()
            self._is_making = not self._is_shut
            return self._is_making

    def _leave(self) -> None:
        with self._changed:
            self._thread = None
            must_close = self._is_shut
            # A reader that came before this waits: it starts the next thread.
            self._changed.notify_all()
        if must_close:
            self.stream.close()

    def shut(self, timeout_seconds: float | None) -> None:
        """End the thread and close the stream; who comes last of this and the thread closes it."""
        if os.getpid() != self._process:
            return  # a forked child has no thread, and its copy of the lock may be held for ever
        with self._changed:
            if self._is_shut:
                return
            self._is_shut = True
            self._ready.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is None:
            self.stream.close()
        elif thread is not threading.current_thread():
            thread.join(timeout_seconds)


class PrefetchElements(Stream):
    """The elements of another stream, up to `size` of them made ahead in a thread."""

    __slots__ = ("_channel", "_finalizer", "_is_over", "_node")

    def __init__(self, stream: Stream, size: int, node: Node) -> None:
        self._channel = _Channel(stream, size)
        self._node = node
        self._is_over = False
        # Runs when this object is dropped, and at exit: the thread is a daemon, so that exit comes that far.
        self._finalizer = weakref.finalize(self, self._channel.shut, DROPPED_SECONDS)

    def __next__(self) -> Nest:
        if self._is_over:
            raise StopIteration
        item = self._channel.take()
        if item is _END:
            self.close()
            raise StopIteration
        if type(item) is _Failed:
            try:
                raise item.error
            finally:
                del item  # the error's traceback holds this frame
        return item

    def close(self) -> None:
        """End the thread, waiting for the element that it is making, and close the input."""
        self._is_over = True
        if self._finalizer.detach() is not None:
            self._channel.shut(None)

    def get_state(self) -> State:
        """Give the elements that are ready, and the state of the input behind them; None for it once this is over."""
        return {"input": None} if self._is_over else self._channel.get_state()

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        if state["input"] is None:
            self.close()
        else:
            self._channel.set_state(state, self._node)
