"""Every element exactly once, with a weight for each replica's part (``uneven="keep"``).

A step over N replicas whose parts have ``n_0, n_1, ...`` rows carries the weights ``w_k = n_k * N / (n_0 + n_1 +
...)``. So the mean over replicas of ``w_k * (mean over the rows of part k)`` is the mean over the rows of the step,
whatever the sizes: the weights are all 1 where the parts have one size, and 0 for a replica without data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.distribution.batch_split import CutStream, check_rows
from ringlet.data.distribution.element_distribution import DealElements, DealStream
from ringlet.data.distribution.input_placement import Place
from ringlet.data.distribution.replica_rows import balanced_slices
from ringlet.data.distribution.worker_sync import Others
from ringlet.data.graph.batch_rows import num_rows
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, PassedOn, Run, Stream
from ringlet.data.tensor_spec import PerReplicaSpec, TensorSpec
from ringlet.nest import flatten, map_structure
from ringlet.values import PerReplica, regroup

__all__ = ["KeepAlone", "KeepBatches", "KeepDealt", "weights_of"]

_WEIGHT = TensorSpec((), np.float64)


def weights_of(rows: list[int], total: int, num_replicas: int) -> PerReplica[Any]:
    """Give the weight of each part in the mean over `num_replicas` replicas.

    Parameters
    ----------
    rows : list of int
        Rows of the parts.
    total : int
        Rows of the parts of all replicas of all workers.
    num_replicas : int
        Number of all replicas of all workers.

    Examples
    --------
    >>> weights_of([2, 1], 3, 2).values
    (np.float64(1.3333333333333333), np.float64(0.6666666666666666))
    """
    return PerReplica([np.float64(count * num_replicas / total if total else 0.0) for count in rows])


@dataclass(frozen=True, eq=False)
class KeepAlone:
    """A plan of distribution for one replica: elements as they are, each with the weight 1."""

    node: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The dataset."""
        return (self.node,)

    @property
    def carried(self) -> Node:
        """The dataset: each step is one of its elements, for any number of replicas."""
        return self.node

    @property
    def cardinality(self) -> int:
        """Number of steps."""
        return self.node.cardinality

    @property
    def element_spec(self) -> Nest:
        """The pair of the specs of the dataset and of the weight."""
        return self.node.element_spec, _WEIGHT

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of pairs."""
        return _AloneStream(self.node.open(run))


class _AloneStream(PassedOn):
    """The elements of another stream, each with the weight 1."""

    __slots__ = ()

    def __next__(self) -> Nest:
        return next(self._input), np.float64(1)


@dataclass(frozen=True, eq=False)
class KeepBatches:
    """A plan of distribution: each element is a global batch, of which every worker keeps the rows of its replicas.

    Parts differ by one row at most, and follow each other in the order of replicas over all workers.
    """

    node: Node
    place: Place

    def __post_init__(self) -> None:
        check_rows(self.node, self.place.total)

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The dataset."""
        return (self.node,)

    @property
    def carried(self) -> Node:
        """The dataset: each step is one of its elements, for any number of replicas."""
        return self.node

    @property
    def settings(self) -> dict[str, Any]:
        """What the steps depend on."""
        return DealElements((self.node,), self.place).settings

    @property
    def cardinality(self) -> int:
        """Number of steps."""
        return self.node.cardinality

    @property
    def element_spec(self) -> Nest:
        """The pair of a PerReplicaSpec for each array and one for the weights."""
        return map_structure(self._part_spec, self.node.element_spec), PerReplicaSpec(*[_WEIGHT] * self._count)

    @property
    def _count(self) -> int:
        return self.place.num_replicas

    def _part_spec(self, spec: TensorSpec) -> PerReplicaSpec:
        size = spec.shape[0] if spec.shape else None
        part = None if size is None or size % self.place.total else size // self.place.total
        return PerReplicaSpec(*[spec.with_rows(part)] * self._count)

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of pairs of a nest of PerReplica and the weights."""
        return _KeepStream(self.node.open(run), self.place)


class _KeepStream(PassedOn):
    """Batches of another stream, cut for the replicas of one worker, with weights."""

    __slots__ = ("_cutter", "_others", "_slices", "_total")

    def __init__(self, source: Stream, place: Place) -> None:
        super().__init__(source)
        self._others = Others(place, False)
        first = place.worker_index * place.num_replicas
        mine = slice(first, first + place.num_replicas)
        self._total = place.total
        # No method of this stream, which would never be dropped while it knows itself.
        self._slices: Callable[[int, int], tuple[slice, ...]] = lambda size, parts: balanced_slices(size, parts)[mine]
        self._cutter = CutStream(source, place.total, self._slices)

    def __next__(self) -> Nest:
        batch = self._next_batch()
        parts = self._cutter.cut(batch)
        size = flatten(batch)[0][0].shape[0]
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
class KeepDealt(DealElements):
    """A plan of distribution: elements of the share that a worker has for itself, dealt to its replicas."""

    @property
    def pads(self) -> bool:
        """Always: nothing may be lost."""
        return True

    @property
    def element_spec(self) -> Nest:
        """The pair of a PerReplicaSpec for each array and one for the weights."""
        return super().element_spec, PerReplicaSpec(*[_WEIGHT] * self.place.num_replicas)

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of pairs of a nest of PerReplica and the weights."""
        return _KeepDealtStream(self, [node.open(run) for node in self.nodes])


class _KeepDealtStream(DealStream):
    """Dealt elements, with weights."""

    __slots__ = ()

    def __next__(self) -> Nest:
        parts = self._parts(True)
        rows = list(map(num_rows, parts))
        place = self._plan.place
        return regroup(parts, always_wrap=True), weights_of(rows, self._others.total(sum(rows)), place.total)

    def next_padded(self) -> Nest:
        """Give the next step: every step is filled up."""
        return next(self)
