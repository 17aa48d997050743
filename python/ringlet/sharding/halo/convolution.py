"""Convolution specification: checked shapes, windows and groups, and tiles in canonical dimension order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ringlet.collectives import Op
from ringlet.sharding.halo.dimension_numbers import ConvDimensionNumbers, dimension_numbers_of
from ringlet.sharding.halo.windows import Windows, all_have_inputs, windows_of
from ringlet.sharding.layout.factors import FactorMap, Labels
from ringlet.sharding.layout.layout import Array, Shape
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.sharded_array import ShardedArray


class Options(NamedTuple):
    """Hashable options of :func:`ringlet.sharding.conv_general`."""

    window_strides: Any
    padding: Any
    lhs_dilation: Any
    rhs_dilation: Any
    dimension_numbers: Any
    feature_group_count: int
    batch_group_count: int


class Product(NamedTuple):
    """One of the three products of a convolution: its result, or the gradient of its input or kernel.

    `windows` apply to the dimensions `seen` of the first operand. `outputs` has, for each window, the dimension of the
    result or, for the kernel's gradient, of the second operand.
    """

    factor_map: FactorMap
    shape: Shape
    windows: Windows
    seen: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Convolution:
    """A convolution of arrays of given shapes.

    Its products compute the result from input and kernel, the input gradient from result gradient and kernel, and the
    kernel gradient from input and result gradient.
    """

    numbers: ConvDimensionNumbers
    feature_groups: int
    batch_groups: int
    lhs_shape: Shape
    rhs_shape: Shape
    out_shape: Shape
    forward: Product
    to_input: Product
    to_kernel: Product

    @property
    def groups(self) -> int:
        """Number of groups of output features."""
        return self.feature_groups * self.batch_groups

    @property
    def effort(self) -> float:
        """Approximate number of passes over the bytes."""
        return max(1.0, math.prod(self.rhs_shape) / max(1, self.rhs_shape[self.numbers.rhs_spec[0]]) / 4)

    def inputs(self, tile: Array) -> Array:
        """View a non-empty tile of the input as ``[batch, *spatial, group, feature]``."""
        batch, features, *spatial = self.numbers.lhs_spec
        view = tile.transpose(batch, *spatial, features)
        if self.batch_groups > 1:
            size = self.lhs_shape[batch] // self.batch_groups
            groups: Array = np.moveaxis(view.reshape(-1, size, *view.shape[1:]), 0, -2)
            return groups
        return self._in_groups(view, self.lhs_shape[features])

    def outputs(self, tile: Array) -> Array:
        """View a non-empty tile of the result as ``[batch, *spatial, group, feature]``."""
        batch, features, *spatial = self.numbers.out_spec
        return self._in_groups(tile.transpose(batch, *spatial, features), self.out_shape[features])

    def kernels(self, tile: Array) -> Array:
        """View a non-empty tile of the kernel as ``[1, *spatial, group, input, output]``."""
        outputs, inputs, *spatial = self.numbers.rhs_spec
        view = tile.transpose(*spatial, inputs, outputs)[np.newaxis]
        return np.swapaxes(self._in_groups(view, self.rhs_shape[outputs]), -2, -3)

    def tiles_of(self, product: Product, counts: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the numbers of tiles along batch and spatial dimensions, given `counts` for a product's result.

        None for the kernel gradient, if features are divided, or if a tile has no inputs and is therefore zero.
        """
        if product is self.to_kernel:
            return None
        is_forward = product is self.forward
        shape, numbers = (
            (self.lhs_shape, self.numbers.out_spec) if is_forward else (self.out_shape, self.numbers.lhs_spec)
        )
        batch, features, *spatial = numbers
        tiles = tuple([counts[dimension] for dimension in spatial])
        if counts[features] > 1 or not all_have_inputs(product.windows, tuple([shape[d] for d in product.seen]), tiles):
            return None
        # With several batch groups, tiles along the input's batch dimension divide the groups, not their batches.
        return (counts[batch] if self.batch_groups == 1 else 1, *tiles)

    def factors(self, factor_map: FactorMap, operands: Sequence[Any]) -> FactorMap:
        """Return the factor map, in which groups are undivided if the tiles of an operand would cut through a group."""
        counts = [
            cut.count
            for labels, x in zip(factor_map.operands, operands, strict=True)
            if isinstance(x, ShardedArray)
            for label, cut in zip(labels, x._layout.cuts, strict=True)
            if label == "g"
        ]
        if any(self.groups % count for count in counts):
            return replace(factor_map, whole=frozenset({"g"}))
        return factor_map

    def _in_groups(self, view: Array, features: int) -> Array:
        size = features // self.groups if self.groups > 1 else view.shape[-1]
        groups: Array = view.reshape(*view.shape[:-1], -1, size)
        return groups


@lru_cache(maxsize=1024)
def convolution_of(lhs_shape: Shape, rhs_shape: Shape, options: Options) -> Convolution:
    """Return the convolution of input and kernel; raise ValueError for inconsistent arguments."""
    if len(lhs_shape) != len(rhs_shape) or len(lhs_shape) < 2:
        raise ValueError(
            f"cannot convolve shape {lhs_shape} with a kernel of shape {rhs_shape}: both must have the same "
            "number of dimensions, 2 or more: batch, features and spatial dimensions of the input; output features, "
            "input features and spatial dimensions of the kernel"
        )
    numbers = dimension_numbers_of(options.dimension_numbers, len(lhs_shape))
    feature_groups, batch_groups = options.feature_group_count, options.batch_group_count
    _check_groups(lhs_shape, rhs_shape, numbers, feature_groups, batch_groups)
    windows = windows_of(
        [lhs_shape[dimension] for dimension in numbers.lhs_spec[2:]],
        [rhs_shape[dimension] for dimension in numbers.rhs_spec[2:]],
        options.window_strides,
        options.padding,
        base_dilation=options.lhs_dilation,
        window_dilation=options.rhs_dilation,
        names=("window_strides", "lhs_dilation", "rhs_dilation"),
    )
    _check_padding(options)
    lhs_spatial, out_spatial = numbers.lhs_spec[2:], numbers.out_spec[2:]
    counts = [window.count(lhs_shape[dimension]) for window, dimension in zip(windows, lhs_spatial, strict=True)]
    sizes = (lhs_shape[numbers.lhs_spec[0]] // batch_groups, rhs_shape[numbers.rhs_spec[0]], *counts)
    out_shape = tuple(sizes[numbers.out_spec.index(dimension)] for dimension in range(len(sizes)))
    turned = tuple(
        window.transposed(lhs_shape[dimension]) for window, dimension in zip(windows, lhs_spatial, strict=True)
    )
    lhs, rhs, out = _labels(numbers, feature_groups, batch_groups)
    return Convolution(
        numbers,
        feature_groups,
        batch_groups,
        lhs_shape,
        rhs_shape,
        out_shape,
        Product(_factor_map(lhs, rhs, out), out_shape, windows, lhs_spatial, out_spatial),
        Product(_factor_map(out, rhs, lhs), lhs_shape, turned, out_spatial, lhs_spatial),
        Product(_factor_map(lhs, out, rhs), rhs_shape, windows, lhs_spatial, out_spatial),
    )


def _check_groups(
    lhs_shape: Shape, rhs_shape: Shape, numbers: ConvDimensionNumbers, feature_groups: int, batch_groups: int
) -> None:
    batch, features = (lhs_shape[dimension] for dimension in numbers.lhs_spec[:2])
    outputs, inputs = (rhs_shape[dimension] for dimension in numbers.rhs_spec[:2])
    counts = whole_number(feature_groups) or 0, whole_number(batch_groups) or 0
    if min(counts) < 1 or (feature_groups > 1 and batch_groups > 1):
        raise ValueError(
            f"feature_group_count is {feature_groups!r} and batch_group_count {batch_groups!r}: expected integers of 1 "
            "or more, at least one of them 1"
        )
    if features != inputs * feature_groups:
        raise ValueError(
            f"the input has {features} features, and the kernel has {inputs} input features, with feature_group_count="
            f"{feature_groups}: expected {inputs} * {feature_groups} = {inputs * feature_groups} features. Shapes are "
            f"{lhs_shape} and {rhs_shape}, dimension numbers {tuple(numbers)}"
        )
    for what, size, groups in (
        ("output features", outputs, feature_groups * batch_groups),
        ("elements in the batch", batch, batch_groups),
    ):
        if size % groups:
            raise ValueError(f"{size} {what} cannot be divided into {groups} equal groups: pass a multiple of {groups}")


def _check_padding(options: Options) -> None:
    dilation, padding = options.lhs_dilation, options.padding
    if isinstance(padding, str) and padding.upper() != "VALID" and np.max(dilation or 1, initial=1) > 1:
        raise ValueError(
            f"padding {padding!r} is ambiguous with lhs_dilation {dilation}: pass pairs (before, after). For the "
            "gradient of a convolution padded by (before, after), pass (kernel - 1 - before, kernel - 1 - after)"
        )


def _labels(numbers: ConvDimensionNumbers, feature_groups: int, batch_groups: int) -> list[Labels]:
    """Return the factors of input, kernel and result: batch n, features c and o, groups g, spatial 0, 1, ..."""
    spatial = range(len(numbers.lhs_spec) - 2)
    lhs: Labels
    rhs: Labels
    out: Labels
    if feature_groups > 1:
        lhs, rhs, out = ("n", "g"), ("g", None), ("n", "g")
    elif batch_groups > 1:
        lhs, rhs, out = ("g", "c"), ("g", "c"), (None, "g")
    else:
        lhs, rhs, out = ("n", "c"), ("o", "c"), ("n", "o")
    labels = ((*lhs, *spatial), (*rhs, *(None for _ in spatial)), (*out, *spatial))
    return [
        tuple(given[spec.index(dimension)] for dimension in range(len(spec)))
        for given, spec in zip(labels, numbers, strict=True)
    ]


def _factor_map(one: Labels, other: Labels, result: Labels) -> FactorMap:
    lost = dict.fromkeys(label for label in (*one, *other) if label is not None and label not in result)
    linear = (frozenset({0}), frozenset({1}))
    return FactorMap((one, other), result, dict.fromkeys(lost, Op.SUM), linear=linear)
