"""What goes through a dataset once."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from ringlet.data.node import Run
from ringlet.data.optional import Optional
from ringlet.data.structure import Nest
from ringlet.errors import OutOfRangeError

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["DatasetIterator"]


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

    __slots__ = ("__weakref__", "_dataset", "_stream")

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._stream = dataset.node.open(Run())

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
            return next(self._stream)
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
            return Optional(next(self._stream))
        except StopIteration:
            return Optional()

    @property
    def element_spec(self) -> Nest:
        """The nest of TensorSpec that every element follows."""
        return self._dataset.element_spec

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
