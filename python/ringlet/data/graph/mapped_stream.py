"""MappedStream: a function applied to every item of a stream, optionally in several threads."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import State, Stream, UnaryStream
from ringlet.data.graph.thread_map import ThreadMap
from ringlet.errors.documented_names import shown_as
from ringlet.errors.exception_notes import class_and_text

T = TypeVar("T")


@shown_as(RuntimeError)
class RestoredError(RuntimeError):
    """Replacement for an exception that was pending in an iterator when the state was saved."""

    @staticmethod
    def text(error: BaseException) -> str:
        """Return the text that is saved for an exception."""
        if isinstance(error, RestoredError):
            return str(error)
        return f"the iterator was saved with a pending error: {class_and_text(error)}"


class MappedStream(UnaryStream, Generic[T]):
    """Stream of ``function(item)`` for every item of the input, computed in up to `num_calls` threads.

    The function must not reference this stream, because the threads would keep the stream alive. If `num_calls` is one,
    no threads are used. Unless `is_ordered`, results are yielded in the order of completion.
    """

    def __init__(
        self, source: Stream, function: Callable[[T], Nest], num_calls: int, is_ordered: bool, name: str
    ) -> None:
        super().__init__(source)
        self._function = function
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._name = name
        self._calls: ThreadMap[T, Nest] | None = None  # set while threads run
        self._again: deque[T] = deque()  # items whose calls were pending in the saved iterator
        self._failure: BaseException | None = None  # raised by the input after the pending items

    def __next__(self) -> Nest:
        if self._num_calls > 1:
            return self._next_result()
        if self._again or self._failure:
            return self._function(self._again.popleft() if self._again else self._raise_failure())
        return self._function(self._next_item())

    def _next_item(self) -> T:
        item: T = next(self._input)
        return item

    def _next_result(self) -> Nest:
        if self._calls is None:
            self._calls = ThreadMap(self._function, self._num_calls, self._is_ordered, self._name)
        while not self._calls.is_full and self._start_call(self._calls):
            pass
        if len(self._calls):
            return self._calls.take()
        self._end_calls()
        if self._failure is not None:
            self._raise_failure()
        raise StopIteration

    def _start_call(self, calls: ThreadMap[T, Nest]) -> bool:
        """Submit the next item; return False at the end or after an error, which is raised after pending results."""
        if self._failure is not None and not self._again:
            return False
        try:
            calls.put(self._again.popleft() if self._again else self._next_item())
        except StopIteration:
            return False
        except BaseException as error:
            self._failure = error
            return False
        return True

    def _raise_failure(self) -> T:
        error, self._failure = self._failure, None
        try:
            raise error or StopIteration
        finally:
            del error  # the traceback of the error references this frame

    def _end_calls(self) -> None:
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()

    def close(self) -> None:
        self._end_calls()
        self._again.clear()
        self._failure = None
        super().close()

    def get_state(self) -> State:
        """Return a snapshot with the items whose calls are pending; after a restore, these calls are made again."""
        items = [*(self._calls.items() if self._calls is not None else ()), *self._again]
        failure = None if self._failure is None else RestoredError.text(self._failure)
        return {**super().get_state(), **self._save_items(items), "failure": failure}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._again.extend(self._load_items(state))
        self._failure = None if state["failure"] is None else RestoredError(state["failure"])

    @abstractmethod
    def _save_items(self, items: list[T]) -> dict[str, Any]:
        """Return the entries of the state that describe the pending items, and any state of the subclass."""

    @abstractmethod
    def _load_items(self, state: State) -> list[T]:
        """Restore the entries that `_save_items` returned, and return the items."""
