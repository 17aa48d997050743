"""Convolution of sharded and of plain arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ringlet.sharding.halo.conv_kernel import convolve, kernel_gradient
from ringlet.sharding.halo.convolution import Convolution, Options, Product, convolution_of
from ringlet.sharding.halo.halo_apply import SeeingKernel, apply_with_halo, as_operand, check_cotangent
from ringlet.sharding.halo.windows import POINTWISE, Needs, Numbers, Padding, Windows, needs_of, relative_windows
from ringlet.sharding.layout.layout import Array, Box
from ringlet.sharding.layout.partition import whole_number

Counts = tuple[int, ...]


def conv_general(
    x: Any,
    kernel: Any,
    window_strides: Numbers,
    padding: Padding,
    *,
    lhs_dilation: Numbers | None = None,
    rhs_dilation: Numbers | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Any:
    """Convolve along any number of spatial dimensions, as XLA does: kernels are not flipped.

    Each device computes its tile of the result. If spatial dimensions are divided, each device also reads the
    neighbouring elements in its windows, across any number of tiles; if devices share memory, nothing is copied.

    Parameters
    ----------
    x : array-like
        Batch, features and spatial dimensions, in the order of `dimension_numbers`.
    kernel : array-like
        Input features (of one group), output features and spatial dimensions. Gathered if the spatial dimensions are
        divided.
    window_strides : int or sequence of int
        Step of the windows along each spatial dimension.
    padding : str or sequence of (int, int)
        ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or the number of zeros before and after each spatial dimension;
        negative numbers crop.
    lhs_dilation, rhs_dilation : int or sequence of int, optional
        Distance between elements of the input, and of the kernel, with zeros in between.
    dimension_numbers : None, str, three of str, or ConvDimensionNumbers
        Role of each dimension: ``("NHWC", "HWIO", "NHWC")``, or ``"b01f_01io->b01f"``. The default is batch, features,
        spatial dimensions, and for the kernel output features, input features, spatial dimensions.
    feature_group_count : int
        Number of groups into which the features of `x` are divided; each is convolved separately with an equal share of
        the output features.
    batch_group_count : int
        Number of groups into which the batch is divided, each for an equal share of the output features.

    Returns
    -------
    ShardedArray, or ndarray if neither is sharded
        Data type by NumPy's promotion rules. Divided along batch, output features and spatial dimensions as `x` and
        `kernel` are; may be partial if input features are divided. Overflow does not warn, as with ``np.convolve``.

    Raises
    ------
    ValueError
        If shapes, numbers and padding are inconsistent.

    References
    ----------
    jax-ml/jax, ``jax.lax.conv_general_dilated``: parameters of the same names have the same meaning.

    Examples
    --------
    >>> import ringlet
    >>> from ringlet.sharding import Sharding, conv_general, shard
    >>> image = shard(np.arange(16.0).reshape(1, 4, 4, 1), Sharding.tiled((1, 2, 1, 1)))
    >>> y = conv_general(image, np.ones((3, 3, 1, 1)), 1, "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    >>> print(y.sharding)
    {devices=[1,2,1,1]<=[2]}
    >>> np.asarray(y)[0, :, :, 0]
    array([[10., 18., 24., 18.],
           [27., 45., 54., 39.],
           [51., 81., 90., 63.],
           [42., 66., 72., 50.]])
    """
    x, kernel = as_operand(x), as_operand(kernel)
    given = (window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers)
    spec = _convolution(x, kernel, (*given, feature_group_count, batch_group_count))

    def work(tiles: Sequence[Array], out: Array, windows: Windows, counts: Counts) -> None:
        convolve(spec.inputs(tiles[0]), spec.kernels(tiles[1]), spec.outputs(out), windows, counts)

    return _run("conv_general", spec, spec.forward, (x, kernel), work)


def conv_general_vjp(
    x: Any,
    kernel: Any,
    cotangent: Any,
    window_strides: Numbers,
    padding: Padding,
    *,
    lhs_dilation: Numbers | None = None,
    rhs_dilation: Numbers | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> tuple[Any, Any]:
    """Return the gradients of :func:`conv_general`, given the gradient of its result.

    Parameters
    ----------
    x, kernel : array-like
        The operands of the convolution.
    cotangent : array-like
        The gradient of the result, with the result's shape.
    window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count, batch_group_count
        As for :func:`conv_general`.

    Returns
    -------
    x_gradient, kernel_gradient : ShardedArray, or ndarray if the arrays that it is computed from are not sharded
        If batch or spatial dimensions are divided, the kernel's gradient may be partial; it is then summed over devices
        when used.

    Raises
    ------
    ValueError
        If the shape of `cotangent` differs from the result's.

    Examples
    --------
    >>> from ringlet.sharding import conv_general_vjp
    >>> x, kernel = np.arange(5.0).reshape(1, 1, 5), np.array([1.0, 2.0, 4.0]).reshape(1, 1, 3)
    >>> dx, dkernel = conv_general_vjp(x, kernel, np.ones((1, 1, 5)), 1, "SAME")
    >>> dx.ravel(), dkernel.ravel()
    (array([3., 7., 7., 7., 6.]), array([ 6., 10., 10.]))
    """
    x, kernel, cotangent = as_operand(x), as_operand(kernel), as_operand(cotangent)
    given = (window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers)
    spec = _convolution(x, kernel, (*given, feature_group_count, batch_group_count))
    check_cotangent(cotangent, spec.out_shape)

    def to_input(tiles: Sequence[Array], out: Array, windows: Windows, counts: Counts) -> None:
        turned = np.flip(spec.kernels(tiles[1]), tuple(range(len(windows)))).swapaxes(-1, -2)
        convolve(spec.outputs(tiles[0]), turned, spec.inputs(out), windows, counts)

    def to_kernel(tiles: Sequence[Array], out: Array, windows: Windows, _: Counts) -> None:
        kernel_gradient(spec.inputs(tiles[0]), spec.outputs(tiles[1]), spec.kernels(out), windows)

    return (
        _run("conv_general_vjp", spec, spec.to_input, (cotangent, kernel), to_input),
        _run("conv_general_vjp", spec, spec.to_kernel, (x, cotangent), to_kernel),
    )


def _run(
    name: str,
    spec: Convolution,
    product: Product,
    operands: tuple[Any, Any],
    work: Callable[[Sequence[Array], Array, Windows, Counts], None],
) -> Any:
    """Compute one of the products of a convolution; `work` is called for tiles with elements."""
    dtype = np.result_type(*(x.dtype for x in operands))

    def needs(number: int, counts: tuple[int, ...]) -> Needs:
        if number:
            return (None,) * len(counts)
        return needs_of(product.windows, product.seen, operands[0].shape, counts)

    def kernel(buffers: Sequence[Array], boxes: tuple[Box, ...], out: Array, out_box: Box, counts: Counts = ()) -> None:
        tiles = [buffer[box] for buffer, box in zip(buffers, boxes, strict=True)]
        if not tiles[0].size or not tiles[1].size:
            out[...] = 0
        elif out.size:
            outputs = boxes[1] if product is spec.to_kernel else out_box
            windows = relative_windows(product.windows, boxes[0], product.seen, outputs, product.outputs)
            work(tiles, out, (POINTWISE, *windows), counts)

    def at_once(counts: tuple[int, ...]) -> SeeingKernel | None:
        tiles = spec.tiles_of(product, counts)
        return None if tiles is None else partial(kernel, counts=tiles)

    factor_map = spec.factors(product.factor_map, operands)
    return apply_with_halo(
        name,
        factor_map,
        kernel,
        operands,
        dtype=dtype,
        shape=product.shape,
        needs=needs,
        effort=spec.effort,
        at_once=at_once,
    )


def _convolution(x: Any, kernel: Any, options: tuple[Any, ...]) -> Convolution:
    return convolution_of(x.shape, kernel.shape, Options._make(map(_frozen, options)))


def _frozen(option: Any) -> Any:
    if isinstance(option, np.ndarray):
        option = option.tolist()
    if isinstance(option, (list, tuple)):
        return tuple(map(_frozen, option))
    is_other_number = isinstance(option, (bool, float, complex, np.generic)) and whole_number(option) is None
    return _TextKey(option) if is_other_number or not isinstance(option, Hashable) else option


class _TextKey(str):
    """Text of an option as a cache key: of an unhashable option, or of a number that is not an integer.

    The numbers 2.0 and 2 would be the same key. Errors show the text without quotes.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
