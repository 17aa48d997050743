"""Reference for tiled operations: one window at a time, in whole numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ringlet.sharding.halo.windows import Window
from ringlet.sharding.layout.layout import Layout
from ringlet.sharding.memory_modes import mode
from tests.sharding.sweep import MESHES, assemble, placements, poisoned, tiled


def spread(x: np.ndarray, windows: Sequence[Window], padding: int = 0) -> np.ndarray:
    """Return an input spaced by the base dilation, and padded or cropped."""
    for axis, window in enumerate(windows):
        x = np.moveaxis(x, axis, 0)
        apart = np.full((max(0, (len(x) - 1) * window.base + 1) if len(x) else 0, *x.shape[1:]), padding, x.dtype)
        apart[:: window.base] = x
        before = np.full((max(0, window.low), *x.shape[1:]), padding, x.dtype)
        after = np.full((max(0, window.high), *x.shape[1:]), padding, x.dtype)
        cropped = apart[max(0, -window.low) : len(apart) - max(0, -window.high)]
        x = np.moveaxis(np.concatenate([before, cropped, after]), 0, axis)
    return x


def seen(x: np.ndarray, windows: Sequence[Window], padding: int = 0) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """Yield each output index with its window of the input, over the first dimensions, one per window."""
    places = spread(x, windows, padding)
    counts = [window.count(length) for window, length in zip(windows, x.shape, strict=False)]
    for output in itertools.product(*map(range, counts)):
        taps = [
            o * window.stride + np.arange(window.size) * window.dilation
            for o, window in zip(output, windows, strict=True)
        ]
        yield output, places[np.ix_(*taps)] if taps else places


def convolved(x: np.ndarray, kernel: np.ndarray, windows: Sequence[Window]) -> np.ndarray:
    """The convolution of ``x[batch, *spatial, c]`` with ``kernel[*spatial, c, o]``."""
    counts = [window.count(length) for window, length in zip(windows, x.shape[1:], strict=False)]
    out = np.zeros((len(x), *counts, kernel.shape[-1]), np.result_type(x, kernel))
    for batch in range(len(x)):
        for output, values in seen(x[batch], windows):
            out[(batch, *output)] = np.tensordot(values, kernel, kernel.ndim - 1)
    return out


def everywhere(ndims: Sequence[int], generator: np.random.Generator) -> Iterator[tuple[str, tuple[Layout, ...]]]:
    """Yield a placement for each mesh and memory mode, for arrays with the given numbers of dimensions."""
    for mesh, memory in itertools.product(MESHES, ("shared", "copy")):
        each = [placements(mesh, ndim) for ndim in ndims]
        yield memory, tuple(layouts[generator.integers(len(layouts))] for layouts in each)


def run_tiled(function, arrays: Sequence[np.ndarray], layouts: Sequence[Layout], memory) -> list[np.ndarray]:
    """Return the results of a function on sharded arrays, in memory filled with poison until data is received."""
    with mode(memory), poisoned():
        result = function(*(tiled(array, layout) for array, layout in zip(arrays, layouts, strict=True)))
        return [assemble(each) for each in (result if isinstance(result, tuple) else (result,))]
