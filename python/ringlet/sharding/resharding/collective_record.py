"""Collective record: what an operation on sharded arrays sends, as reports, plans and the cost model use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from ringlet.sharding.layout.layout import Box

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
    """Record of one collective.

    Attributes
    ----------
    kind : str
        ``"all-reduce"``, ``"reduce-scatter"``, ``"all-gather"``, ``"all-to-all"``, ``"collective-permute"``,
        ``"gather"``, ``"broadcast"`` or ``"point-to-point"`` (any other messages).
    shape : tuple of int
        Shape of the largest result on a device.
    dtype : str
    groups : tuple of tuple of int
        Groups of participating devices.
    pairs : tuple of (int, int)
        Source and target of each message of a permutation.
    nbytes : int
        Bytes sent by all devices.
    seconds : float or None
        Predicted time, if the devices have positions in a topology.
    """

    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    nbytes: int = 0
    seconds: float | None = None
