"""Calls of elementwise ufuncs with sharded arrays, also with out=, where=, dtype= and several results."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ringlet.collectives.argument_parsing import shortened
from ringlet.sharding.execution.linearity import elementwise_factors, is_known, origin_of
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import allocate, apply, compute, prepare, tile_of, write_out
from ringlet.sharding.execution.ufunc_table import implements_ufunc, is_cached
from ringlet.sharding.explain_operations import recorded_as_one
from ringlet.sharding.layout.device_group import common_group
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors
from ringlet.sharding.layout.layout import Array, Shape
from ringlet.sharding.reductions.reduction_execution import mask_of
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.values.operator_proxy import plain

# NumPy 2.4 computes wrong values if these ufuncs write to a strided `out` (np.negative: if the input is also strided)
# or to a Boolean `out` whose memory order differs from the input's. They allocate their results instead.
# The ufunc of np.strings.slice (added in NumPy 2.3) does not accept `out`.
_UMATH = importlib.import_module("numpy._core.umath" if hasattr(np, "strings") else "numpy")
NEEDS_OWN_MEMORY = frozenset(
    (np.isfinite, np.isinf, np.isnan, np.negative, np.signbit, getattr(_UMATH, "_slice", np.isnan))
)
# Options without effect: the memory order and the class of results are fixed.
_WITHOUT_EFFECT = ("order", "subok")


def broadcast_shape(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """Return the shape that operands broadcast to, or raise NumPy's error."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        # Raises an error with the original shapes, as ufuncs do.
        np.nditer([np.broadcast_to(0, shape) for shape in shapes], ["zerosize_ok"])
        raise


def result_dtypes(
    ufunc: Any, operands: Sequence[Any], options: dict[str, Any], outs: Sequence[Any] = ()
) -> list[np.dtype[Any]]:
    """Return the dtypes of a ufunc's results, by calling it with arrays without elements, or raise NumPy's error.

    `operands` are dtypes, or types of Python numbers, whose values have no effect; `outs` has the dtype of each `out`,
    None for results without `out`.
    """
    if not options and not outs and isinstance(ufunc, np.ufunc) and is_cached(ufunc):
        return [*_dtypes(ufunc, tuple(operands))]
    return _found_dtypes(ufunc, operands, options, outs)


def _found_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], options: dict[str, Any], outs: Sequence[Any]
) -> list[np.dtype[Any]]:
    empties = [np.empty(0, it) if isinstance(it, np.dtype) else it(1) for it in operands]
    if outs:
        options = {**options, "out": tuple(None if it is None else np.empty(0, it) for it in outs)}
    with np.errstate(all="ignore"):  # if all arguments are numbers, the call computes values and may warn
        results = ufunc(*empties, **options)
    return [result.dtype for result in (results if ufunc.nout > 1 else (results,))]


@lru_cache(maxsize=1024)
def _dtypes(ufunc: np.ufunc, operands: tuple[Any, ...]) -> tuple[np.dtype[Any], ...]:
    return (*_found_dtypes(ufunc, operands, {}, ()),)


def effort_of(ufunc: np.ufunc) -> int:
    """Return the approximate time of a ufunc relative to a sum; ufuncs without integer loops take longer."""
    return 1 if any(types.startswith("l") for types in ufunc.types) and ufunc is not np.power else 4


@implements_ufunc(None)
def elementwise(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call an elementwise ufunc with any options."""
    if ufunc.signature is not None:
        return NotImplemented
    outs = kwargs.get("out", (None,) * ufunc.nout)
    options = {key: value for key, value in kwargs.items() if key not in ("out", "where", *_WITHOUT_EFFECT)}
    operands = [operand(value) for value in inputs]
    mask = True if (mask := mask_of(kwargs.get("where", True))) is None else mask
    common_group(ufunc.__name__, [x for x in (*operands, mask, *outs) if isinstance(x, ShardedArray)])
    dtypes = _checked_dtypes(ufunc, operands, mask, outs, options)
    arguments = operands if mask is True else [*operands, mask]
    shape = _checked_shape([_shape(x) for x in arguments], outs)
    # `out` is an operand if elements excluded by the mask keep its values, or if only `out` determines the layout.
    is_read = mask is not True or not any(isinstance(x, ShardedArray) for x in operands)
    kept = [k for k, out in enumerate(outs) if out is not None and is_read]
    arguments += [outs[k] for k in kept]
    labels, result = broadcast_factors([*map(_shape, arguments), shape])
    # The result may be partial only without options and mask, and only if `out` is omitted or partial.
    if options or len(arguments) > ufunc.nin or (outs[0] is not None and is_known(outs[0])):
        factor_map = FactorMap(labels[:-1], result)
    else:
        factor_map = elementwise_factors(ufunc, operands, labels[:-1], result, dtypes[0])
    fill = _kernel(ufunc, mask is not True, kept, options)
    if ufunc.nout > 1:
        return _multiple_results(
            ufunc, factor_map, fill=fill, operands=arguments, dtypes=dtypes, shape=shape, outs=outs
        )
    made = apply(
        ufunc.__name__,
        factor_map,
        lambda tiles, place, _: fill(tiles, [place]),
        arguments,
        dtypes[0],
        out=outs[0],
        shape=shape,
        effort=effort_of(ufunc),
    )
    if outs[0] is None and made._layout.is_partial:
        made._origin = origin_of(ufunc, operands)
    return made


def _kernel(
    ufunc: np.ufunc, has_mask: bool, kept: Sequence[int], options: dict[str, Any]
) -> Callable[[list[Any], Sequence[Array]], None]:
    """Return the function that fills a tile of each result from tiles of the operands, the mask and the old values."""

    def fill(tiles: list[Any], places: Sequence[Array]) -> None:
        for k, old in zip(kept, tiles[len(tiles) - len(kept) :], strict=True):
            np.copyto(places[k], old)
        mask = tiles[ufunc.nin] if has_mask else True
        if ufunc in NEEDS_OWN_MEMORY:
            np.copyto(places[0], ufunc(*tiles[: ufunc.nin], **options), casting="unsafe", where=mask)
        else:
            ufunc(*tiles[: ufunc.nin], out=tuple(places), where=mask, **options)

    return fill


def operand(value: Any) -> Any:
    """Convert a value to an ndarray; arrays, NumPy scalars and Python's built-in numbers are unchanged."""
    value = plain(value)
    if isinstance(value, (ShardedArray, np.ndarray, np.generic)) or type(value) in (bool, int, float, complex):
        return value
    return np.asarray(value)


def _shape(operand: Any) -> tuple[int, ...]:
    return getattr(operand, "shape", ())


def _checked_dtypes(
    ufunc: np.ufunc, operands: Sequence[Any], mask: Any, outs: Sequence[Any], options: dict[str, Any]
) -> list[np.dtype[Any]]:
    for out in outs:
        if out is not None and not isinstance(out, (ShardedArray, np.ndarray)):
            raise TypeError(
                f"return arrays must be of ArrayType: out={shortened(out)} is neither an ndarray nor a ShardedArray"
            )
    if mask is not True:
        options = {**options, "where": np.empty(0, mask.dtype) if hasattr(mask, "dtype") else mask}
    return result_dtypes(
        ufunc,
        [getattr(x, "dtype", type(x)) for x in operands],
        options,
        [None if out is None else out.dtype for out in outs],
    )


def _checked_shape(shapes: Sequence[Shape], outs: Sequence[Any]) -> tuple[int, ...]:
    given = [out.shape for out in outs if out is not None]
    shape = broadcast_shape([*shapes, *given])
    for other in given:
        if other != shape:
            raise ValueError(
                f"non-broadcastable output operand with shape {other} doesn't match the broadcast shape {shape}"
            )
    return shape


def _multiple_results(
    ufunc: np.ufunc,
    factor_map: FactorMap,
    *,
    fill: Callable[[list[Any], Sequence[Array]], None],
    operands: Sequence[Any],
    dtypes: Sequence[np.dtype[Any]],
    shape: Shape,
    outs: Sequence[Any],
) -> tuple[Any, ...]:
    def work() -> tuple[Any, ...]:
        prepared = prepare(ufunc.__name__, factor_map, operands, dtypes[0], shape=shape)
        results = [allocate(prepared._replace(dtype=dtype)) for dtype in dtypes]

        def compute_tile(_: Array, where: TileBoxes) -> None:
            tiles = [tile_of(x, box, where.device) for x, box in zip(prepared.operands, where.operands, strict=True)]
            fill(tiles, [tile_of(result, where.result, where.device) for result in results])

        compute(results[0], compute_tile, prepared, effort_of(ufunc))
        return tuple(r if out is None else write_out(out, r) for out, r in zip(outs, results, strict=True))

    return recorded_as_one(ufunc.__name__, operands, work)
