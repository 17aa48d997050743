"""BatchSplit: the distribution plan that splits each global batch into a part for each replica.

TensorFlow's rule for sources other than files: a batch of ``size`` rows is split into as many chunks as there are
replicas, in order, each of ``ceil(size / replicas)`` rows, the last chunks short or empty. For example, 5 rows over 4
replicas are split into 2, 2, 1 and 0 rows. Every array of an element is split by its own size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from ringlet.data.distribution.replica_rows import chunk_slices
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.graph.node import IterationContext, Node, OneToOneStream, Stream
from ringlet.data.tensor_spec import PerReplicaSpec, TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure, unflatten
from ringlet.values import PerReplica


@dataclass(frozen=True, eq=False)
class OneToOnePlan:
    """Base class of distribution plans in which each step is one element of a dataset."""

    node: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.node,)

    @property
    def position_graph(self) -> Node:
        """The dataset: its position does not depend on the number of replicas, since each step is one element."""
        return self.node

    @property
    def cardinality(self) -> int:
        return self.node.cardinality


@dataclass(frozen=True, eq=False)
class BatchSplit(OneToOnePlan):
    """A distribution plan: each step splits one element, a global batch, among the replicas of a single worker."""

    num_replicas: int

    def __post_init__(self) -> None:
        check_rows(self.node, self.num_replicas)

    @property
    def settings(self) -> dict[str, Any]:
        return {"num_replicas": self.num_replicas}

    @property
    def element_spec(self) -> Nest:
        """The specs of a step, a nest of PerReplicaSpec; sizes are known if they are equal on all replicas."""
        return map_structure(self._cut_spec, self.node.element_spec)

    def _cut_spec(self, spec: TensorSpec) -> PerReplicaSpec:
        if spec.shape == ():
            raise nothing_to_cut(f"an element is a scalar ({spec})", self.num_replicas)
        return part_spec(spec, self.num_replicas, self.num_replicas)

    def open(self, context: IterationContext) -> Stream:
        return BatchSplitStream(self.node.open(context), self.num_replicas)


def part_spec(spec: TensorSpec, total: int, count: int) -> PerReplicaSpec:
    """Return the specs of `count` of `total` parts of a batch; row counts are known if the batch divides evenly."""
    size = spec.shape[0] if spec.shape else None
    rows = None if size is None or size % total else size // total
    return PerReplicaSpec(*[spec.with_rows(rows)] * count)


class BatchSplitStream(OneToOneStream):
    """Stream that splits the elements of its input into parts for the replicas."""

    def __init__(
        self, source: Stream, num_replicas: int, slices_of: Callable[[int, int], tuple[slice, ...]] = chunk_slices
    ) -> None:
        super().__init__(source)
        self._num_replicas = num_replicas
        self._slices_of = slices_of
        # Nearly all batches have the same size, so the slices for that size are cached.
        self._size = -1
        self._take_parts: Callable[[Any], Any] = tuple

    def __next__(self) -> Nest:
        return self.cut(next(self._input))

    def cut(self, element: Nest) -> Nest:
        # Fast path for an array or a tuple of arrays, without traversing the structure.
        if type(element) is np.ndarray:
            return self._cut(element)
        if type(element) is tuple:
            return tuple([self._cut(part) if type(part) is np.ndarray else self.cut(part) for part in element])
        leaves, shape = flatten(element)
        return unflatten(shape, [self._cut(leaf) for leaf in leaves])

    def _cut(self, array: Any) -> PerReplica[Any]:
        if array is None:
            return PerReplica((None,) * self._num_replicas)
        try:
            size = array.shape[0]
        except (AttributeError, IndexError):
            raise nothing_to_cut(f"an element holds the scalar {array!r}", self._num_replicas) from None
        if size != self._size:
            self._take_parts = _part_taker(self._slices_of(size, self._num_replicas))
            self._size = size
        return PerReplica(self._take_parts(array))


def _part_taker(slices: tuple[slice, ...]) -> Callable[[Any], tuple[Any, ...]]:
    return itemgetter(*slices) if len(slices) > 1 else lambda array: (array[slices[0]],)


def check_rows(node: Node, num_replicas: int) -> None:
    """Raise InvalidArgumentError if a component of the elements is known to be a scalar, which has no rows."""
    # The spec of the results of a user function is unknown before the function is called.
    if node.runs_user_code or node.cardinality == 0:
        return
    for path, spec in zip(paths(node.element_spec), flatten(node.element_spec)[0], strict=True):
        if spec.shape == ():
            raise nothing_to_cut(f"element{path} is a scalar", num_replicas)


def nothing_to_cut(what: str, num_replicas: int) -> InvalidArgumentError:
    """Return the error for elements that have no rows to split."""
    return InvalidArgumentError(
        f"cannot split elements among {num_replicas} replicas: {what}, which has no batch dimension. Call "
        "dataset.batch(global_batch_size) before you distribute the dataset."
    )
