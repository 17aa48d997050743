"""DistributedIterator: an iterator over the steps of a distributed dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet import context
from ringlet.data.graph.iteration_context import Graph, position_graph
from ringlet.data.optional import Optional
from ringlet.data.state.iterator_state import batches_read, restored
from ringlet.data.state.pipeline_iterator import PipelineIterator
from ringlet.observe import trace_hook

if TYPE_CHECKING:
    from ringlet.data.distribution.distribution_plan import Plan
    from ringlet.data.graph.element_structure import Nest
    from ringlet.data.graph.node import State

_UNKNOWN = -(1 << 62)  # number of steps if a restored state lacks it; stays negative when incremented


class DistributedIterator(PipelineIterator):
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

    __slots__ = ("_num_steps",)
    _what = "distributed dataset"

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, plan)
        self._num_steps = 0

    def __next__(self) -> Nest:
        _require_no_replica()
        if (trace := trace_hook.current) is not None:
            step = trace.timed("next", "input", next)(self._stream)
        else:
            step = next(self._stream)
        self._num_steps += 1
        return step

    def get_next_as_optional(self) -> Optional[Nest]:
        """Return the next step, or an empty Optional at the end.

        Unlike `get_next`, this method never drops the last elements, as in TensorFlow: if they are too few for a step,
        replicas without data receive arrays without rows.

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
            # The stream of an ElementDistribution pads with arrays without rows.
            step = getattr(self._stream, "next_padded", self._stream.__next__)()
        except StopIteration:
            return Optional.at_end(self._source)
        self._num_steps += 1
        return Optional(step)

    def get_state(self) -> State:
        """Return a snapshot of this worker's position, as :meth:`DatasetIterator.get_state` does."""
        state = super().get_state()
        return {**state, **batches_read(self._opened, _global_batches(self._source), self._num_steps)}

    def set_state(self, state: State) -> None:
        """Continue from a saved state, as :meth:`DatasetIterator.set_state` does.

        The number of workers or replicas may differ if each step is one global batch, as under AutoShardPolicy.DATA;
        the batches before the position are then computed again, unless a single worker keeps all rows.
        """
        self._opened = restored(self._opened, state, _global_batches(self._source))
        self._stream = self._opened.stream
        self._num_steps = state.get("num_steps", _UNKNOWN)


def _global_batches(plan: Plan) -> Graph | None:
    """Return the dataset of global batches without a final prefetch; None if steps are not elements of one dataset."""
    from ringlet.data.operations.prefetch import Prefetch

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
