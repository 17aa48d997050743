"""DistributedIterator: an iterator over the steps of a distributed dataset."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from ringlet import context
from ringlet.data.distribution.distribution_plan import Plan
from ringlet.data.distribution.element_distribution import next_padded
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import Graph, position_graph
from ringlet.data.graph.node import State
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.data.operations.prefetch import Prefetch
from ringlet.data.optional import Optional
from ringlet.data.state.iterator_state import batches_read, restored, saved
from ringlet.data.state.user_state import check_external_state
from ringlet.errors import OutOfRangeError
from ringlet.observe import trace_hook

__all__ = ["DistributedIterator"]

_UNKNOWN = -(1 << 62)  # remains negative: the number of steps after a state of another class of iterators


class DistributedIterator(Iterator[Nest]):
    """An iterator over the steps of a distributed dataset, as returned by ``iter(distributed_dataset)``.

    Advance the iterator outside of replica functions: ``strategy.run(fn, args=(next(iterator),))`` passes each replica
    its part.

    Parameters
    ----------
    plan : Plan

    Examples
    --------
    >>> from ringlet.data import Dataset, DistributedDataset
    >>> iterator = iter(DistributedDataset(Dataset.range(2).batch(2), 2))
    >>> iterator.get_next()
    PerReplica:{
      0: array([0]),
      1: array([1])
    }
    >>> iterator.get_next_as_optional().has_value()
    False
    """

    __slots__ = ("__weakref__", "_num_steps", "_opened", "_plan", "_stream")

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._opened = PipelineHandle(plan)
        self._stream = self._opened.stream
        self._num_steps = 0

    def __next__(self) -> Nest:
        _require_no_replica()
        if (trace := trace_hook.current) is not None:
            step = trace.timed("next", "input", next)(self._stream)
        else:
            step = next(self._stream)
        self._num_steps += 1
        return step

    def get_next(self) -> Nest:
        """Return the next step.

        Raises
        ------
        OutOfRangeError
            If no data is left, or too little data for a step of known sizes.
        ValueError
            If called by a replica.

        Examples
        --------
        >>> from ringlet.data import DistributedDataset
        >>> iter(DistributedDataset([[1.5, 2.5]], 1)).get_next()
        array([1.5, 2.5])
        """
        try:
            return next(self)
        except StopIteration:
            raise OutOfRangeError(
                "end of the distributed dataset. Create a new iterator to read the dataset again."
            ) from None

    def get_next_as_optional(self) -> Optional[Nest]:
        """Return the next step, or an empty Optional at the end.

        As in TensorFlow, the last elements are never dropped here, even if they are too few for a step and `get_next`
        drops them because all sizes are known: replicas without data receive arrays without rows.

        Raises
        ------
        ValueError
            If called by a replica.

        Examples
        --------
        >>> from ringlet.data import DistributedDataset
        >>> iter(DistributedDataset([[1.5, 2.5]], 1)).get_next_as_optional()
        Optional(array([1.5, 2.5]))
        """
        _require_no_replica()
        try:
            step = next_padded(self._stream)
        except StopIteration:
            return Optional.at_end(self._plan)
        self._num_steps += 1
        return Optional(step)

    @property
    def element_spec(self) -> Nest:
        """The specs of a step, a nest of PerReplicaSpec."""
        return self._plan.element_spec

    def get_state(self) -> State:
        """Return a snapshot of the position in the dataset, from which `set_state` continues exactly.

        Returns
        -------
        dict
            A state like the result of `DatasetIterator.get_state`, suitable for a checkpoint. Each worker has its own
            state.

        Raises
        ------
        FailedPreconditionError
            If functions make the elements and the policy of the dataset is ExternalStatePolicy.FAIL.

        Examples
        --------
        >>> from ringlet.data import Dataset, DistributedDataset
        >>> distributed = DistributedDataset(Dataset.range(8).shuffle(8).batch(2), 2)
        >>> iterator, later = iter(distributed), iter(distributed)
        >>> first = next(iterator)
        >>> later.set_state(iterator.get_state())
        >>> [str(step) for step in later] == [str(step) for step in iterator]
        True
        """
        check_external_state(self._opened.graph)
        return {**saved(self._opened), **batches_read(self._opened, _global_batches(self._plan), self._num_steps)}

    def set_state(self, state: State) -> None:
        """Continue from a saved state of an iterator.

        Parameters
        ----------
        state : dict
            A result of `get_state` for an equal dataset with an equal distribution, in any process. The numbers of
            workers and replicas may differ if each step is one global batch, as under AutoShardPolicy.DATA; the batches
            before the position are then made again, unless one worker keeps all rows.

        Raises
        ------
        FailedPreconditionError
            If the state belongs to a dataset with other operations or settings, or to a number of replicas or workers
            that yields other steps; the message lists both.
        InvalidArgumentError
            If `state` is not a result of `get_state`.

        Examples
        --------
        >>> from ringlet.data import Dataset, DistributedDataset
        >>> iterator = iter(DistributedDataset(Dataset.range(8).batch(4), 2))
        >>> iterator.set_state(iter(DistributedDataset(Dataset.range(9).batch(4), 2)).get_state())
        Traceback (most recent call last):
        ringlet.errors.FailedPreconditionError: this state was saved by an iterator of another dataset:
        ...
        """
        self._opened = restored(self._opened, state, _global_batches(self._plan))
        self._stream = self._opened.stream
        self._num_steps = state.get("num_steps", _UNKNOWN)

    def close(self) -> None:
        """Close the iterator: release the threads and files of the pipeline, and end the iteration.

        Examples
        --------
        >>> from ringlet.data import Dataset, DistributedDataset
        >>> iterator = iter(DistributedDataset(Dataset.range(8).batch(2), 2))
        >>> iterator.close()
        >>> list(iterator)
        []
        """
        self._stream.close()

    def __enter__(self) -> DistributedIterator:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _global_batches(plan: Plan) -> Graph | None:
    """Return the dataset of which each step of all workers is one element; None if steps are made in another way."""
    batches: Graph | None = getattr(plan, "global_batches", position_graph(plan))
    return batches.inputs[0] if isinstance(batches, Prefetch) else batches


def _require_no_replica() -> None:
    mode = context.current()
    if mode is not None and not mode.is_cross_replica:
        raise ValueError(
            "next(iterator) was called by a replica, but returns the parts of all replicas. Call it outside of the "
            "replica function, as in strategy.run(replica_fn, args=(next(iterator),)), where each replica receives its "
            "own part."
        )
