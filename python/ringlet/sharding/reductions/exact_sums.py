"""Sums that do not depend on the order of their terms, and therefore not on the tiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ringlet.sharding.execution.determinism import deterministic
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.sharded_array import ShardedArray

# Number of leading parts of each term that are summed; each has 53 bits minus the bits of the number of terms.
_NUM_PARTS = 3
_PRECISION = 53
# Maximum exponent of a sum of terms that are not scaled down, and the number of bits by which other terms are scaled.
_MOST_EXPONENT, _SCALE = 1000, 200


def is_supported(x: ShardedArray, dtype: np.dtype[Any] | None) -> bool:
    """Return whether the dtypes of `x` and, if given, of its sum are floats up to 64 bits or complex up to 128."""
    kinds = [x.dtype] if dtype is None else [x.dtype, dtype]
    return all(kind.kind in "fc" and kind.itemsize <= (8 if kind.kind == "f" else 16) for kind in kinds)


def exact_sum(x: ShardedArray, axes: Sequence[int], keepdims: bool) -> Any:
    """Return the sum along ascending axes, as float64 or complex128.

    The leading parts of the terms, ``(term + unit) - unit``, are summed without rounding, in any order; then the
    leading parts of the remainders, with a smaller unit. The unit is a power of two above the number of terms times the
    largest term.
    """
    x = materialized(x)
    if x.dtype.kind == "c":
        made: Any = np.zeros_like(x, np.complex128, shape=np.sum(x.real, tuple(axes), keepdims=keepdims).shape)
        made.real, made.imag = (exact_sum(part, axes, keepdims) for part in (x.real, x.imag))
        return made
    total: Any
    rest: Any = x.astype(np.float64, copy=False)
    most = np.max(np.abs(rest), axis=tuple(axes), keepdims=True, initial=0)
    if not bool(np.isfinite(most).all()):
        is_finite = np.isfinite(rest)
        with deterministic(None):
            others = np.sum(np.where(is_finite, 0.0, rest), tuple(axes), keepdims=keepdims)
        total = exact_sum(np.where(is_finite, rest, 0.0), axes, keepdims) + others  # type: ignore[arg-type]  # dispatched
        return np.where(np.isnan(total), np.nan, total)
    count = int(np.prod([x.shape[axis] for axis in axes], dtype=object))
    bits = (count + 2).bit_length()
    exponent = np.frexp(most)[1] + bits
    scale = _SCALE if int(np.max(exponent, initial=0)) > _MOST_EXPONENT else 0
    if scale:
        rest, exponent = np.ldexp(rest, -scale), exponent - scale
    unit: Any = np.ldexp(1.0, exponent)
    sums = []
    for _ in range(_NUM_PARTS):
        part = (rest + unit) - unit
        with deterministic(None):
            sums.append(materialized(np.sum(part, tuple(axes), keepdims=keepdims)))
        rest, unit = rest - part, np.ldexp(unit, bits - _PRECISION)
    total = sums[2] + sums[1] + sums[0]
    return np.ldexp(total, scale) if scale else total
