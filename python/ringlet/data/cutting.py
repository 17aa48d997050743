"""One global batch after another, cut into a part for each replica.

TensorFlow's rule for sources that are not files: a batch of ``size`` rows is cut into as many chunks as there are
replicas, in order, each of ``ceil(size / replicas)`` rows, the last ones short or empty: 5 rows over 4 replicas are 2,
2, 1, 0. Every array of an element is cut by its own size.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ringlet.data.node import Node, Run, Stream
from ringlet.data.spec import PerReplicaSpec, TensorSpec
from ringlet.data.structure import Nest, paths
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure, unflatten
from ringlet.values import PerReplica

__all__ = ["CutBatches", "chunk_slices"]


def chunk_slices(size: int, num_chunks: int) -> tuple[slice, ...]:
    """Give the places of the chunks in `size` rows.

    Examples
    --------
    >>> [(chunk.start, chunk.stop) for chunk in chunk_slices(5, 4)]
    [(0, 2), (2, 4), (4, 5), (5, 5)]
    """
    rows = -(-size // num_chunks)
    edges = [min(rows * chunk, size) for chunk in range(num_chunks + 1)]
    return tuple(slice(start, stop) for start, stop in pairwise(edges))


@dataclass(frozen=True, eq=False)
class CutBatches:
    """A plan of distribution: each element is a global batch, and a step cuts one.

    Raises
    ------
    InvalidArgumentError
        If elements have no first dimension to cut, as far as that is known before the first of them.
    """

    node: Node
    num_replicas: int

    def __post_init__(self) -> None:
        # The spec of a function of the user is known once it has been called, not earlier.
        if not self.node.runs_user_code and self.node.cardinality != 0:
            for path, spec in zip(paths(self.node.element_spec), flatten(self.node.element_spec)[0], strict=True):
                if spec.shape == ():
                    raise _nothing_to_cut(f"element{path}", self.num_replicas)

    @property
    def cardinality(self) -> int:
        """Number of steps."""
        return self.node.cardinality

    @property
    def element_spec(self) -> Nest:
        """A PerReplicaSpec for each array; sizes are known where all replicas have the same."""
        return map_structure(self._cut_spec, self.node.element_spec)

    def _cut_spec(self, spec: TensorSpec) -> PerReplicaSpec:
        if spec.shape is None:
            return PerReplicaSpec(*[spec] * self.num_replicas)
        if not spec.shape:
            raise _nothing_to_cut("an element", self.num_replicas)
        size = spec.shape[0]
        part = None if size is None or size % self.num_replicas else size // self.num_replicas
        return PerReplicaSpec(*[TensorSpec((part, *spec.shape[1:]), spec.dtype)] * self.num_replicas)

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of one nest of PerReplica for each step."""
        return CutStream(self.node.open(run), self.num_replicas)


class CutStream(Stream):
    """The elements of another stream, each cut into views for the replicas."""

    __slots__ = ("_input", "_num_replicas", "_size", "_slices")

    def __init__(self, source: Stream, num_replicas: int) -> None:
        self._input = source
        self._num_replicas = num_replicas
        # Nearly all batches have one size: the places of its chunks are kept.
        self._size = -1
        self._slices: tuple[slice, ...] = ()

    def __next__(self) -> Nest:
        element = next(self._input)
        if type(element) is np.ndarray:
            return self._cut(element)
        leaves, shape = flatten(element)
        return unflatten(shape, [self._cut(leaf) for leaf in leaves])

    def _cut(self, array: Any) -> PerReplica[Any]:
        shape = getattr(array, "shape", ())
        if not shape:
            raise _nothing_to_cut(f"an element holds the scalar {array!r}", self._num_replicas)
        size = shape[0]
        if size != self._size:
            self._slices = chunk_slices(size, self._num_replicas)
            self._size = size
        return PerReplica([array[chunk] for chunk in self._slices])

    def close(self) -> None:
        """Close the input."""
        self._input.close()


def _nothing_to_cut(what: str, num_replicas: int) -> InvalidArgumentError:
    what = what if " " in what else f"{what} is a scalar"
    return InvalidArgumentError(
        f"cannot cut elements into parts for {num_replicas} replicas: {what}, which has no batch dimension. Call "
        "dataset.batch(global_batch_size) before you distribute the dataset."
    )
