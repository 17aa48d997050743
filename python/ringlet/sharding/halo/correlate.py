"""Correlation with a kernel in any number of dimensions, and NumPy's functions ``correlate`` and ``convolve``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.execution.array_function_table import implements
from ringlet.sharding.halo.conv_kernel import convolve, kernel_gradient
from ringlet.sharding.halo.halo_apply import apply_with_halo, as_operand, check_cotangent
from ringlet.sharding.halo.windows import Needs, Window, Windows, counted, needs_of, relative_windows
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import Array, Box, Shape

_MODES = ("valid", "same", "full")


def correlate(x: Any, kernel: Any, mode: str = "valid") -> Any:
    """Correlate an array of any number of dimensions with a kernel.

    In mode ``"valid"``, element k of the result is the sum over all i of ``x[k + i] * conj(kernel[i])``; the other
    modes have more elements at the ends, where `x` is padded with zeros.

    Parameters
    ----------
    x : array-like
    kernel : array-like
        Must have as many dimensions as `x`. Gathered if divided.
    mode : {"valid", "same", "full"}
        Positions of the kernel: where the whole kernel lies on `x`, where its centre lies on `x`, or where any part of
        it overlaps `x`.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Divided as `x` is.

    Raises
    ------
    ValueError
        If the numbers of dimensions differ, the kernel is empty, or `mode` is unknown.

    References
    ----------
    numpy, ``numpy.correlate``; scipy, ``scipy.signal.correlate``: the same results, unless the kernel is larger
    than `x`; ``"valid"`` then returns no elements here.

    Examples
    --------
    >>> from ringlet.sharding import Sharding, correlate, shard
    >>> x = shard(np.array([1, 2, 4, 8, 16, 32]), Sharding.tiled((2,)))
    >>> np.asarray(correlate(x, np.array([-1, 0, 1]), "same"))
    array([  2,   3,   6,  12,  24, -16])
    """
    x, kernel = as_operand(x), as_operand(kernel)
    windows = _windows(x, kernel, mode)

    def work(tile: Array, other: Array, out: Array, local: Windows) -> None:
        convolve(_single(tile), _single(np.conj(other))[..., np.newaxis], _single(out), local)

    return _run("correlate", (x, kernel), windows, counted(x.shape, windows), work)


def correlate_vjp(x: Any, kernel: Any, cotangent: Any, mode: str = "valid") -> tuple[Any, Any]:
    """Return the gradients of :func:`correlate`, given the gradient of its result.

    Parameters
    ----------
    x, kernel, mode
        Arguments of :func:`correlate`.
    cotangent : array-like
        The gradient of the result, with the result's shape.

    Returns
    -------
    x_gradient, kernel_gradient : ShardedArray, or ndarray if the arrays that it is computed from are not sharded
        The kernel's gradient may be partial if `x` is divided.

    Raises
    ------
    ValueError
        If the shape of `cotangent` differs from the result's.

    Examples
    --------
    >>> from ringlet.sharding import correlate_vjp
    >>> correlate_vjp(np.array([1.0, 2.0, 4.0]), np.array([8.0, 16.0]), np.array([1.0, 3.0]))
    (array([ 8., 40., 48.]), array([ 7., 14.]))
    """
    x, kernel, cotangent = as_operand(x), as_operand(kernel), as_operand(cotangent)
    windows = _windows(x, kernel, mode)
    check_cotangent(cotangent, counted(x.shape, windows))
    turned = tuple(window.transposed(length) for window, length in zip(windows, x.shape, strict=True))

    def to_input(tile: Array, other: Array, out: Array, local: Windows) -> None:
        convolve(_single(tile), _single(np.conj(np.flip(other)))[..., np.newaxis], _single(out), local)

    def to_kernel(tile: Array, other: Array, out: Array, local: Windows) -> None:
        kernel_gradient(_single(tile), _single(other), _single(out)[..., np.newaxis], local)
        np.conj(out, out=out)

    return (
        _run("correlate_vjp", (cotangent, kernel), turned, x.shape, to_input),
        _run("correlate_vjp", (x, cotangent), windows, kernel.shape, to_kernel, outputs=1),
    )


@implements(np.correlate)
def numpy_correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """Run ``np.correlate`` tile by tile, unless `v` is longer than `a`."""
    a, v = as_operand(a), as_operand(v)
    return NotImplemented if a.shape < v.shape else _run_numpy(np.correlate, a, v, mode)


@implements(np.convolve)
def numpy_convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """Run ``np.convolve`` tile by tile."""
    a, v = as_operand(a), as_operand(v)
    if 0 in (a.size, v.size):
        np.convolve(np.empty(min(a.size, 1)), np.empty(min(v.size, 1)))  # raises an error that names the empty array
    return _run_numpy(np.convolve, *((v, a) if a.shape < v.shape else (a, v)), mode)


def _run_numpy(function: Callable[..., Array], a: Any, v: Any, mode: str) -> Any:
    """Run a NumPy function on each tile's inputs; results beyond the tile's outputs are discarded."""
    if a.ndim != 1 or v.ndim != 1 or not v.size or mode not in _MODES:
        function(*(np.empty(tuple(min(size, 1) for size in x.shape)) for x in (a, v)), mode)  # may raise an error
        return NotImplemented
    windows = _windows(a, v, mode)
    dtype = function(np.ones(1, a.dtype), np.ones(1, v.dtype)).dtype

    def work(tile: Array, other: Array, out: Array, local: Windows) -> None:
        first = other.size - 1 - local[0].low
        out[...] = function(tile, other, "full")[first : first + out.size]

    return _run(function.__name__, (a, v), windows, counted(a.shape, windows), work, dtype=dtype)


def _windows(x: Any, kernel: Any, mode: str) -> Windows:
    if x.ndim != kernel.ndim or not kernel.size:
        raise ValueError(
            f"cannot correlate shape {x.shape} with a kernel of shape {kernel.shape}: expected equal numbers of "
            "dimensions and a kernel that is not empty"
        )
    if mode not in _MODES:
        raise ValueError(f"{mode!r} is not a mode: pass one of {', '.join(map(repr, _MODES))}")
    return tuple(Window(size, 1, *_padding(size, mode)) for size in kernel.shape)


def _padding(size: int, mode: str) -> tuple[int, int]:
    """Return the numbers of zeros before and after; an even kernel's centre is the later of its two middle elements."""
    low = {"valid": 0, "same": size // 2, "full": size - 1}[mode]
    return low, low if mode == "full" else max(0, size - 1 - low) if mode == "same" else 0


def _run(
    name: str,
    operands: tuple[Any, Any],
    windows: Windows,
    shape: Shape,
    work: Callable[[Array, Array, Array, Windows], None],
    *,
    outputs: int | None = None,
    dtype: Any = None,
) -> Any:
    """Apply windows to the first operand; `outputs` is 1 if the second operand has an element for each window."""
    dimensions = tuple(range(len(shape)))
    none = (None,) * len(shape)

    def needs(number: int, counts: tuple[int, ...]) -> Needs:
        return none if number else needs_of(windows, dimensions, operands[0].shape, counts)

    def kernel(buffers: Sequence[Array], boxes: tuple[Box, ...], out: Array, out_box: Box) -> None:
        tile, other = (buffer[box] for buffer, box in zip(buffers, boxes, strict=True))
        seen_by = out_box if outputs is None else boxes[outputs]
        if not tile.size or not other.size:
            out[...] = 0
        elif out.size:
            work(tile, other, out, relative_windows(windows, boxes[0], dimensions, seen_by, dimensions))

    linear = (frozenset({0}), frozenset({1}))
    if outputs is None:
        factor_map = FactorMap((dimensions, none), dimensions, linear=linear)
    else:
        factor_map = FactorMap((dimensions, dimensions), none, dict.fromkeys(dimensions, Op.SUM), linear=linear)
    dtype = np.result_type(*(x.dtype for x in operands)) if dtype is None else dtype
    effort = float(max(1, operands[1].size if outputs is None else 1))
    return apply_with_halo(name, factor_map, kernel, operands, dtype=dtype, shape=shape, needs=needs, effort=effort)


def _single(array: Array) -> Array:
    return array[..., np.newaxis, np.newaxis]
