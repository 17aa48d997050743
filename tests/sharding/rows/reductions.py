"""Reductions, for the sweep of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.sharding.sweep import EVERY, FLOATS, NUMBERS, REALS, Row

SHAPE = (7, 5)

# Exact whatever the order: data movement, extremes, integers.
EXTREMES = (*REALS, "float16", "bool")
INTEGERS = ("int32", "uint8", "bool", "int64")


def along(
    name: str, function: Callable[..., Any], dtypes: tuple[str, ...], *, is_exact: bool = False, **kwargs: Any
) -> Iterator[Row]:
    """Yield a row for each axis, and for both."""
    for axis, length in ((None, 35), (0, 7), (1, 5)):
        yield Row(
            f"{name} along {axis}",
            lambda x, axis=axis: function(x, axis=axis, **kwargs),
            (SHAPE,),
            dtypes,
            length=0 if is_exact else length,
        )


def softmax(x: Any) -> Any:
    powers = np.exp(x - np.max(x, axis=1, keepdims=True))
    return powers / np.sum(powers, axis=1, keepdims=True)


ROWS = [
    *along("sum", np.sum, EVERY),
    *along("prod", np.prod, EVERY),
    *along("max", np.max, EVERY, is_exact=True),
    *along("min", np.min, EVERY, is_exact=True),
    *along("any", np.any, EVERY, is_exact=True),
    *along("all", np.all, EVERY, is_exact=True),
    *along("ptp", np.ptp, REALS, is_exact=True),
    *along("mean", np.mean, EVERY),
    *along("var", np.var, EVERY),
    *along("std", np.std, NUMBERS, ddof=1),
    *along("argmax", np.argmax, EVERY, is_exact=True),
    *along("argmin", np.argmin, EVERY, is_exact=True),
    *along("nanargmax", np.nanargmax, EVERY, is_exact=True),
    *along("nanargmin", np.nanargmin, REALS, is_exact=True, keepdims=True),
    *along("nansum", np.nansum, NUMBERS),
    *along("nanprod", np.nanprod, NUMBERS, keepdims=True),
    *along("nanmax", np.nanmax, EXTREMES, is_exact=True),
    *along("nanmin", np.nanmin, EXTREMES, is_exact=True),
    *along("nanmean", np.nanmean, NUMBERS),
    *along("nanvar", np.nanvar, NUMBERS, keepdims=True),
    *along("nanstd", np.nanstd, FLOATS),
    *along("count_nonzero", np.count_nonzero, EVERY, is_exact=True, keepdims=True),
    *along("average", np.average, NUMBERS),
    *along("cumsum", np.cumsum, NUMBERS),
    *along("nancumprod", np.nancumprod, FLOATS),
    *along("fmax.reduce", np.fmax.reduce, NUMBERS, is_exact=True),
    *along("hypot.reduce", np.hypot.reduce, FLOATS),
    *along("logaddexp.reduce", np.logaddexp.reduce, FLOATS),
    *along("gcd.reduce", np.gcd.reduce, ("int32", "uint8", "float32"), is_exact=True),
    *along("bitwise_xor.reduce", np.bitwise_xor.reduce, INTEGERS, is_exact=True),
    *along("bitwise_and.reduce", np.bitwise_and.reduce, INTEGERS, is_exact=True),
    *along("logical_xor.reduce", np.logical_xor.reduce, EVERY, is_exact=True),
    *along("add.reduce of float64", np.add.reduce, NUMBERS, dtype=np.float64),
    *along("max from 3", np.max, ("int32", "float32", "int64"), is_exact=True, initial=3, keepdims=True),
    *along("sum from 3", np.sum, NUMBERS, initial=3),
    *along("prod from 2", np.prod, ("int32", "float64"), initial=2),
    *(
        Row(
            f"norm {order} along {axis}",
            lambda x, order=order, axis=axis: np.linalg.norm(x, order, axis, keepdims=axis == 1),
            (SHAPE,),
            NUMBERS[:4],
            length=35,
        )
        for order, axis in (
            *((order, axis) for order in (None, 1, np.inf, -np.inf) for axis in (None, 0, 1)),
            *((order, 0) for order in (0, 2, 3, 0.5)),
            ("fro", (1, 0)),
            (-1, (1, 0)),
            (np.inf, (1, 0)),
        )
    ),
    Row("subtract.reduce", lambda x: np.subtract.reduce(x, axis=1), (SHAPE,), length=5),
    Row("maximum.accumulate", np.maximum.accumulate, (SHAPE,)),
    Row("add.reduceat", lambda x: np.add.reduceat(x, [0, 2, 2, 5], axis=0), (SHAPE,), length=7),
    Row("softmax", softmax, (SHAPE,), FLOATS, length=35),
    Row("sum where", lambda x, mask: np.sum(x, axis=0, where=mask > 0), (SHAPE, SHAPE), NUMBERS[:4], length=7),
    Row("sum where a row", lambda x, mask: np.sum(x, where=mask > 0), (SHAPE, (5,)), REALS, length=35),
    Row(
        "max where",
        lambda x, mask: np.max(x, axis=1, where=mask > 0, initial=-1),
        (SHAPE, (7, 1)),
        ("int32", "float32"),
    ),
    Row("mean where", lambda x, mask: np.mean(x, axis=0, where=mask > 0), (SHAPE, SHAPE), FLOATS, length=7),
    Row("var where", lambda x, mask: np.var(x, axis=0, where=mask > 0), (SHAPE, SHAPE), FLOATS, length=7),
    Row("weighted average", lambda x, w: np.average(x, 0, w * w, returned=True), (SHAPE, SHAPE), FLOATS, length=7),
    Row("average by columns", lambda x, w: np.average(x, 1, w * w), (SHAPE, (5,)), FLOATS, length=7),
    *(
        Row(
            f"{function.__name__} of NaN along {axis}",
            lambda x, function=function, axis=axis: function(x, axis=axis),
            (SHAPE,),
            FLOATS,
            length,
            has_nan=True,
        )
        for axis in (0, None)
        for function, length in (
            *((function, 0) for function in (np.max, np.argmax, np.argmin, np.nanmax, np.nanargmax, np.nanargmin)),
            *((function, 35) for function in (np.nansum, np.nanprod, np.nanmean, np.nanvar, np.nanstd)),
        )
    ),
]
ROWS += [
    row.on(shape)
    for row in ROWS
    for shape in ((2, 3, 4), (6,), (0, 3))
    if row.name.removesuffix(" along None") in ("sum", "max", "argmax", "var", "mean", "hypot.reduce")
]
