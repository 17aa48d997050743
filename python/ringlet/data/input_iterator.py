"""Iterators of TensorFlow 1's strategies, which may begin again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.optional import Optional
from ringlet.errors import OutOfRangeError
from ringlet.values import regroup

__all__ = ["CalledSteps", "InputIterator"]


class InputIterator(Iterator[Nest]):
    """The steps of a distributed dataset, as often as ``initialize`` is called; strategies of TensorFlow 1 make it.

    Parameters
    ----------
    dataset : iterable
        Of steps; iterated afresh by each `initialize`.

    Examples
    --------
    >>> from ringlet.data import Dataset, DistributedDataset
    >>> iterator = InputIterator(DistributedDataset(Dataset.range(4).batch(2), 2))
    >>> first = iterator.get_next()
    >>> iterator.initialize()
    >>> str(iterator.get_next()) == str(first)
    True
    """

    def __init__(self, dataset: Iterable[Nest]) -> None:
        self._dataset = dataset
        self._iterator = iter(dataset)

    def __next__(self) -> Nest:
        return next(self._iterator)

    def get_next(self, device: str | None = None) -> Nest:
        """Give the next step.

        Parameters
        ----------
        device : str, optional
            Accepted as TensorFlow accepts it; the parts of a step are for all devices.

        Raises
        ------
        OutOfRangeError
            If no replica has data left, or what is left is too little for a step.
        """
        try:
            return next(self._iterator)
        except StopIteration:
            raise OutOfRangeError("end of the dataset: call initialize() to go through it again") from None

    def get_next_as_optional(self) -> Optional[Nest]:
        """Give the next step, or an empty Optional at the end."""
        ask: Any = getattr(self._iterator, "get_next_as_optional", None)
        if ask is not None:
            return ask()  # type: ignore[no-any-return]  # of iterators of datasets
        try:
            return Optional(next(self._iterator))
        except StopIteration:
            return Optional()

    def initialize(self) -> None:
        """Begin again with the first step; threads and files of what was begun before are let go."""
        self.close()
        self._iterator = iter(self._dataset)

    @property
    def initializer(self) -> None:
        """Nothing, as in TensorFlow, for programs that run it; reading it begins again."""
        self.initialize()

    @property
    def element_spec(self) -> Nest:
        """What a step looks like, where the dataset tells it."""
        return self._dataset.element_spec  # type: ignore[attr-defined]  # and an AttributeError where it does not

    def close(self) -> None:
        """End now: there are no more steps until `initialize` is called."""
        close: Any = getattr(self._iterator, "close", None)
        if close is not None:
            close()
        self._iterator = iter(())


class CalledSteps(Iterable[Nest]):
    """Steps without end, for which functions are called once for each replica.

    Parameters
    ----------
    functions : sequence of callable
        One for each replica of this process, in their order: often the same one. Each takes nothing and gives a nested
        structure. With one, steps are what it gives.

    Examples
    --------
    >>> numbers = iter(range(10))
    >>> next(iter(CalledSteps([lambda: next(numbers)] * 2)))
    PerReplica:{
      0: 0,
      1: 1
    }
    """

    def __init__(self, functions: Sequence[Callable[[], Nest]]) -> None:
        self._functions = functions

    def __iter__(self) -> Iterator[Nest]:
        # No generator: it would be over after the first exception of a function.
        return _Calls(self._functions)


class _Calls(Iterator[Nest]):
    def __init__(self, functions: Sequence[Callable[[], Nest]]) -> None:
        self._functions = functions

    def __next__(self) -> Nest:
        values = [function() for function in self._functions]
        return values[0] if len(values) == 1 else regroup(values, always_wrap=True)
