"""ElementDistribution: the distribution plan that assigns whole elements to the replicas of a worker.

Consecutive elements of one dataset go to consecutive replicas, unless every replica has its own dataset. This module
handles the end of data for all policies that distribute elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.distribution.input_placement import InputPlacement
from ringlet.data.distribution.worker_sync import WorkerSync
from ringlet.data.graph.batch_rows import empty_like_spec
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, Stream
from ringlet.data.graph.spec_inference import known_spec
from ringlet.data.operations.zip import InputStreams
from ringlet.data.tensor_spec import NoneTensorSpec, PerReplicaSpec
from ringlet.nest import flatten, map_structure
from ringlet.values import regroup

NONE_LEFT: Any = object()


@dataclass(frozen=True, eq=False)
class ElementDistribution:
    """A distribution plan: a step takes one element for each replica of a worker.

    `nodes` holds one node for all replicas, which take turns, or one node for each replica. The specs of `source`, the
    user's dataset, determine how the end of data is handled. Without `may_pad`, a single worker drops the last elements
    if they are too few for a step. With `steps_are_batches`, the parts of all workers in one step are the parts of one
    element of `source`.
    """

    nodes: tuple[Node, ...]
    place: InputPlacement
    source: Node | None = None
    may_pad: bool = True
    steps_are_batches: bool = False

    @property
    def global_batches(self) -> Node | None:
        """`source` if each step, over all workers, is one of its elements; otherwise None."""
        return self.source if self.steps_are_batches else None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.nodes

    @property
    def settings(self) -> dict[str, Any]:
        place = self.place
        return {"num_replicas": place.num_replicas, "num_workers": place.num_workers, "worker": place.worker_index}

    @property
    def _given(self) -> Node:
        return self.nodes[0] if self.source is None else self.source

    @property
    def cardinality(self) -> int:
        return self._given.cardinality

    @property
    def pads(self) -> bool:
        """Whether replicas without data receive arrays without rows while other replicas have data.

        False without `may_pad`, for an infinite dataset, and for a single worker if all sizes are known, because every
        part must then have these sizes.
        """
        if not self.may_pad or self.cardinality == INFINITE_CARDINALITY:
            return False
        spec = known_spec(self._given)
        return self.place.num_workers > 1 or spec is None or not all(s.is_fully_defined for s in flatten(spec)[0])

    @property
    def element_spec(self) -> Nest:
        specs = [node.element_spec for node in self.nodes]
        if len(specs) == 1:
            specs *= self.place.num_replicas
        if self.place.num_workers > 1 and self.cardinality != INFINITE_CARDINALITY:
            specs = map_structure(lambda spec: spec.with_rows(None) if spec.shape else spec, specs)
        return map_structure(PerReplicaSpec, *specs)

    def open(self, context: IterationContext) -> Stream:
        return ElementDistributionStream(self, [node.open(context) for node in self.nodes])


class ElementDistributionStream(InputStreams):
    """Stream of the steps of an `ElementDistribution`.

    A single worker drops the last elements if they are too few for a step, unless the plan pads. Otherwise, they are
    yielded, with arrays without rows for replicas without data, until no replica of any worker has data.
    """

    def __init__(self, plan: ElementDistribution, streams: list[Stream]) -> None:
        super().__init__(streams)
        self._plan = plan
        self._others = WorkerSync(plan.place, plan.place.num_workers > 1 and plan.cardinality != INFINITE_CARDINALITY)
        self._last: Nest = None  # an element that serves as the template of empty parts

    def __next__(self) -> Nest:
        return regroup(self._parts(False), always_wrap=True)

    def next_padded(self) -> Nest:
        """Return the next step, padded with arrays without rows even if the plan does not pad."""
        return regroup(self._parts(True), always_wrap=True)

    def _parts(self, is_padded: bool) -> list[Nest]:
        """Return the elements of a step, padded if `is_padded`, the plan pads, or workers add up their counts."""
        if self._is_closed:
            raise StopIteration
        try:
            parts = self._take()
        except Exception as error:
            self._others.tell(error)
            raise
        present = [part for part in parts if part is not NONE_LEFT]
        is_full = len(present) == len(parts)
        self._others.agree(present[0] if present else None, bool(present))
        if self._others.counts:
            self._last = present[-1] if present else self._last
            goes_on = self._others.total(len(present)) > 0
        else:
            goes_on = is_full or (bool(present) and (is_padded or self._plan.pads))
        if not goes_on:
            self.close()
            raise StopIteration
        return parts if is_full else self._filled_up(parts, present)

    def _take(self) -> list[Nest]:
        count = self._plan.place.num_replicas // len(self._inputs)
        return [next(stream, NONE_LEFT) for _ in range(count) for stream in self._inputs]

    def _filled_up(self, parts: list[Nest], present: list[Nest]) -> list[Nest]:
        like = present[0] if present else self._last
        nodes = self._nodes(len(parts))
        return [empty_part(node, like) if part is NONE_LEFT else part for part, node in zip(parts, nodes, strict=True)]

    def _nodes(self, count: int) -> Sequence[Node]:
        return self._plan.nodes * (count // len(self._plan.nodes))


def empty_part(node: Node, present: Nest) -> Nest:
    """Return an element with zero rows; other unknown dimensions also become zero.

    `present` is an element of another replica or an earlier step, or None. Empty arrays of other libraries are
    slices of arrays of `present`, as are all empty arrays if the specs or their numbers of dimensions are unknown.
    """
    specs = known_spec(node)
    if specs is None:
        return map_structure(_without_rows, present)
    if present is None:
        return map_structure(_no_rows, specs)
    try:
        return map_structure(_like, specs, present)
    except ValueError:  # the structures differ: regrouping the step raises the error
        return map_structure(_no_rows, specs)


def _like(spec: Any, leaf: Any) -> Any:
    is_foreign = hasattr(leaf, "shape") and not isinstance(leaf, (np.ndarray, np.generic))
    has_unknown_rows = spec.shape is None and getattr(leaf, "shape", ()) != ()
    return _without_rows(leaf) if is_foreign or has_unknown_rows else _no_rows(spec)


def _without_rows(leaf: Any) -> Any:
    return leaf[:0] if getattr(leaf, "shape", ()) else leaf


def _no_rows(spec: Any) -> Any:
    if isinstance(spec, NoneTensorSpec) or spec.shape:
        return empty_like_spec(spec)
    return b"" if spec.dtype == object else spec.dtype.type(0)
