"""Costs of collectives in closed form, for tests of the link model.

``V`` is the bytes of the full array, ``N`` the devices on an axis, ``W`` the bytes per second of one link, one way, and
``alpha`` the seconds per hop. An axis whose two ends are linked is a ring, another one a line.

References
----------
Austin et al., *How to Scale Your Model*, parts 2 and 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["axes_seconds", "axis_seconds", "between_slices_seconds", "point_to_point_seconds"]


def axis_seconds(
    collective: str,
    nbytes: float,
    size: int,
    *,
    wrap: bool,
    bytes_per_second: float,
    hop_seconds: float,
    model: str = "exact",
    shift: int = 1,
) -> float:
    """Time over one axis of neighbouring chips.

    A ring sends shards both ways, ``(N-1)/2`` of them over each link; on a line the end link carries all other shards.
    Chunks of an all-to-all have ``V/N^2`` bytes; each directed link of a ring carries ``N^2/8`` of them, and the
    middle link of a line ``N^2/4``. A broadcast is pipelined: the whole array in both directions until they meet, or a
    half in each direction around the ring; on a line the root is at an end.
    """
    if size == 1:
        return 0.0
    around = math.ceil((size - 1) / 2) if wrap else size - 1
    part = (size - 1) / size if model == "exact" else 1.0
    gather = (around, part / 2 if wrap else part)
    odd = (size**2 - 1) / size**2 if size % 2 and model == "exact" else 1.0
    ways = {
        "all_gather": [gather],
        "reduce_scatter": [gather],
        "all_reduce": [(2 * gather[0], 2 * gather[1])],
        "all_to_all": [(size // 2 if wrap else size - 1, odd / (8 if wrap else 4))],
        "collective_permute": [_permute(size, wrap, shift % size)],
        "broadcast": [(around, 1.0), (size - 1, 0.5)] if wrap else [(size - 1, 1.0)],
    }[collective]
    together = max if model == "asymptotic" else sum
    return min(together((hops * hop_seconds, volume * nbytes / bytes_per_second)) for hops, volume in ways)


def _permute(size: int, wrap: bool, shift: int) -> tuple[int, float]:
    near = min(shift, size - shift)
    if shift == 0:
        return 0, 0.0
    if wrap:  # all go the shorter way; to the opposite chip half goes each way
        return near, (near / 2 if 2 * near == size else near) / size
    return max(shift, size - shift), near / size


def axes_seconds(
    collective: str,
    nbytes: float,
    sizes: Sequence[int],
    *,
    wrap: bool,
    bytes_per_second: float,
    hop_seconds: float,
    schedule: str = "rotated",
) -> float:
    """Time of an all-reduce or all-gather over several axes.

    ``"sequential"``: one axis after the other, each on the result of the previous ones. ``"rotated"``, for equal axes:
    as many parts as axes, each of which starts with a different axis, so that all links are always busy.
    """
    speeds = {"wrap": wrap, "bytes_per_second": bytes_per_second, "hop_seconds": hop_seconds}
    axes = [size for size in sizes if size > 1]
    passes = 2 if collective == "all_reduce" else 1
    if schedule == "sequential":
        before = [math.prod(axes[:index]) for index in range(len(axes))]
        return passes * sum(
            axis_seconds("all_gather", nbytes / n, a, **speeds) for a, n in zip(axes, before, strict=True)
        )
    total, (size, *_) = math.prod(axes), axes
    hops = len(axes) * (math.ceil((size - 1) / 2) if wrap else size - 1)
    ways = len(axes) * (2 if wrap else 1)
    return passes * (hops * hop_seconds + (total - 1) / total * nbytes / (ways * bytes_per_second))


def point_to_point_seconds(
    nbytes: float, hops: int, paths: int, *, bytes_per_second: float, hop_seconds: float
) -> float:
    """Time of one message over paths that share no link."""
    return hops * hop_seconds + nbytes / (paths * bytes_per_second)


def between_slices_seconds(nbytes: float, slices: int, hosts_per_slice: int, host_bytes_per_second: float) -> float:
    """Time for hosts to exchange the shards of their devices in an all-reduce over slices."""
    return 2 * (slices - 1) / slices * (nbytes / hosts_per_slice) / host_bytes_per_second
