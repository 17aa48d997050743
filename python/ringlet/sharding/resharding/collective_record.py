"""Collective record: what an operation on sharded arrays sends, as reports, plans and the cost model use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ringlet.sharding.layout.layout import Box, Shape

__all__ = ["Collective", "Kind", "Message"]

Kind = Literal[
    "all-reduce",
    "reduce-scatter",
    "all-gather",
    "all-to-all",
    "collective-permute",
    "gather",
    "broadcast",
    "point-to-point",
]


class Message(NamedTuple):
    """A box of an array, in global coordinates, sent from one device to another."""

    source: int
    target: int
    box: Box


@dataclass(frozen=True)
class Collective:
    """Record of one collective; ``"point-to-point"`` is any other messages.

    `shape` is that of the largest result on a device, `pairs` are source and target of each message of a permutation,
    `nbytes` are sent by all devices, `seconds` are predicted where the devices have positions in a topology.
    """

    kind: Kind
    shape: Shape
    dtype: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    nbytes: int = 0
    seconds: float | None = None
