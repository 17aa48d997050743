"""Anything that can be iterated, as a source: a list of arrays, a generator, a ``DataLoader``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.data.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.node import Node, Run, Stream
from ringlet.data.spec import TensorSpec
from ringlet.data.structure import Nest, as_leaf, detached, read_only
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import flatten, map_structure, map_until

__all__ = ["IterableSource", "iterable_source"]


def iterable_source(iterable: Any) -> IterableSource:
    """Give the node of an iterable of arrays, or of nests of arrays.

    Raises
    ------
    TypeError
        If it cannot be iterated, or is an array or a mapping, whose iteration cannot be meant.

    Examples
    --------
    >>> from ringlet.data.node import Run
    >>> stream = iterable_source([np.zeros(2), np.ones(3)]).open(Run())
    >>> next(stream), next(stream)
    (array([0., 0.]), array([1., 1., 1.]))
    """
    is_data = hasattr(iterable, "shape") or isinstance(iterable, Mapping)
    if is_data or isinstance(iterable, (str, bytes)) or not isinstance(iterable, Iterable):
        hint = (
            "Dataset.from_tensor_slices(x).batch(size) makes one"
            if is_data
            else "Pass a Dataset, or an iterable of batches"
        )
        raise TypeError(f"this {type(iterable).__name__} is no dataset: {iterable!r}. {hint}.")
    return IterableSource(iterable)


@dataclass(frozen=True, eq=False)
class IterableSource(Node):
    """What an iterable gives.

    Arrays of other libraries stay what they are, since they can be cut too. NumPy's become read-only: views where the
    iterable is a list or a tuple, which holds all of them at once; copies of what others give, which may be one buffer
    filled again and again. A list that holds arrays is a structure here, as a ``DataLoader`` gives it; a list of
    numbers or text is an array, written out.
    """

    iterable: Iterable[Any]
    # Counts the runs: an iterator can serve one only.
    runs: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def cardinality(self) -> int:
        """The length of a list or a tuple; other lengths are not to be relied on."""
        return len(self.iterable) if isinstance(self.iterable, (list, tuple)) else UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """The specs of the example, the first size unknown: nothing says that all elements have it."""
        return map_structure(_spec, self.example)

    @property
    def example(self) -> Nest:
        """The first element of an iteration begun for it alone.

        Raises
        ------
        FailedPreconditionError
            If the iterable can be iterated only once.
        InvalidArgumentError
            If it has no elements.
        """
        if self._is_iterator:
            raise FailedPreconditionError(
                f"{self.iterable!r} can be read only once, so what its elements are is not known before they are read"
            )
        stream = IterableElements(self.iterable)
        try:
            return next(stream)
        except StopIteration:
            raise InvalidArgumentError(f"{self.iterable!r} has no elements to tell what they are like") from None
        finally:
            stream.close()

    @property
    def _is_iterator(self) -> bool:
        return isinstance(self.iterable, Iterator)

    @property
    def runs_user_code(self) -> bool:
        """Unless it is a list or a tuple."""
        return not isinstance(self.iterable, (list, tuple))

    def open_elements(self, run: Run) -> Stream:
        """Start a run.

        Raises
        ------
        FailedPreconditionError
            If the iterable is an iterator, and a run was started before.
        """
        if self._is_iterator and next(self.runs) > 0:
            raise FailedPreconditionError(
                f"{self.iterable!r} can be read only once, and an iteration has begun to. Pass something that starts "
                "afresh each time: a list, a DataLoader, or an object whose __iter__ is a generator function."
            )
        return IterableElements(self.iterable)

    def empty_component(self, present: Nest) -> Nest | None:
        """Give the element `present` without its rows."""
        return map_structure(lambda leaf: leaf[:0] if np.ndim(leaf) else leaf, present)


class IterableElements(Stream):
    """The elements of one iteration."""

    __slots__ = ("_is_stored", "_iterator")

    def __init__(self, iterable: Iterable[Any]) -> None:
        self._iterator: Iterator[Any] = iter(iterable)
        self._is_stored = isinstance(iterable, (list, tuple))

    def __next__(self) -> Nest:
        element = next(self._iterator)
        element = read_only(element) if type(element) is np.ndarray else map_until(_part, element, _is_written_out)
        return element if self._is_stored else detached(element)

    def close(self) -> None:
        """Close the iterator, if it is a generator, and forget it."""
        iterator, self._iterator = self._iterator, iter(())
        close = getattr(iterator, "close", None)
        if callable(close):
            close()


def _is_written_out(value: Any) -> bool:
    return isinstance(value, list) and not any(hasattr(leaf, "shape") for leaf in flatten(value)[0])


def _part(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) or not hasattr(leaf, "shape"):
        return as_leaf(leaf)
    return leaf


def _spec(leaf: Any) -> TensorSpec:
    spec = TensorSpec.from_array(leaf)
    return TensorSpec((None, *spec.shape[1:]), spec.dtype) if spec.shape else spec
