"""A function of every item of a stream, called in several threads where that was asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Downstream, State, Stream
from ringlet.data.graph.thread_map import Calls

__all__ = ["Called", "RestoredFailure"]

T = TypeVar("T")


class RestoredFailure(RuntimeError):
    """An exception was on its way through an iterator as that was saved; this stands in its place.

    Examples
    --------
    >>> raise RestoredFailure(RestoredFailure.text(KeyError("name")))
    Traceback (most recent call last):
    ringlet.data.graph.mapped_stream.RestoredFailure: the iterator was saved with an error on its way: KeyError: 'name'
    """

    @staticmethod
    def text(error: BaseException) -> str:
        """Give what is saved of an exception."""
        if isinstance(error, RestoredFailure):
            return str(error)
        return f"the iterator was saved with an error on its way: {type(error).__name__}: {error}"


class Called(Downstream, Generic[T]):
    """``function(item)`` for every item of a stream.

    Parameters
    ----------
    source : Stream
        Of items. Subclasses may make something of each (`_next_item`).
    function : callable
        Takes an item. It must not know this stream, whose threads would keep it alive.
    num_calls : int
        How many calls may be on their way at once, in threads; one is made where its result is asked for.
    is_ordered : bool
        Whether results keep the order of their items.
    name : str
        Of the threads.
    """

    __slots__ = ("_again", "_calls", "_failure", "_function", "_is_ordered", "_name", "_num_calls")

    def __init__(
        self, source: Stream, function: Callable[[T], Nest], num_calls: int, is_ordered: bool, name: str
    ) -> None:
        super().__init__(source)
        self._function = function
        self._num_calls = num_calls
        self._is_ordered = is_ordered
        self._name = name
        self._calls: Calls[T, Nest] | None = None  # while threads are at work
        self._again: deque[T] = deque()  # items whose calls were on their way in the iterator that was saved
        self._failure: BaseException | None = None  # what the input raised behind the items on their way

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
            self._calls = Calls(self._function, self._num_calls, self._is_ordered, self._name)
        while not self._calls.is_full and self._start_call(self._calls):
            pass
        if len(self._calls):
            return self._calls.take()
        self._end_calls()
        if self._failure is not None:
            self._raise_failure()
        raise StopIteration

    def _start_call(self, calls: Calls[T, Nest]) -> bool:
        """Put the next item; False where there is none, or only an error, which comes behind the items before it."""
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
            del error  # the error's traceback holds this frame

    def _end_calls(self) -> None:
        calls, self._calls = self._calls, None
        if calls is not None:
            calls.close()

    def close(self) -> None:
        """End the threads and close the input."""
        self._end_calls()
        self._again.clear()
        self._failure = None
        super().close()

    def get_state(self) -> State:
        """Give the items whose calls are on their way; they are called again."""
        items = [*(self._calls.items() if self._calls is not None else ()), *self._again]
        failure = None if self._failure is None else RestoredFailure.text(self._failure)
        return {**super().get_state(), **self._save_items(items), "failure": failure}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        self._again.extend(self._load_items(state))
        self._failure = None if state["failure"] is None else RestoredFailure(state["failure"])

    @abstractmethod
    def _save_items(self, items: list[T]) -> dict[str, Any]:
        """Give the part of the state that holds items on their way, and what else the subclass keeps."""

    @abstractmethod
    def _load_items(self, state: State) -> list[T]:
        """Take over that part of a state, and give the items."""
