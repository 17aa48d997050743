"""Distribution plans that yield every element exactly once, with weights (``uneven="keep"``).

A step over N replicas whose parts have ``n_0, n_1, ...`` rows carries the weights ``w_k = n_k * N / (n_0 + n_1 +
...)``. With them, the mean over replicas of ``w_k * (mean over the rows of part k)`` is the mean over the rows of the
step, for parts of any size. All weights are 1 if the parts have equal sizes; a replica without data has weight 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.distribution.batch_split import BatchSplitStream, OneToOnePlan, check_rows, part_spec
from ringlet.data.distribution.element_distribution import ElementDistribution, ElementDistributionStream
from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.distribution.replica_rows import balanced_slices
from ringlet.data.distribution.worker_sync import WorkerSync
from ringlet.data.graph.batch_rows import num_rows
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, OneToOneStream, Stream
from ringlet.data.tensor_spec import PerReplicaSpec, TensorSpec
from ringlet.nest import map_structure
from ringlet.values import PerReplica, regroup

_WEIGHT = TensorSpec((), np.float64)


def weights_of(rows: list[int], total: int, num_replicas: int) -> PerReplica[Any]:
    """Return the weight of each part in the mean over all replicas; `total` is the number of rows of all workers."""
    return PerReplica([np.float64(count * num_replicas / total if total else 0.0) for count in rows])


@dataclass(frozen=True, eq=False)
class WeightedSingleReplica(OneToOnePlan):
    """The distribution plan for one replica: unchanged elements, each with weight 1."""

    @property
    def element_spec(self) -> Nest:
        return self.node.element_spec, _WEIGHT

    def open(self, context: IterationContext) -> Stream:
        return _WeightedSingleStream(self.node.open(context))


class _WeightedSingleStream(OneToOneStream):
    def __next__(self) -> Nest:
        return next(self._input), np.float64(1)


@dataclass(frozen=True, eq=False)
class WeightedBatchSplit(OneToOnePlan):
    """A distribution plan: each element is a global batch, and every worker keeps the rows of its replicas.

    The sizes of parts differ by at most one row; parts are in the order of the replicas of all workers.
    """

    place: InputPlacement

    def __post_init__(self) -> None:
        check_rows(self.node, self.place.total)

    @property
    def settings(self) -> dict[str, Any]:
        return ElementDistribution((self.node,), self.place).settings

    @property
    def element_spec(self) -> Nest:
        total, count = self.place.total, self.place.num_replicas
        parts = map_structure(lambda spec: part_spec(spec, total, count), self.node.element_spec)
        return parts, PerReplicaSpec(*[_WEIGHT] * count)

    def open(self, context: IterationContext) -> Stream:
        return _WeightedSplitStream(self.node.open(context), self.place)


class _WeightedSplitStream(OneToOneStream):
    """Stream that splits each batch for the replicas of one worker, and yields parts and weights."""

    def __init__(self, source: Stream, place: InputPlacement) -> None:
        super().__init__(source)
        self._others = WorkerSync(place, False)
        first = place.worker_index * place.num_replicas
        mine = slice(first, first + place.num_replicas)
        self._total = place.total
        # A lambda instead of a bound method, which would create a reference cycle.
        self._slices: Callable[[int, int], tuple[slice, ...]] = lambda size, parts: balanced_slices(size, parts)[mine]
        self._cutter = BatchSplitStream(source, place.total, self._slices)

    def __next__(self) -> Nest:
        batch = self._next_batch()
        parts = self._cutter.cut(batch)
        size = num_rows(batch)
        rows = [part.stop - part.start for part in self._slices(size, self._total)]
        return parts, weights_of(rows, size, self._total)

    def _next_batch(self) -> Nest:
        batch, has_one = None, True
        try:
            batch = next(self._input)
        except StopIteration:
            has_one = False
        except Exception as error:
            self._others.tell(error)
            raise
        self._others.agree(batch, has_one)
        if not has_one:
            raise StopIteration
        return batch


@dataclass(frozen=True, eq=False)
class WeightedElementDistribution(ElementDistribution):
    """A distribution plan: the elements of a worker's share are distributed to its replicas, with weights."""

    pads = True  # no element is dropped

    @property
    def element_spec(self) -> Nest:
        return super().element_spec, PerReplicaSpec(*[_WEIGHT] * self.place.num_replicas)

    def open(self, context: IterationContext) -> Stream:
        return _WeightedDistributionStream(self, [node.open(context) for node in self.nodes])


class _WeightedDistributionStream(ElementDistributionStream):
    def __next__(self) -> Nest:
        parts = self._parts(True)
        rows = list(map(num_rows, parts))
        place = self._plan.place
        return regroup(parts, always_wrap=True), weights_of(rows, self._others.total(sum(rows)), place.total)

    def next_padded(self) -> Nest:
        return next(self)
