"""Iterators over datasets."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.cancellation import check_cancelled
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.graph.element_structure import LEAF_TYPES, Nest, has_datasets, is_dataset, is_optional
from ringlet.data.graph.node import State
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.data.operations.with_options import with_options_applied
from ringlet.data.optional import Optional
from ringlet.data.state.iterator_state import restored, saved
from ringlet.data.state.user_state import check_external_state
from ringlet.errors import OutOfRangeError
from ringlet.nest import map_structure
from ringlet.observe import trace_hook

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["DatasetIterator", "NumpyIterator"]


class DatasetIterator(Iterator[Nest]):
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

    __slots__ = ("__weakref__", "_dataset", "_opened", "_stream")

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._opened = PipelineHandle(with_options_applied(dataset.node))
        self._stream = self._opened.stream

    def __next__(self) -> Nest:
        check_cancelled()
        if (trace := trace_hook.current) is not None:
            return trace.timed("next", "input", next)(self._stream)
        return next(self._stream)

    def get_next(self) -> Nest:
        """Return the next element.

        Raises
        ------
        OutOfRangeError
            At the end of the dataset.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iter(Dataset.range(3)).get_next()
        np.int64(0)
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("end of the dataset. Create a new iterator to read the dataset again.") from None

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
            return Optional.at_end(self._dataset)

    @property
    def element_spec(self) -> Nest:
        """The specs of an element, a nest of TensorSpec."""
        return self._dataset.element_spec

    def get_state(self) -> State:
        """Return a snapshot of the position in the dataset, from which `set_state` continues exactly.

        Returns
        -------
        dict
            Nested dictionaries and lists of None, numbers, text, bytes and NumPy arrays, suitable for a checkpoint. The
            iterator does not modify the snapshot later. It holds the elements buffered by operations such as shuffle
            and prefetch, and the seeds of shuffles, including seeds chosen at random.

        Raises
        ------
        TypeError
            If a buffered element holds values other than numbers and text.
        NotImplementedError
            If an operation of the dataset cannot be saved.
        FailedPreconditionError
            If functions make the elements and `Options.experimental_external_state_policy` is FAIL, or is unset and one
            of these functions reads a variable or draws random numbers.

        Notes
        -----
        The iterator remains usable. After `set_state`, user functions are called again for elements that threads were
        computing. A generator, or another iterable that cannot save its position (``state_dict``), is read again from
        its beginning up to the saved position.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> dataset = Dataset.range(6).shuffle(6)
        >>> iterator, later = iter(dataset), iter(dataset)
        >>> first = next(iterator)
        >>> later.set_state(iterator.get_state())
        >>> list(later) == list(iterator)
        True
        """
        check_external_state(self._opened.graph)
        return saved(self._opened)

    def set_state(self, state: State) -> None:
        """Continue from a saved state of an iterator over an equal dataset, in any process.

        Parameters
        ----------
        state : dict
            A result of `get_state`.

        Raises
        ------
        FailedPreconditionError
            If the state belongs to a dataset with other operations or settings; the message lists both.
        InvalidArgumentError
            If `state` is not a result of `get_state`, or was saved in another version of its format.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iterator = iter(Dataset.range(9).take(2))
        >>> iterator.set_state(iter(Dataset.range(9).take(3)).get_state())
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: this state was saved by an iterator of another dataset:
          saved: TableSource(rows=9, spec=TensorSpec(shape=(), dtype=int64)) -> Take(count=3)
          here:  TableSource(rows=9, spec=TensorSpec(shape=(), dtype=int64)) -> Take(count=2)
        Build the dataset as it was when saved, or start a new iterator.
        """
        self._opened = restored(self._opened, state)
        self._stream = self._opened.stream

    def close(self) -> None:
        """Close the iterator: release the threads and files of the pipeline, and end the iteration.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iterator = iter(Dataset.range(3))
        >>> iterator.close()
        >>> list(iterator)
        []
        """
        self._stream.close()

    def __enter__(self) -> DatasetIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


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
