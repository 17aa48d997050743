"""Lower bounds of collective times, from the bytes that every chip must send over its links."""

from __future__ import annotations

import numpy as np

from ringlet.tpu.cost.cost_fabric import Fabric
from ringlet.tpu.cost.link_traffic import FloatArray, IntArray

__all__ = ["lower_bound_seconds"]


def lower_bound_seconds(
    collective: str, nbytes: float, groups: IntArray, fabric: Fabric, *, shift: int = 1, root: int = 0, target: int = 1
) -> float:
    """Return the time that the busiest chip needs to send its bytes over all its links at once.

    In a group of ``M`` chips, each chip sends at least ``2 (M-1)/M V`` in an all-reduce (Patarasuk and Yuan, 2009),
    half of these bytes in an all-gather or a reduce-scatter, the data for devices of other chips in an all-to-all, the
    shards that leave the chip in a collective-permute, and ``V`` = `nbytes` as the root of a broadcast or a message.
    The devices of a chip share its links, so the groups of a chip add up.
    """
    if groups.shape[1] == 1:
        return 0.0
    chips = fabric.chip[groups]
    if collective in ("all_reduce", "all_gather", "reduce_scatter"):
        sent = _sent_by_chips(chips, nbytes, fabric.network.num_chips)
        sent *= 2 if collective == "all_reduce" else 1
    elif collective == "all_to_all":
        sent = _sent_to_others(chips, nbytes, fabric.network.num_chips)
    elif collective == "collective_permute":
        away = chips != np.roll(chips, -shift, 1)
        sent = _count(chips[away], fabric) * (nbytes / groups.shape[1])
    else:
        away = (chips != chips[:, [root]]).any(1) if collective == "broadcast" else chips[:, root] != chips[:, target]
        sent = _count(chips[away, root], fabric) * nbytes
    out = fabric.bytes_per_second[: fabric.num_links].reshape(6, -1).sum(0)
    return float(np.divide(sent, out, out=np.zeros_like(out), where=sent > 0).max(initial=0.0))


def _count(chips: IntArray, fabric: Fabric) -> FloatArray:
    """Return the number of occurrences of each chip."""
    return np.bincount(chips, minlength=fabric.network.num_chips).astype(np.float64)


def _sent_by_chips(chips: IntArray, nbytes: float, num_chips: int) -> FloatArray:
    """Return ``(M-1)/M V`` for every chip, summed over its groups of ``M`` chips."""
    ordered = np.sort(chips, axis=1)
    is_first = np.ones(chips.shape, np.bool_)
    is_first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    count = is_first.sum(1)
    part = np.repeat((count - 1) / count, count)
    return np.asarray(np.bincount(ordered[is_first], part, num_chips) * nbytes, np.float64)


def _sent_to_others(chips: IntArray, nbytes: float, num_chips: int) -> FloatArray:
    """Return ``V/N^2`` for every pair of members on different chips, summed by sender."""
    count, size = chips.shape
    group = np.arange(count)[:, None] * num_chips
    _, inverse, members = np.unique((chips + group).ravel(), return_inverse=True, return_counts=True)
    others = size - members[inverse.reshape(-1)]
    sent: FloatArray = np.bincount(chips.ravel(), others, num_chips) * nbytes / size**2
    return sent
