"""Iterators over datasets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.cancellation import check_cancelled
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import LEAF_TYPES, Nest, has_datasets, is_dataset, is_optional
from ringlet.data.graph.node import State
from ringlet.data.operations.with_options import with_options_applied
from ringlet.data.optional import Optional
from ringlet.data.state.pipeline_iterator import PipelineIterator
from ringlet.nest import map_structure
from ringlet.observe import trace_hook


class DatasetIterator(PipelineIterator):
    """An iterator over the elements of a dataset, as returned by ``iter(dataset)``.

    Prefetch threads stop when the iterator is exhausted, closed or deleted. As a context manager, the iterator closes
    itself on exit.

    Parameters
    ----------
    dataset : Dataset

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> with iter(Dataset.range(10).batch(4)) as iterator:
    ...     print(next(iterator))
    [0 1 2 3]
    """

    __slots__ = ()

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(dataset, with_options_applied(dataset.node))

    def __next__(self) -> Nest:
        check_cancelled()
        if (trace := trace_hook.current) is not None:
            return trace.timed("next", "input", next)(self._stream)
        return next(self._stream)

    def get_next_as_optional(self) -> Optional[Nest]:
        """Return the next element, or an empty Optional at the end.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iter(Dataset.range(0)).get_next_as_optional().has_value()
        False
        """
        try:
            return Optional(next(self))
        except StopIteration:
            return Optional.at_end(self._source)


class NumpyIterator(DatasetIterator):
    """An iterator that converts arrays of other libraries to NumPy, as returned by ``dataset.as_numpy_iterator()``.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> next(NumpyIterator(Dataset.range(3).batch(2)))
    array([0, 1])
    """

    __slots__ = ()

    def save(self) -> State:
        """Return a snapshot of the position in the dataset, as :meth:`get_state` does.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iterator, later = [Dataset.range(3).as_numpy_iterator() for _ in range(2)]
        >>> _ = iterator.next()
        >>> later.restore(iterator.save())
        >>> list(later)
        [np.int64(1), np.int64(2)]
        """
        return self.get_state()

    def restore(self, state: State) -> None:
        """Continue from a snapshot, as :meth:`set_state` does."""
        self.set_state(state)

    def next(self) -> Nest:
        """Return the next element, as ``next(iterator)`` does."""
        return next(self)

    def __next__(self) -> Nest:
        element = super().__next__()
        if isinstance(element, LEAF_TYPES) or (type(element) is np.ndarray and element.dtype != object):
            return element
        return map_structure(_as_numpy, element)


def _as_numpy(leaf: Any) -> Any:
    if is_optional(leaf):
        raise TypeError(
            f"as_numpy_iterator yields arrays, but an element holds {leaf!r}. Iterate over the dataset itself."
        )
    if is_dataset(leaf) or (isinstance(leaf, np.ndarray) and has_datasets(leaf)):
        raise TypeError(
            f"as_numpy_iterator yields arrays, but an element holds a dataset: {leaf!r}. Iterate over the dataset of "
            "datasets itself, or flatten it with flat_map."
        )
    kind = kind_of(leaf)
    return leaf if kind is None else kind.as_ndarray(leaf)
