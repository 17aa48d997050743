"""Operands of ``bench.sharding`` and its peer, and the mesh axes over which each is split.

Requires only NumPy, because environments of peers import it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["AXES", "NUMBERS", "PADDING", "SPECS", "STRIDES", "inputs_of"]

Array = NDArray[Any]
Spec = tuple[str | None, ...]

# Eight logical devices; which of their axes cut each dimension of the operands and of the result.
AXES = {"x": 4, "y": 2}
SPECS: dict[str, tuple[tuple[Spec, ...], Spec]] = {
    "add": ((("x", "y"), ("x", "y")), ("x", "y")),
    "exp": ((("x", "y"),), ("x", "y")),
    "matmul": ((("x", None), (None, "y")), ("x", "y")),
    "sum": ((("x", "y"),), ("y",)),
    "conv": (((None, "x", "y", None), ()), (None, "x", "y", None)),
    "reshard": ((("x", None),), (None, "x")),
}

STRIDES, PADDING, NUMBERS = (1, 1), "SAME", ("NHWC", "HWIO", "NHWC")
_CHANNELS, _KERNEL, _LARGEST_SIDE = 16, 3, 256


def inputs_of(name: str, size_bytes: int) -> list[Array]:
    """Create the operands: float32 arrays of small whole numbers, whose sums are exact in any order.

    Parameters
    ----------
    name : str
        A key of `SPECS`.
    size_bytes : int
        Maximum size of the first operand.

    Examples
    --------
    >>> [array.shape for array in inputs_of("conv", 1 << 14)]
    [(1, 16, 16, 16), (3, 3, 16, 16)]
    """
    count = size_bytes // 4
    if name == "conv":
        side = max(8, min(_LARGEST_SIDE, int((count / _CHANNELS) ** 0.5) // 8 * 8))
        images = max(1, count // (_CHANNELS * side * side))
        return [_filled((images, side, side, _CHANNELS), 5), _filled((_KERNEL, _KERNEL, _CHANNELS, _CHANNELS), 3)]
    side = max(8, int(count**0.5) // 8 * 8)
    return [_filled((side, side), 3 + 2 * i) for i in range(len(SPECS[name][0]))]


def _filled(shape: tuple[int, ...], period: int) -> Array:
    return np.resize(np.arange(period, dtype=np.float32), shape)
