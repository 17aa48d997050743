"""Linearity: which operations keep partial operands partial, given the other operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.sharding.layout.factors import FactorMap, Labels, Others
from ringlet.sharding.sharded_array import Origin, ShardedArray

_FIRST, _SECOND, _BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})

# Sets of operands that may be partial at the same time, and the role of the other operands. Integers that overflow wrap
# around, so the order of summation does not matter.
_LINEAR: dict[np.ufunc, tuple[tuple[frozenset[int], ...], Others]] = {
    np.add: ((_BOTH, _FIRST, _SECOND), "terms"),
    np.subtract: ((_BOTH, _FIRST, _SECOND), "terms"),
    np.multiply: ((_FIRST, _SECOND), "factors"),
    np.divide: ((_FIRST,), "divisors"),
    np.negative: ((_FIRST,), "factors"),
    np.positive: ((_FIRST,), "factors"),
    np.conjugate: ((_FIRST,), "factors"),
}


# Maximum number of steps to an origin; each step keeps its operands in memory.
_MOST_STEPS = 16


def elementwise_factors(
    ufunc: np.ufunc, operands: Sequence[Any], labels: tuple[Labels, ...], result: Labels, dtype: np.dtype[Any]
) -> FactorMap:
    """Return the factors of an elementwise operation: it is linear only in operands of the result's dtype.

    Sums of 16-bit floats are combined first because they may overflow before their terms cancel.
    """
    together, others = _LINEAR.get(ufunc, ((), "factors"))
    if not _is_linear(dtype):
        together = ()
    together = tuple(s for s in together if all(getattr(operands[n], "dtype", None) == dtype for n in s))
    return FactorMap(labels, result, linear=together, others=others, is_elementwise=True)


def _is_linear(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "iuc" or (dtype.kind == "f" and dtype.itemsize > 2)


def may_keep_parts(ufunc: np.ufunc, operands: Sequence[Any], partial: frozenset[int]) -> bool:
    """Return whether the layouts allow a partial result; `partial` has the positions of the partial operands."""
    together, others = _LINEAR.get(ufunc, ((), "factors"))

    spread = {n for n, x in enumerate(operands) if isinstance(x, ShardedArray) and not x._layout.is_replicated}
    return any(s <= partial and (others == "terms" or spread <= s) for s in together)


def keeps_parts(ufunc: np.ufunc, operands: Sequence[Any], place: int, dtype: np.dtype[Any]) -> bool:
    """Return whether an operation maps each part of operand `place`, the only partial one, to a part of the result."""
    together, others = _LINEAR.get(ufunc, ((), "factors"))
    if others == "terms" or frozenset({place}) not in together or not _is_linear(dtype):
        return False
    return operands[place]._dtype == dtype and all(_allows(x, others) for n, x in enumerate(operands) if n != place)


def checked_linear(factor_map: FactorMap, operands: Sequence[Any]) -> FactorMap:
    """Return factors that are linear only if the values of the other operands allow it.

    Terms times infinity do not add up to the sum times infinity: ``2 * inf - 1 * inf``. Coefficients must therefore be
    finite and divisors nonzero, as far as each device can check with its own values.
    """
    partial = {n for n, x in enumerate(operands) if not is_known(x)}
    if factor_map.others == "terms" or not partial:
        return factor_map
    allowed = tuple(
        together
        for together in factor_map.linear
        if together <= partial
        and all(_allows(x, factor_map.others) for n, x in enumerate(operands) if n not in together)
    )
    return factor_map if allowed == factor_map.linear else _restricted(factor_map, allowed)


@lru_cache(maxsize=1024)
def _restricted(factor_map: FactorMap, linear: tuple[frozenset[int], ...]) -> FactorMap:
    return replace(factor_map, linear=linear)


def _allows(x: Any, others: Others) -> bool:
    if type(x) in (bool, int):
        return others == "factors" or bool(x)
    if others == "factors" and getattr(x, "dtype", np.dtype(float)).kind in "biu":
        return True
    if isinstance(x, ShardedArray):
        if not x._layout.is_replicated:
            return False
        x = x._tile(x._group.local_devices[0]) if x._whole is None else x._whole
    if not np.shape(x):
        return bool(np.isfinite(x)) and (others == "factors" or bool(x))
    return bool(np.isfinite(x).all() and (others == "factors" or np.all(x)))


def settled(x: Any) -> Any:
    """Return the combined values of a partial operand, if they were computed before; else the operand."""
    combined = getattr(x, "_settled", None)
    return x if combined is None else combined


def is_known(x: Any) -> bool:
    """Return whether an operand is not partial or has already been combined."""
    return not isinstance(x, ShardedArray) or x._settled is not None or not x._layout.is_partial


def origin_of(ufunc: np.ufunc, operands: Sequence[Any]) -> Origin | None:
    """Return the :class:`Origin` of a partial elementwise result; None unless exactly one operand is partial.

    Combining that operand costs as much as combining the result, and serves other results computed from it. The other
    operands are kept as they are now, because they may be written to.
    """
    partial = [n for n, x in enumerate(operands) if not is_known(x)]
    if len(partial) != 1:
        return None
    (place,) = partial
    kept = [_kept_as_it_is(x) for x in operands]
    return origin_at(operands[place], lambda x: ufunc(*kept[:place], x, *kept[place + 1 :]))


def origin_at(source: ShardedArray, compute: Callable[[ShardedArray], ShardedArray]) -> Origin | None:
    """Return an :class:`Origin` at a partial array; None if the first partial array is too many operations away."""
    depth = 1 if source._origin is None else source._origin.depth + 1
    return None if depth > _MOST_STEPS else Origin(source, source._buffers, compute, depth)


def _kept_as_it_is(x: Any) -> Any:
    if isinstance(x, ShardedArray):
        x = settled(x)
        if x._is_number():
            return x  # read-only, so no copy is needed
        return x._derive(lambda buffer: buffer, x._layout)
    return x.copy() if isinstance(x, np.ndarray) else x
