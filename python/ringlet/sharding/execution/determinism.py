"""Determinism of sums: whether their bits may depend on how arrays are divided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

_KIND: ContextVar[str | None] = ContextVar("ringlet_sharding_determinism", default=None)


def ignores_tiling() -> bool:
    """Return whether sums must not depend on the tiling."""
    return _KIND.get() == "tiling"


@contextmanager
def deterministic(kind: Literal["tiling"] | None = "tiling") -> Iterator[None]:
    """Make sums of floats independent of the tiling, in this block and in replicas started in it.

    Applies to ``sum``, ``nansum``, ``mean`` and ``add.reduce`` of floats of up to 64 bits and of complex numbers made
    of them; write dot products as ``(a * b).sum()``. Results have the same bits on any mesh, in any sharding and memory
    order. The error of up to 2**20 terms is at most 1 ulp plus 2**-70 times the largest term. A sum takes about ten
    passes over the array instead of one, and four all-reduces of the result's size instead of one; its result is never
    partial. Without this block, results are the same in each run, but depend on the tiling.

    Parameters
    ----------
    kind : {"tiling", None}
        None ends the effect of an enclosing block.

    Yields
    ------
    None

    Raises
    ------
    ValueError
        If `kind` is invalid.

    References
    ----------
    S. Rump, T. Ogita and S. Oishi, "Accurate floating-point summation, part I", 2008, ``ExtractVector``; J. Demmel and
    H. D. Nguyen, "Parallel reproducible summation", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> values = np.random.default_rng(0).standard_normal(1000)
    >>> with deterministic("tiling"):
    ...     sums = {float(shard(values, Sharding.tiled((n,))).sum()) for n in (1, 2, 3, 8)}
    >>> len(sums)
    1
    """
    if kind not in ("tiling", None):
        raise ValueError(
            f"{kind!r} is not a kind of determinism: expected 'tiling', for sums that do not depend on how arrays are "
            "divided, or None"
        )
    token = _KIND.set(kind)
    try:
        yield
    finally:
        _KIND.reset(token)
