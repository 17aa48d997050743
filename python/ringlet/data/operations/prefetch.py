"""Dataset.prefetch: elements computed in advance by a thread."""

from __future__ import annotations

import contextvars
import os
import threading
import weakref
from collections import deque
from dataclasses import dataclass

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import AUTOTUNE, check_buffer_size
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import RestoredError
from ringlet.data.graph.node import IterationContext, Node, RowStream, State, Stream, Transformation
from ringlet.data.graph.thread_map import DROPPED_SECONDS, WAITS, WORTH_A_THREAD_BYTES, other_process
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.observe.stall_reports import stall_seconds, wait_for_threads

# The size for AUTOTUNE: one element is computed while another is ready.
_AUTOMATIC_SIZE = 2


def prefetch(self: Dataset, buffer_size: int | None, name: str | None = None) -> Dataset:
    """Compute elements in a background thread before they are requested.

    Parameters
    ----------
    buffer_size : int or None
        Maximum number of buffered elements. With AUTOTUNE (-1) or None, the number is chosen automatically; with 0,
        elements are computed on request.
    name : str, unused

    Returns
    -------
    Dataset
        The same elements in the same order. If elements are slices of arrays, or small batches of them, no thread is
        used, because passing elements between threads would take more time.

    Raises
    ------
    InvalidArgumentError
        If `buffer_size` is less than -1.

    Notes
    -----
    The thread starts at the first request. It stops after the last element, at an exception, when the iterator is
    closed or deleted, and when the interpreter exits. The iterator raises an exception in order; the next request
    starts another thread.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(3).map(lambda x: x * x).prefetch(2)]
    [0, 1, 4]
    """
    return type(self)(Prefetch(self.node, check_buffer_size(buffer_size)))


@dataclass(frozen=True, eq=False)
class Prefetch(Transformation):
    """Node that prefetches the elements of its input."""

    buffer_size: int

    @property
    def from_row_zero(self) -> bool:
        return self.input.from_row_zero

    def open_rows(self, context: IterationContext) -> RowStream:
        """Open the row numbers of the input, which do not benefit from a prefetch."""
        return self.input.open_rows(context)

    def open_elements(self, context: IterationContext) -> Stream:
        """Open a stream of elements, with a thread if computing elements takes longer than passing them."""
        stream = self.input.open(context)
        is_cheap = not (self.runs_user_code or self.has_files) and self.bytes_copied < WORTH_A_THREAD_BYTES
        if self.buffer_size == 0 or is_cheap:
            return stream
        size = _AUTOMATIC_SIZE if self.buffer_size == AUTOTUNE else self.buffer_size
        return PrefetchElements(stream, size, self.input)


class _Failed:
    """An exception passed from the thread to the reader."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


_END = object()


class _Channel:
    """State of the thread and PrefetchElements, which the thread does not reference, so that it can be collected."""

    def __init__(self, stream: Stream, size: int) -> None:
        self.stream = stream
        self._size = size
        self._ready: deque[object] = deque()
        # Reentrant, because a garbage collection may finalize any reader, including this one, and close its buffer. All
        # waiters are notified: the reader and the thread wait for different changes, and notify could wake the wrong
        # waiter.
        self._changed = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._is_shut = False
        self._is_held = False  # True while a snapshot is taken
        self._is_making = False  # True while the thread uses the stream
        self._process = os.getpid()
        self._stall_seconds = stall_seconds()

    def take(self) -> object:
        """Return the next element, a `_Failed` or `_END`; if none is ready, start the thread unless it is running."""
        if os.getpid() != self._process:
            raise other_process(self._process)
        with self._changed:
            while not self._ready:
                if self._is_shut:
                    return _END
                if self._thread is None:
                    self._start()
                wait_for_threads(self._changed.wait, self._stall_seconds, WAITS, self._thread_ids)
            self._changed.notify_all()
            return self._ready.popleft()

    def _thread_ids(self) -> list[int | None]:
        return [self._thread.ident] if self._thread is not None else []

    def _start(self) -> None:
        # The thread runs in the reader's context: the current strategy, np.errstate, ...
        context = contextvars.copy_context()
        thread = threading.Thread(target=context.run, args=(self._fill,), name="ringlet-prefetch", daemon=True)
        thread.start()
        self._thread = thread

    def _fill(self) -> None:
        """Compute elements whenever the buffer has room; the target of the thread."""
        is_last = False
        while not is_last and self._wait_for_room():
            item = self._make()
            is_last = item is _END or type(item) is _Failed
            with self._changed:
                self._is_making = False
                self._ready.append(item)
                self._changed.notify_all()
            del item  # otherwise, this frame would keep the element alive until the next element is computed
        self._leave()

    def get_state(self) -> State:
        """Pause the thread; return the ready elements and the state of the stream after them."""
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
        failures = [RestoredError.text(item.error) for item in items if isinstance(item, _Failed)]
        ready = [item for item in items if not isinstance(item, _Failed)]
        # An error is always the last item.
        return {"ready": save_elements(ready), "failure": failures[0] if failures else None}

    def set_state(self, state: State, node: Node) -> None:
        """Restore a snapshot before the thread starts."""
        self.stream.set_state(state["input"])
        self._ready.extend(load_elements(state["ready"], node))
        if state["failure"] is not None:
            self._ready.append(_Failed(RestoredError(state["failure"])))

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
            # Wakes a waiting reader, which starts the next thread.
            self._changed.notify_all()
        if must_close:
            self.stream.close()

    def shut(self, timeout_seconds: float | None) -> None:
        """Stop the thread, which then closes the stream; without a thread, close the stream here."""
        if os.getpid() != self._process:
            return  # a forked child process has no thread, and its copy of the lock may stay locked
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
    """Stream of the elements of its input; a thread computes up to `size` elements in advance."""

    def __init__(self, stream: Stream, size: int, node: Node) -> None:
        self._channel = _Channel(stream, size)
        self._node = node
        self._is_over = False
        # Runs when the object is deleted and at exit; daemon threads do not block the exit.
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
                del item  # the traceback of the error references this frame
        return item

    def close(self) -> None:
        self._is_over = True
        if self._finalizer.detach() is not None:
            self._channel.shut(None)

    def get_state(self) -> State:
        return {"input": None} if self._is_over else self._channel.get_state()

    def set_state(self, state: State) -> None:
        if state["input"] is None:
            self.close()
        else:
            self._channel.set_state(state, self._node)
