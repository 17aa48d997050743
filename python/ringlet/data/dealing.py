"""Whole elements dealt out to the replicas: who makes the dataset has cut it already.

Consecutive elements of one dataset go to consecutive replicas; or every replica has a dataset of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringlet.data.node import Node, Run, Stream
from ringlet.data.spec import PerReplicaSpec
from ringlet.data.structure import Nest
from ringlet.nest import map_structure
from ringlet.values import regroup

__all__ = ["DealElements"]

_NONE_LEFT = object()


@dataclass(frozen=True, eq=False)
class DealElements:
    """A plan of distribution: a step takes one element for each replica.

    Parameters
    ----------
    nodes : tuple of Node
        One for all replicas, which take turns, or one for each.
    num_replicas : int
    """

    nodes: tuple[Node, ...]
    num_replicas: int

    @property
    def cardinality(self) -> int:
        """Number of elements of the (first) dataset."""
        return self.nodes[0].cardinality

    @property
    def element_spec(self) -> Nest:
        """A PerReplicaSpec for each array."""
        specs = [node.element_spec for node in self.nodes]
        if len(specs) == 1:
            specs *= self.num_replicas
        return map_structure(PerReplicaSpec, *specs)

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of one nest of PerReplica for each step."""
        times = self.num_replicas // len(self.nodes)
        return DealStream(self.nodes * times, [node.open(run) for node in self.nodes] * times)


class DealStream(Stream):
    """One element of each stream a step.

    At the end of data, elements that are too few for a step are lost where their specs are fully defined. Others are
    given out, with arrays without rows for the replicas that have none, until there is nothing for any replica.
    """

    __slots__ = ("_is_over", "_nodes", "_streams")

    def __init__(self, nodes: tuple[Node, ...], streams: list[Stream]) -> None:
        self._nodes = nodes
        self._streams = streams  # both are the same several times where replicas take turns
        self._is_over = False

    def __next__(self) -> Nest:
        if self._is_over:
            raise StopIteration
        parts = [next(stream, _NONE_LEFT) for stream in self._streams]
        if any(part is _NONE_LEFT for part in parts):
            parts = self._filled_up(parts)
        return regroup(parts, always_wrap=True)

    def _filled_up(self, parts: list[Nest]) -> list[Nest]:
        present = next((part for part in parts if part is not _NONE_LEFT), None)
        if present is not None:
            empties = [node.empty_component(present) for node in self._nodes]
            if all(empty is not None for empty in empties):
                return [e if part is _NONE_LEFT else part for part, e in zip(parts, empties, strict=True)]
        self.close()
        raise StopIteration

    def close(self) -> None:
        """Close the inputs."""
        self._is_over = True
        for stream in self._streams:
            stream.close()
