"""Random calls of functions that exchange tiles: operation, shape, dtype, mesh and sharding, against NumPy."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import GatherError
from ringlet.sharding import Mesh, ShardedArray, mode, shard, strict
from tests.sharding.sweep import poisoned

MESHES = [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 2, "y": 2}, {"x": 8}, {"x": 4, "y": 2}]
DTYPES = ("float64", "int32", "bool", "complex128", "uint8", "float32", "int64")
AXES = st.integers(-3, 2)
MAYBE = st.none() | AXES
SIZES = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 9, 16])

# Operations, the arguments to draw besides the array, and the kinds of dtypes that they take.
CALLS: dict[str, tuple[Any, ...]] = {
    "sort": (np.sort, MAYBE),
    "argsort": (lambda x, axis: np.argsort(x, axis, kind="stable"), MAYBE),
    "partition": (lambda x, axis: np.sort(np.partition(x, 0, axis), axis), AXES),
    "lexsort": (lambda x: np.lexsort((x, x)),),
    "cumsum": (np.cumsum, MAYBE),
    "cumprod": (lambda x, axis: np.cumprod(x.astype("int64"), axis), MAYBE, "biu"),
    "maximum": (np.maximum.accumulate, AXES),
    "subtract": (np.subtract.accumulate, AXES, "iu"),
    "cumulative_sum": (lambda x, axis: np.cumulative_sum(x, axis=axis, include_initial=True), AXES),
    "fft": (lambda x, axis, n: np.fft.fft(x, n, axis), AXES, st.none() | st.integers(1, 9)),
    "rfft": (lambda x, axis: np.fft.rfft(x, axis=axis), AXES, "biuf"),
    "irfft": (lambda x, axis: np.fft.irfft(x, axis=axis), AXES),
    "ifftn": (np.fft.ifftn,),
    "fftshift": (np.fft.fftshift,),
    "median": (lambda x, axis, keepdims: np.median(x, axis, keepdims=keepdims), MAYBE, st.booleans(), "biuf"),
    "nanmedian": (np.nanmedian, MAYBE, "iuf"),
    "quantile": (lambda x, axis, q: np.quantile(x, q, axis), MAYBE, st.sampled_from([0, 0.3, [0.1, 1]]), "iuf"),
    "unique": (lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True),),
    "histogram": (np.histogram, st.sampled_from([1, 4, [0, 1, 3]]), "biu"),
    "bincount": (lambda x: np.bincount(x.ravel()), "u"),
    "nonzero": (np.nonzero,),
    "argwhere": (np.argwhere,),
    "mask": (lambda x: x[x > 1],),
    "row mask": (lambda x, axis: np.compress(np.arange(x.shape[axis]) % 2 == 0, x, axis), AXES),
    "take by itself": (lambda x: x.ravel()[x.ravel() % 3] if x.size > 3 else x, "iu"),
    "take_along_axis": (lambda x, axis: np.take_along_axis(x, np.argsort(x, axis, kind="stable"), axis), AXES),
    "arrays": (lambda x, i: x[i, 0, ..., i], st.sampled_from([[0], [0, -1], [[0], [0]]])),
    "delete": (np.delete, st.sampled_from([0, [0, -1], slice(1, None, 2)]), MAYBE),
    "gradient": (np.gradient, "f"),
    "diff": (lambda x, axis: np.diff(x, axis=axis), AXES),
    "unwrap": (lambda x, axis: np.unwrap(x, axis=axis), AXES, "f"),
    "trapezoid": (lambda x, axis: np.trapezoid(x, axis=axis), AXES, "f"),
    "apply_along_axis": (lambda x, axis: np.apply_along_axis(lambda v: v[::-1], axis, x), AXES),
    "pad": (lambda x, how: np.pad(x, 2, how), st.sampled_from(["mean", "maximum", "median", "reflect"]), "iuf"),
    "resize": (lambda x: np.resize(x, (3, 5)),),
    "cov": (np.cov, "fc"),
    "set": (lambda x, y: _written(x, lambda z: z.__setitem__(z > 1, y)), st.sampled_from([0, 3])),
    "scale": (lambda x: _written(x, lambda z: z.__setitem__(z > 1, z[z > 1] * 2)), "iufc"),
    "set at arrays": (lambda x, i: _written(x, lambda z: z.__setitem__(i, 7)), st.sampled_from([[0, 0], ([0], [-1])])),
    "put": (lambda x, i: _written(x, lambda z: np.put(z, i, [5, 6])), st.sampled_from([[0], [1, -1, 0]])),
    "put_along_axis": (
        lambda x, axis: _written(x, lambda z: np.put_along_axis(z, np.argsort(z, axis, kind="stable"), 1, axis)),
        AXES,
    ),
    "place": (lambda x: _written(x, lambda z: np.place(z, z > 1, [1, 2, 3])),),
    "fill_diagonal": (lambda x, wrap: _written(x, lambda z: np.fill_diagonal(z, 1, wrap)), st.booleans()),
    "qr": (lambda x: _gram(np.linalg.qr(x if x.ndim > 2 or len(x) >= x.shape[1] else x.T, "r")), "fc"),
    "singular values": (lambda x: np.linalg.svd(x, compute_uv=False), "fc"),
    "inv": (lambda x: np.linalg.inv(x @ np.conj(x.mT) + 9 * np.eye(x.shape[-2])), "fc"),
    "slogdet": (lambda x: tuple(np.linalg.slogdet(x @ np.conj(x.mT) + 9 * np.eye(x.shape[-2]))), "fc"),
    "cholesky": (lambda x: np.linalg.cholesky(x @ np.conj(x.mT) + 9 * np.eye(x.shape[-2])), "fc"),
    "solve": (lambda x: np.linalg.solve(x @ np.conj(x.mT) + 9 * np.eye(x.shape[-2]), x), "fc"),
}


def _gram(r: Any) -> Any:
    """The product of a factor with itself; factors of matrices without full rank differ."""
    return np.conj(r.mT) @ r


def _written(x: Any, change: Any) -> Any:
    copied = x.copy()
    change(copied)
    return copied


@st.composite
def arrays(draw: st.DrawFn, kinds: str) -> tuple[np.ndarray, Any]:
    """An array, some elements of which are equal, and a sharding of it."""
    mesh = Mesh(draw(st.sampled_from(MESHES)))
    shape = draw(st.lists(SIZES, min_size=0, max_size=3))
    dtype = np.dtype(draw(st.sampled_from([dtype for dtype in DTYPES if np.dtype(dtype).kind in kinds])))
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    values = generator.integers(0, draw(st.sampled_from([1, 4, 60])) + 1, shape).astype(dtype)
    if dtype.kind in "fc" and draw(st.booleans()):
        values = (values * (0.37 + 0.25j if dtype.kind == "c" else 0.37)).astype(dtype)
    entries: list[tuple[str, ...]] = [()] * len(shape)
    for axis in draw(st.permutations(list(mesh.shape))):
        place = draw(st.integers(-1, len(shape) - 1))
        if place >= 0:
            entries[place] += (axis,)
    return np.asarray(values), mesh.sharding(*entries)


def result_of(call: Any, x: Any, arguments: list[Any]) -> Any:
    """What a call gives, as a flat list of arrays, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = call(x, *arguments)
        except GatherError:
            raise
        except Exception as error:
            return error
    found = found if isinstance(found, (list, tuple)) else [found]
    return [each.numpy() if isinstance(each, ShardedArray) else np.asarray(each) for each in found]


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_a_function_gives_what_it_gives_for_the_whole(name, data):
    function, *arguments = CALLS[name]
    kinds = arguments.pop() if arguments and isinstance(arguments[-1], str) else "biufc"
    x, sharding = data.draw(arrays(kinds))
    given_arguments = [data.draw(argument) for argument in arguments]
    expected = result_of(function, x.copy(), given_arguments)
    for memory in ("shared", "copy"):
        with mode(memory), strict(), poisoned():
            found = result_of(function, shard(x.copy(), sharding), given_arguments)
        if isinstance(expected, Exception):
            assert isinstance(found, Exception), f"{found!r}, and not {expected!r}"
            continue
        assert not isinstance(found, Exception), f"{found!r}, and not {expected!r}"
        for one, other in zip(found, expected, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            tolerance = 1e-4 if x.dtype == np.float32 else 1e-9
            if one.dtype.kind in "fc":
                np.testing.assert_allclose(one, other, tolerance, tolerance * max(1, np.abs(other).max(initial=0)))
            else:
                np.testing.assert_array_equal(one, other)
