"""The minimum memory traffic of each collective, as accesses that the C++ probe can measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["COLLECTIVES", "Access", "variants_of", "ways"]

# The most buffers that one loop of the probe reads, or writes, beside one other.
_MOST_BUFFERS = 8

_ANYWHERE = ("in_place", "out", "shared")
_APART = ("out", "shared")

COLLECTIVES = {
    "all_reduce": _ANYWHERE,
    "reduce_scatter": _ANYWHERE,
    "all_gather": _ANYWHERE,
    "broadcast": _ANYWHERE,
    "all_to_all": _APART,
    "reduce": _ANYWHERE,
    "gather": _ANYWHERE,
    "scatter": _APART,
    "collective_permute": _APART,
    "exclusive_scan": _ANYWHERE,
}


@dataclass(frozen=True)
class Access:
    """A memory access pattern, whose bandwidth the probe measures.

    Attributes
    ----------
    kind : str
        Name in ``bench/cpp/limits.cpp``: update, copy, read, write, reduceP, foldP or spreadP.
    working_set : int
        Bytes of all buffers together.
    moved : float
        Bytes read and written.
    """

    kind: str
    working_set: int
    moved: float


Way = tuple[Access, ...]


def variants_of(collective: str) -> Sequence[str]:
    """Return the variants of a collective.

    Examples
    --------
    >>> variants_of("all_to_all")
    ('out', 'shared')
    """
    return COLLECTIVES[collective]


def ways(collective: str, variant: str, num_ranks: int, size_bytes: int) -> list[Way]:
    """Return ways to perform a collective, as sequences of steps.

    Parameters
    ----------
    collective : str
    variant : {"in_place", "out", "shared"}
    num_ranks, size_bytes : int
        P, and the bytes of the larger of the two buffers of a rank.

    Returns
    -------
    list of tuple of Access
        The ways; the fastest one is the limit.

    Examples
    --------
    >>> ways("all_gather", "shared", 2, 1000)
    [(Access(kind='copy', working_set=2000, moved=2000.0),)]
    >>> [[step.kind for step in way] for way in ways("broadcast", "out", 4, 1000)]
    [['read', 'write'], ['spread4']]
    """
    p, size = num_ranks, size_bytes
    if collective == "all_reduce" and variant != "shared":
        return [_update(p * size)] if variant == "in_place" else [_copy(p * size)]
    if collective in ("all_reduce", "reduce", "reduce_scatter"):
        return _fold(p, size) if variant == "in_place" else _reduce(p, size)
    if collective in ("all_gather", "broadcast"):
        # In place, every piece is where it belongs in the buffer of one rank.
        return _spread(size, {"in_place": p - 1, "out": p, "shared": 1}[variant])
    if collective == "exclusive_scan":
        # The last input is not needed, and the first result is the same element everywhere.
        kind, touched = ("update", p * size) if variant == "in_place" else ("copy", (2 * p - 1) * size)
        return [(_step(kind, touched, 2 * (p - 1) * size), _step("write", touched, size))]
    if collective == "gather" and variant == "in_place":
        return [_copy(size * (p - 1) // p)]
    return [_copy(size if collective in ("gather", "scatter") else p * size)]


def _step(kind: str, touched: int, moved: int) -> Access:
    """Return a step of a collective whose buffers have `touched` bytes in total, partly held in caches."""
    return Access(kind, touched, float(moved))


def _update(size: int) -> Way:
    return (_step("update", size, 2 * size),)


def _copy(size: int) -> Way:
    return (_step("copy", 2 * size, 2 * size),)


def _reduce(count: int, size: int) -> list[Way]:
    """Read `count` buffers of `size` and write another; in one loop, reads and writes overlap."""
    touched = (count + 1) * size
    apart = (_step("read", touched, count * size), _step("write", touched, size))
    return [apart, *_in_one_loop("reduce", count, touched, touched)]


def _fold(count: int, size: int) -> list[Way]:
    """Read `count` buffers of `size` and write into one of them."""
    if count == 1:
        return [_update(size)]
    touched = count * size
    apart = (_step("read", touched, touched - size), _step("update", touched, 2 * size))
    return [apart, *_in_one_loop("fold", count, touched, touched + size)]


def _spread(size: int, count: int) -> list[Way]:
    """Read a buffer and write `count` others."""
    if count <= 1:
        return [_copy(size * count)]
    touched = (count + 1) * size
    apart = (_step("read", touched, size), _step("write", touched, count * size))
    return [apart, *_in_one_loop("spread", count, touched, touched)]


def _in_one_loop(kind: str, count: int, touched: int, moved: int) -> list[Way]:
    return [(_step(f"{kind}{count}", touched, moved),)] if count <= _MOST_BUFFERS else []
