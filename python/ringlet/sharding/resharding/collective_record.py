"""Collective record: data that an operation on sharded arrays sends, for reports, plans and the cost model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ringlet.sharding.layout.layout import Box, Shape

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
    """Record of one collective; ``"point-to-point"`` stands for messages that form no other pattern.

    `shape` is the shape of the largest result on a device, `pairs` has the source and target of each message of a
    permutation, `nbytes` is the number of bytes sent by all devices, and `seconds` is the predicted time if the devices
    have positions in a topology.
    """

    kind: Kind
    shape: Shape
    dtype: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    nbytes: int = 0
    seconds: float | None = None
