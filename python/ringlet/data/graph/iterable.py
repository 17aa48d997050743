"""Anything that can be iterated, as a source: a list of arrays, a generator, a ``DataLoader``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, as_leaf, detached, read_only
from ringlet.data.graph.node import Node, Run, Stream
from ringlet.data.graph.user_iteration import Iteration
from ringlet.data.tensor_spec import TensorSpec
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
    >>> from ringlet.data.graph.node import Run
    >>> stream = iterable_source([np.zeros(2), np.ones(3)]).open(Run())
    >>> next(stream), next(stream)
    (array([0., 0.]), array([1., 1., 1.]))
    """
    # A data set of Hugging Face has a shape, too, and gives its rows.
    is_array = hasattr(iterable, "shape") and not hasattr(iterable, "column_names")
    is_data = is_array or isinstance(iterable, Mapping)
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
    # Whether an iteration of an iterator has begun: there can be one only.
    begun: list[bool] = field(default_factory=list, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """The class of the iterable."""
        return {"iterable": type(self.iterable).__name__}

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
        stream = IterableElements(self)
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
        if self.begun:
            raise self._read_twice()
        return IterableElements(self)

    def begin(self) -> Iterable[Any]:
        """Give the iterable to an iteration that begins; an iterator to one only."""
        if self._is_iterator:
            if self.begun:
                raise self._read_twice()
            self.begun.append(True)
        return self.iterable

    def _read_twice(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.iterable!r} can be read only once, and an iteration has begun to. Pass something that starts "
            "afresh each time: a list, a DataLoader, or an object whose __iter__ is a generator function."
        )


class IterableElements(Iteration):
    """The elements of one iteration."""

    __slots__ = ("_is_stored",)

    def __init__(self, source: IterableSource) -> None:
        super().__init__(source.begin, f"the {type(source.iterable).__name__}")
        self._is_stored = isinstance(source.iterable, (list, tuple))

    def _element(self, value: Any, number: int) -> Nest:
        element = read_only(value) if type(value) is np.ndarray else map_until(_part, value, _is_written_out)
        return element if self._is_stored else detached(element)


def _is_written_out(value: Any) -> bool:
    return isinstance(value, list) and not any(hasattr(leaf, "shape") for leaf in flatten(value)[0])


def _part(leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) or not hasattr(leaf, "shape"):
        return as_leaf(leaf)
    return leaf


def _spec(leaf: Any) -> TensorSpec:
    spec = TensorSpec.from_array(leaf)
    return TensorSpec((None, *spec.shape[1:]), spec.dtype) if spec.shape else spec
