"""Restartable iterators of TensorFlow 1's strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.optional import Optional
from ringlet.errors import OutOfRangeError
from ringlet.values import regroup


class InputIterator(Iterator[Nest]):
    """An iterator over a distributed dataset, restarted by ``initialize``, for strategies of TensorFlow 1."""

    def __init__(self, dataset: Iterable[Nest]) -> None:
        self._dataset = dataset
        self._iterator = iter(dataset)

    def __next__(self) -> Nest:
        return next(self._iterator)

    def get_next(self, device: str | None = None) -> Nest:
        """Return the next step; at the end, raise OutOfRangeError. `device` is ignored."""
        try:
            return next(self._iterator)
        except StopIteration:
            raise OutOfRangeError("end of the dataset. Call initialize() to read the dataset again.") from None

    def get_next_as_optional(self) -> Optional[Nest]:
        """Return the next step, or an empty Optional at the end."""
        ask: Any = getattr(self._iterator, "get_next_as_optional", None)
        if ask is not None:
            return ask()  # type: ignore[no-any-return]  # an iterator of a dataset
        try:
            return Optional(next(self._iterator))
        except StopIteration:
            return Optional()

    def initialize(self) -> None:
        """Restart at the first step; release the threads and files of the previous iteration."""
        self.close()
        self._iterator = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """None. Reading this attribute restarts the iteration, as running the initializer does in TensorFlow."""
        self.initialize()

    @property
    def element_spec(self) -> Nest:
        """The specs of a step; raises AttributeError if the dataset has none."""
        return self._dataset.element_spec  # type: ignore[attr-defined]  # the error is documented

    def close(self) -> None:
        """Close the iterator and end the iteration; `initialize` restarts it."""
        close: Any = getattr(self._iterator, "close", None)
        if close is not None:
            close()
        self._iterator = iter(())


class FunctionSteps(Iterable[Nest]):
    """An infinite sequence of steps, computed by calling a function for each replica.

    `functions` holds one function for each replica of this process. A step is a PerReplica value of their results; with
    one replica, it is the result itself.
    """

    def __init__(self, functions: Sequence[Callable[[], Nest]]) -> None:
        self._functions = functions

    def __iter__(self) -> Iterator[Nest]:
        # Not a generator, which would end after the first exception of a function.
        return _Calls(self._functions)


class _Calls(Iterator[Nest]):
    def __init__(self, functions: Sequence[Callable[[], Nest]]) -> None:
        self._functions = functions

    def __next__(self) -> Nest:
        values = [function() for function in self._functions]
        return values[0] if len(values) == 1 else regroup(values, always_wrap=True)
