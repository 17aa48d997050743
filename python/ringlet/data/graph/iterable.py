"""Source node for any iterable: a list of arrays, a generator, a ``DataLoader``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, as_leaf, detached, read_only
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.graph.spec_inference import spec_of
from ringlet.data.graph.user_iteration import Iteration
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.nest import flatten, map_structure, map_until
from ringlet.values.opaque_value import OpaqueValue


def iterable_source(iterable: Any) -> IterableSource:
    """Return the node of an iterable of arrays or nests of arrays; raise TypeError for an array, a mapping or text."""
    # A Hugging Face dataset also has a shape, but iterating over it yields rows.
    is_array = hasattr(iterable, "shape") and not hasattr(iterable, "column_names")
    is_data = is_array or isinstance(iterable, Mapping) or _is_columns(iterable)
    if is_data or isinstance(iterable, (str, bytes, OpaqueValue)) or not isinstance(iterable, Iterable):
        slices = "(x, y)" if isinstance(iterable, (tuple, list)) else "x"
        hint = (
            f"Use Dataset.from_tensor_slices({slices}).batch(size)"
            if is_data
            else "Pass a Dataset, or an iterable of batches"
        )
        raise TypeError(f"this {type(iterable).__name__} is not a dataset: {shortened(iterable)}. {hint}.")
    return IterableSource(iterable)


def _is_columns(iterable: Any) -> bool:
    """Return whether a list holds columns, as in (x, y): arrays of equal length but different numbers of dimensions."""
    if not isinstance(iterable, (tuple, list)) or not all(getattr(each, "shape", ()) for each in iterable):
        return False
    return len({each.shape[0] for each in iterable}) == 1 and len({len(each.shape) for each in iterable}) > 1


@dataclass(frozen=True, eq=False)
class IterableSource(Node):
    """Node of `Dataset.from_iterable`: the elements of an iterable.

    Arrays of other libraries are yielded unchanged. NumPy arrays become read-only: views if the iterable is a list or a
    tuple; otherwise, writeable memory is copied, since an iterator may reuse one buffer. A list that holds arrays is a
    structure, as in batches of a ``DataLoader``; a list of numbers or text is one array.
    """

    iterable: Iterable[Any]
    # Not empty after the single iteration of an iterator has started.
    begun: list[bool] = field(default_factory=list, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        return {"iterable": type(self.iterable).__name__}

    @property
    def cardinality(self) -> int:
        """The length of a list or a tuple; UNKNOWN_CARDINALITY for other iterables, whose lengths are unreliable."""
        return len(self.iterable) if isinstance(self.iterable, (list, tuple)) else UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """The specs of the example; numbers of rows are unknown, since they may differ between elements."""
        return map_structure(_spec, self.example)

    @property
    def example(self) -> Nest:
        """The first element, read by a separate iteration; raises FailedPreconditionError for an iterator."""
        if self._is_iterator:
            raise FailedPreconditionError(
                f"{self.iterable!r} can be read only once, so its element specs are unknown before it is read. Pass an "
                "iterable that can be read again, such as a list."
            )
        stream = IterableElements(self)
        try:
            return next(stream)
        except StopIteration:
            raise InvalidArgumentError(
                f"{self.iterable!r} is empty, so its element specs are unknown. Pass an "
                f"iterable with at least one element."
            ) from None
        finally:
            stream.close()

    @property
    def _is_iterator(self) -> bool:
        return isinstance(self.iterable, Iterator)

    @property
    def runs_user_code(self) -> bool:
        return not isinstance(self.iterable, (list, tuple))

    def open_elements(self, context: IterationContext) -> Stream:
        if self.begun:
            raise self._read_twice()
        return IterableElements(self)

    def begin(self) -> Iterable[Any]:
        """Return the iterable for a new iteration; raise FailedPreconditionError if an iterator is read twice."""
        if self._is_iterator:
            if self.begun:
                raise self._read_twice()
            self.begun.append(True)
        return self.iterable

    def _read_twice(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.iterable!r} can be read only once, and an earlier iteration has started. Pass an iterable that can "
            "be read again: a list, a DataLoader, or an object whose __iter__ is a generator function."
        )


class IterableElements(Iteration):
    """Stream of the elements of an iterable, in one iteration."""

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


def _spec(leaf: Any) -> Any:
    spec = spec_of(leaf)
    return spec.with_rows(None) if spec.shape else spec
