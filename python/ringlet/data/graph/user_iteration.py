"""Iteration over a user's iterable: started on demand, counted, saved and closed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import State, Stream
from ringlet.data.state.saved_elements import load_value, save_value
from ringlet.errors import FailedPreconditionError, OutOfRangeError
from ringlet.errors.exception_notes import add_note

# Methods that save and restore a position: of the iterator or, as in PyTorch and Hugging Face, of the iterable, whose
# position is restored before iteration starts.
_METHODS = (("get_state", "set_state"), ("state_dict", "load_state_dict"))


class Iteration(Stream):
    """Base class of streams over an iterable; subclasses convert its values to elements.

    `begin` returns the iterable. It is called when the first element is requested or a position is restored, so
    a stream that is closed earlier has no side effects.
    """

    def __init__(self, begin: Callable[[], Iterable[Any]], name: str) -> None:
        self._begin = begin
        self._name = name
        self._iterable: Any = None
        self._iterator: Iterator[Any] | None = None  # None before the first request
        self._taken = 0
        self._is_closed = False

    def __next__(self) -> Nest:
        value = self._take()
        return self._element(value, self._taken - 1)

    @abstractmethod
    def _element(self, value: Any, number: int) -> Nest:
        """Convert a value of the iterable to an element."""

    def _take(self) -> Any:
        try:
            if self._iterator is None:
                self._iterable = self._begin()
                self._iterator = iter(self._iterable)
            value = next(self._iterator)
        except StopIteration:
            raise
        except Exception as error:
            add_note(error, f"{self._name} raised this for element {self._taken} of this iteration")
            raise
        self._taken += 1
        return value

    def close(self) -> None:
        """Close the iterator, if it has a `close` method as generators do, and release it."""
        self._is_closed = True
        iterator, self._iterator = self._iterator, iter(())
        self._iterable = None
        close = getattr(iterator, "close", None)
        if callable(close):
            close()

    def get_state(self) -> State:
        """Return the number of elements taken, and the position if the iterator or iterable reports it."""
        state: State = {"taken": self._taken, "is_closed": self._is_closed}
        if self._taken and not self._is_closed:
            for holder, keeper in (("iterator", self._iterator), ("iterable", self._iterable)):
                methods = _methods(keeper)
                if methods is not None:
                    try:
                        return {**state, "holder": holder, "place": save_value(methods[0]())}
                    except TypeError:
                        continue  # the position cannot be saved, so elements are counted instead
        return state

    def set_state(self, state: State) -> None:
        """Restore a snapshot; if it holds no position, read and discard elements."""
        if state["is_closed"]:
            self.close()
        elif "place" in state:
            self._go_to(state["holder"], load_value(state["place"]))
        else:
            self._skip(state["taken"])
        self._taken = state["taken"]

    def _go_to(self, holder: str, place: Any) -> None:
        self._iterable = self._begin()
        if holder == "iterable":
            self._place_setter(self._iterable)(place)
        self._iterator = iter(self._iterable)
        if holder == "iterator":
            self._place_setter(self._iterator)(place)

    def _place_setter(self, keeper: Any) -> Callable[[Any], object]:
        methods = _methods(keeper)
        if methods is None:
            raise FailedPreconditionError(
                f"this state holds a position reported by {self._name}, but this {type(keeper).__name__} has neither "
                "set_state nor load_state_dict to restore it. Pass an iterable of the same class."
            )
        return methods[1]

    def _skip(self, count: int) -> None:
        for number in range(count):
            try:
                self._take()
            except StopIteration:
                raise OutOfRangeError(
                    f"this state was saved after {count} elements of {self._name}, but this iterable yields only "
                    f"{number}. Pass an iterable that yields the same elements again."
                ) from None


def _methods(keeper: Any) -> tuple[Callable[[], Any], Callable[[Any], object]] | None:
    for names in _METHODS:
        get, put = (getattr(keeper, name, None) for name in names)
        if callable(get) and callable(put):
            return get, put
    return None
