"""PipelineIterator: base class of the iterators over datasets and distributed datasets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.pipeline_handle import Openable, PipelineHandle
from ringlet.data.state.iterator_state import restored, saved
from ringlet.errors import OutOfRangeError

if TYPE_CHECKING:
    from ringlet.data.graph.node import State

P = TypeVar("P", bound="PipelineIterator")


class PipelineIterator(Iterator[Nest]):
    """Base class of iterators; `source` is the dataset or the plan, and `graph` the graph to open."""

    __slots__ = ("__weakref__", "_opened", "_source", "_stream")

    _what = "dataset"

    def __init__(self, source: Any, graph: Openable) -> None:
        self._source = source
        self._opened = PipelineHandle(graph)
        self._stream = self._opened.stream

    def get_next(self) -> Nest:
        """Return the next element of a dataset, or the next step of a distributed dataset.

        Raises
        ------
        OutOfRangeError
            At the end: if no data is left, or too little for a step of known sizes.
        ValueError
            If a replica reads a distributed dataset.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iter(Dataset.range(3)).get_next()
        np.int64(0)
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(
                f"end of the {self._what}. Create a new iterator to read the dataset again."
            ) from None

    @property
    def element_spec(self) -> Nest:
        """The specs of an element, or of a step: TensorSpecs, in steps of several replicas in PerReplicaSpecs."""
        spec: Nest = self._source.element_spec
        return spec

    def get_state(self) -> State:
        """Return a snapshot of the position in the dataset, from which `set_state` continues.

        Returns
        -------
        dict
            Nested dictionaries and lists of None, numbers, text, bytes and NumPy arrays, suitable for a checkpoint. The
            iterator does not modify the snapshot later. The snapshot holds the elements buffered by operations such as
            shuffle and prefetch, and the seeds of shuffles, including seeds chosen at random. Each worker of a
            distributed dataset has its own state.

        Raises
        ------
        TypeError
            If a buffered element holds values that cannot be saved, such as structured arrays.
        NotImplementedError
            If an operation of the dataset cannot be saved.
        FailedPreconditionError
            If functions compute the elements and `Options.experimental_external_state_policy` is FAIL, or is unset and
            one of these functions reads a variable or draws random numbers.

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
        from ringlet.data.state.user_state import check_external_state

        check_external_state(self._opened.graph)
        return saved(self._opened)

    def set_state(self, state: State) -> None:
        """Continue from a saved state of an iterator over an equivalent dataset, in any process.

        Parameters
        ----------
        state : dict
            A result of `get_state`. A distributed dataset must be distributed in the same way, but the number of
            replicas may differ if each step is one global batch, as on a single worker that reads no files.

        Raises
        ------
        FailedPreconditionError
            If the state belongs to a dataset with other operations or settings, or to a distribution with different
            steps; the message shows both datasets.
        InvalidArgumentError
            If `state` is not a result of `get_state`, or was saved in a different version of its format.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> iterator = iter(Dataset.range(9).take(2))
        >>> iterator.set_state(iter(Dataset.range(9).take(3)).get_state())
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: this state was saved by an iterator of another dataset:
        ...
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

    def __enter__(self: P) -> P:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
