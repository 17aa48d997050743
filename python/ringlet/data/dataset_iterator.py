"""What goes through a dataset once."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.graph.element_structure import LEAF_TYPES, Nest
from ringlet.data.graph.node import State
from ringlet.data.graph.pipeline_handle import Opened
from ringlet.data.operations.with_options import with_options_applied
from ringlet.data.optional import Optional
from ringlet.data.state.fingerprint import restored, saved
from ringlet.data.state.user_state import check_external_state
from ringlet.errors import OutOfRangeError
from ringlet.nest import map_structure

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["DatasetIterator", "NumpyIterator"]


class DatasetIterator(Iterator[Nest]):
    """The elements of a dataset, once through; ``iter(dataset)`` makes it.

    Threads of a prefetch end when the iterator is at its end, closed or dropped. As a context manager it closes itself.

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
        self._opened = Opened(with_options_applied(dataset.node))
        self._stream = self._opened.stream

    def __next__(self) -> Nest:
        return next(self._stream)

    def get_next(self) -> Nest:
        """Give the next element.

        Raises
        ------
        OutOfRangeError
            If there is none.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iter(Dataset.range(3)).get_next()
        np.int64(0)
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError("end of the dataset: make a new iterator to go through it again") from None

    def get_next_as_optional(self) -> Optional[Nest]:
        """Give the next element, or an empty Optional at the end.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iter(Dataset.range(0)).get_next_as_optional().has_value()
        False
        """
        try:
            return Optional(next(self))
        except StopIteration:
            return Optional()

    @property
    def element_spec(self) -> Nest:
        """The nest of TensorSpec that every element follows."""
        return self._dataset.element_spec

    def get_state(self) -> State:
        """Give a snapshot of the place in the dataset, from which `set_state` goes on exactly.

        Returns
        -------
        dict
            Nested dictionaries and lists of None, numbers, text, bytes and NumPy arrays, which nothing changes later:
            fit for a checkpoint. It holds the elements that operations keep (the buffer of a shuffle, what a prefetch
            has ready) and the seeds of shuffles, also where none was given.

        Raises
        ------
        TypeError
            If such an element holds what is neither numbers nor text.
        NotImplementedError
            If an operation of the dataset cannot be saved.
        FailedPreconditionError
            If functions make the elements, and the options of the dataset say FAIL
            (`Options.experimental_external_state_policy`).

        Notes
        -----
        The iterator can be used as before. Functions of the user are called again for elements that were on their way
        through threads. What comes out of a generator, or another iterable that cannot save its place
        (``state_dict``), is read again from its beginning, and skipped.

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
        """Go on where another iterator was when its state was taken, of an equal dataset in any process.

        Parameters
        ----------
        state : dict
            What `get_state` gave.

        Raises
        ------
        FailedPreconditionError
            If the state belongs to a dataset of other operations or settings; both are named.
        InvalidArgumentError
            If it is no such state, or one of a newer version.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iterator = iter(Dataset.range(9).take(2))
        >>> iterator.set_state(iter(Dataset.range(9).take(3)).get_state())
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: this state was saved by an iterator of another dataset:
          saved: TableSource(rows=9, spec=TensorSpec(shape=(), dtype=int64)) -> Take(count=3)
          here:  TableSource(rows=9, spec=TensorSpec(shape=(), dtype=int64)) -> Take(count=2)
        Build the dataset as it was built then, or start a new iterator.
        """
        self._opened = restored(self._opened, state)
        self._stream = self._opened.stream

    def close(self) -> None:
        """End now: threads and files of the pipeline are let go, and there are no more elements.

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
    """What ``dataset.as_numpy_iterator()`` makes: arrays of other libraries are seen as NumPy's.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> next(NumpyIterator(Dataset.range(3).batch(2)))
    array([0, 1])
    """

    __slots__ = ()

    def __next__(self) -> Nest:
        element = super().__next__()
        if type(element) is np.ndarray or isinstance(element, LEAF_TYPES):
            return element
        return map_structure(_as_numpy, element)


def _as_numpy(leaf: Any) -> Any:
    kind = kind_of(leaf)
    return leaf if kind is None else kind.as_ndarray(leaf)
