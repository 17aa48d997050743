"""What an operation on sharded arrays sends between devices: the record that reports, plans and costs share."""

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
    """A box of an array, in coordinates of the whole, that one device sends another."""

    source: int
    target: int
    box: Box


@dataclass(frozen=True)
class Collective:
    """One collective as it is reported.

    Attributes
    ----------
    kind : str
        ``"all-reduce"``, ``"reduce-scatter"``, ``"all-gather"``, ``"all-to-all"``, ``"collective-permute"``,
        ``"gather"``, ``"broadcast"`` or ``"point-to-point"`` (messages that are none of these).
    shape : tuple of int
        What a device has afterwards, at most.
    dtype : str
    groups : tuple of tuple of int
        Devices that take part together.
    pairs : tuple of (int, int)
        Source and target of each message of a permutation.
    nbytes : int
        Bytes that all devices send together.
    seconds : float or None
        Predicted time, where the devices have places in a topology.
    """

    kind: Kind
    shape: tuple[int, ...]
    dtype: str
    groups: tuple[tuple[int, ...], ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    nbytes: int = 0
    seconds: float | None = None
