"""Functions that reorder, scan, transform, count and factor: NumPy's results without a gather, in both modes."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ringlet.sharding import Mesh, ShardedArray, mode, shard, strict
from tests.sharding.sweep import poisoned

RANDOM = np.random.default_rng(0)
LINE, MATRIX, STACK = RANDOM.standard_normal(64), RANDOM.standard_normal((8, 12)), RANDOM.standard_normal((4, 8, 12))
WHOLE, HOLES = RANDOM.integers(0, 9, 64), np.where(LINE > 1, np.nan, LINE)
SQUARE, TALL = RANDOM.standard_normal((8, 8)), RANDOM.standard_normal((64, 3))
POSITIVE, WAVES = SQUARE @ SQUARE.T + 8 * np.eye(8), STACK + 1j * STACK[::-1]
MATRICES = RANDOM.standard_normal((4, 6, 6))
MATRICES = MATRICES @ MATRICES.transpose(0, 2, 1) + 6 * np.eye(6)
L = np.linalg

# Specifications of meshes by the number of dimensions, in turn.
MESHES: dict[str, tuple[dict[str, int], dict[int, list[tuple[Any, ...]]]]] = {
    "2x2": (
        {"x": 2, "y": 2},
        {
            1: [("x",), (("y", "x"),)],
            2: [("x", "y"), ("y",), (None, "x")],
            3: [("x", "y"), (None, "x", "y"), ("y", None, "x"), ("x",)],
        },
    ),
    "3": ({"x": 3}, {1: [("x",)], 2: [("x",), (None, "x")], 3: [("x",), (None, "x"), (None, None, "x")]}),
}

CASES: dict[str, tuple[Any, ...]] = {}


def case(name, function, *operands):
    CASES[name] = (function, *operands)


def each(names, operand, **options):
    """Add a case for each function of NumPy with these options."""
    for name in names.split():
        function: Any = np
        for part in name.split("."):
            function = getattr(function, part, None)
        if function is not None:
            case(f"{name} {options or ''}".strip(), lambda x, f=function: f(x, **options), operand)


for axis in (0, 1, 2):
    each("fft.fft fft.ifft fft.irfft fft.hfft", WAVES, axis=axis)
    each("fft.rfft fft.ihfft cumsum cumprod", STACK, axis=axis)
    for ufunc in (np.maximum, np.subtract, np.logaddexp):
        case(f"{ufunc.__name__}.accumulate {axis}", lambda x, u=ufunc, axis=axis: u.accumulate(x, axis=axis), STACK)
each("fft.fft fft.ifft fft.irfft fft.hfft", WAVES, n=5, axis=0)
each("fft.fft fft.ifft fft.rfft fft.irfft fft.ihfft", LINE, norm="ortho")
each("fft.fft fft.rfft", LINE[:37])
each(
    "fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftshift fft.ifftshift", STACK
)
each("fft.fftn fft.ifftn fft.rfftn fft.irfftn", STACK, s=(6, 7), axes=(0, 2))
for axes in (None, 0, 1, (0, 2), (0, 1, 2)):
    each("median nanmedian", STACK, axis=axes, keepdims=True)
    for q in (0.3, [0, 0.25, 1]):
        each("quantile nanquantile percentile nanpercentile", STACK, axis=axes, q=q)
for name, line in (("integers", WHOLE), ("NaN", HOLES), ("float32", LINE.astype("f4"))):
    for function in (np.median, np.nanmedian):
        case(f"{function.__name__} of {name}", function, line)
    for function in (np.quantile, np.nanquantile):
        case(f"{function.__name__} of {name}", lambda x, f=function: f(x, [0.1, 0.5]), line)
BOOLS = np.array([False, True, True])
case("quantile of Booleans", np.quantile, BOOLS, BOOLS)
case("quantile with a fraction", lambda x: np.quantile(x, Fraction(1, 2)), WHOLE)
case("quantile to a wider out", lambda x: np.quantile(x, 0.3, out=np.empty((2, 1))), LINE)
case("quantile hazen", lambda x: np.quantile(x, 0.3, method="hazen"), WHOLE)

case("histogram", np.histogram, LINE)
case("histogram of integers", np.histogram, WHOLE)
case("histogram with weights", lambda x, y: np.histogram(x, 7, weights=y), LINE, LINE)
case("histogram with edges", lambda x: np.histogram(x, [0, 1, 2.5]), MATRIX)
case("histogram density", lambda x: np.histogram(x, 5, density=True), MATRIX)
case("histogram auto", lambda x: np.histogram(x, "auto"), LINE)
case("histogram range", lambda x: np.histogram(x, 4, (0, 1)), LINE)
case("histogram_bin_edges", lambda x: np.histogram_bin_edges(x, 6), MATRIX)
case("bincount", np.bincount, WHOLE)
case("bincount with weights", lambda x, y: np.bincount(x, y, 20), WHOLE, LINE)

case("cumsum of integers", lambda x: np.cumsum(x, dtype="f4"), WHOLE)
case("nancumsum", lambda x: np.nancumsum(x, axis=0), np.where(STACK > 1, np.nan, STACK))
case("apply_along_axis", lambda x: np.apply_along_axis(lambda v: np.stack([v, v * 2]), 1, x), STACK)
case("apply_along_axis to a number", lambda x: np.apply_along_axis(np.sum, 0, x), STACK)
case("apply_over_axes", lambda x: np.apply_over_axes(np.sum, x, [0, 2]), STACK)
case("cov", np.cov, MATRIX)
case("cov of two", np.cov, LINE, LINE[::-1].copy())
case("corrcoef", np.corrcoef, MATRIX)
for edge_order in (1, 2):
    each("gradient", STACK, edge_order=edge_order)
case("gradient with distances", lambda x: np.gradient(x, np.array([0, 1, 3, 4.0, 5, 7, 8, 9])), MATRIX[:, 0].copy())
case("ix_", lambda x: np.ix_(x > 4, [1, 2]), WHOLE)
case("piecewise with one condition", lambda x, y: np.piecewise(x, y, [1, 2]), BOOLS * 3, BOOLS)
case("piecewise", lambda x: np.piecewise(x, [x > 1, x < 0], [5, lambda v: -v, 3]), LINE)
case("polyfit", lambda x, y: np.polyfit(x, y, 2), LINE, LINE**2)
case("polyadd", lambda x: np.polyadd(x, [1, 2]), LINE)
case("polysub", lambda x: np.polysub([1, 2], x), LINE)
each("polyder polyint vander sort_complex real_if_close unwrap", LINE[:6].copy())
case("vander 3", lambda x: np.vander(x, 3, increasing=True), LINE)
each("real_if_close", STACK + 0j)
case("resize", lambda x: np.resize(x, (5, 7)), LINE)
each("trapezoid", STACK, axis=0)
case("trim_zeros", np.trim_zeros, np.array([0, 0, 1.0, 2, 0, 3, 0]))
case("ediff1d", lambda x: np.ediff1d(x, to_end=[1.0, 2]), MATRIX)
each(" ".join(f"lib.scimath.{name}" for name in ["sqrt", "log", "log2", "log10", "arccos", "arcsin", "arctanh"]), LINE)
case("delete", lambda x: np.delete(x, [1, 2], 1), MATRIX)
case("cross", lambda x: np.cross(x[:3], x[1:4], axis=0), MATRIX)
case("diag k", lambda x: np.diag(x, 1), LINE)
case("interp", lambda x, y: np.interp(y, x, x), np.sort(LINE), LINE)
case("digitize", lambda x, y: np.digitize(y, x), np.sort(LINE), LINE)
case("unique", lambda x: np.unique(x, return_index=True, return_inverse=True, return_counts=True), WHOLE)
case("intersect1d with indices", lambda x: np.intersect1d(x, x[3:9] + 1, return_indices=True), WHOLE)
case("unique of NaN", lambda x: np.unique(x, return_counts=True), HOLES)
for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
    case(name, lambda x, y, name=name: getattr(np, name)(x, y), WHOLE, WHOLE[:7] + 5)
for values in (
    MATRIX > 0,
    np.array(["", "a", "0", " "]),
    np.array([b"", b"a"]),
    np.array([None, "", [], 3, 0.0, "x"], object),
    np.array([0, 1, "NaT"], "M8[s]"),
    np.array([b"", b"a"], "V2"),
):
    for function in (np.nonzero, np.argwhere, np.flatnonzero):
        case(f"{function.__name__} of {values.dtype}", function, values)
case("extract", lambda x: np.extract(x > 0, x), MATRIX)
case("rows of a mask", lambda x: x[x[:, 0] > 0].mean(0), TALL)
case("two arrays", lambda x: x[[1, -2, 3], :, [0, 2, 2]], STACK)
case("a permutation", lambda x, y: x[np.argsort(y, kind="stable")], LINE, WHOLE)

case("cond", L.cond, TALL)
case("matrix_rank", L.matrix_rank, TALL)
case("pinv", L.pinv, TALL)
case("tensorinv", lambda x: L.tensorinv(x.reshape(4, 2, 8), 2), POSITIVE)
case("tensorsolve", lambda x: L.tensorsolve(x.reshape(2, 4, 8), np.ones((2, 4))), POSITIVE)
case("solve", lambda x: L.solve(x, x[0]), SQUARE)
case("solve several", lambda x: L.solve(x, x[:, :5]), SQUARE)
case("inv", L.inv, SQUARE)
case("det", L.det, SQUARE)
case("slogdet", lambda x: tuple(L.slogdet(x)), SQUARE)
case("cholesky", L.cholesky, POSITIVE)
case("cholesky of complex numbers", L.cholesky, POSITIVE + 1j * np.triu(SQUARE, 1) - 1j * np.triu(SQUARE, 1).T)


def checked_qr(x):
    q, r = L.qr(x)
    return q @ r, abs(r), q.T @ q


def checked_svd(x, full_matrices=False):
    u, values, vh = L.svd(x, full_matrices=full_matrices)
    return u * values @ vh, values


case("qr", checked_qr, TALL)
case("qr r", lambda x: abs(L.qr(x, "r")), TALL)
case("svd", checked_svd, TALL)
case("svd of a wide matrix", lambda x: checked_svd(x.T), TALL)
case("svd of a square matrix", lambda x: checked_svd(x, True), SQUARE)


def checked_eigh(x):
    values, vectors = L.eigh(x, "U")
    return values, (vectors * values) @ np.conj(vectors.T)  # the signs of vectors are arbitrary


case("eigh", checked_eigh, SQUARE)
case("eigvalsh", L.eigvalsh, SQUARE)
case("singular values", lambda x: L.svd(x, compute_uv=False), TALL)
case("lstsq", lambda x, y: L.lstsq(x, y, rcond=None), TALL, LINE)
case("lstsq of several", lambda x, y: L.lstsq(x, y, rcond=None), TALL, TALL + 1)
case("norm 2", lambda x: L.norm(x, 2), TALL)
case("matrix_power", lambda x: L.matrix_power(x, -2), SQUARE)
each(
    " ".join(
        f"linalg.{name}" for name in ["inv", "det", "cholesky", "eigvalsh", "matrix_rank", "pinv", "svdvals", "cond"]
    ),
    MATRICES,
)
for name in ("slogdet", "eigh", "eig", "qr", "svd"):
    case(f"{name} of a stack", lambda x, name=name: tuple(getattr(L, name)(x)), MATRICES)
case("solve of a stack", lambda x: L.solve(x, x), MATRICES)


def leaves(value):
    return [leaf for item in value for leaf in leaves(item)] if isinstance(value, (list, tuple)) else [value]


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_what_numpy_gives(name, mesh):
    function, *operands = CASES[name]
    axes, specs = MESHES[mesh]
    with np.errstate(all="ignore"):
        expected = leaves(function(*operands))
    for turn in range(max(len(specs[x.ndim]) for x in operands)):
        results = []
        for memory in ("shared", "copy"):
            with mode(memory), strict(), poisoned(), np.errstate(all="ignore"):
                shardings = [Mesh(axes).sharding(*specs[x.ndim][turn % len(specs[x.ndim])]) for x in operands]
                given = [shard(x.copy(), sharding) for x, sharding in zip(operands, shardings, strict=True)]
                found = leaves(function(*given))
                results.append([x.numpy() if isinstance(x, ShardedArray) else x for x in found])
        for one, other, wanted in zip(*results, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg="shared and copy")
            assert (np.shape(one), np.asarray(one).dtype) == (np.shape(wanted), np.asarray(wanted).dtype)
            if np.asarray(wanted).dtype.kind in "fc":
                np.testing.assert_allclose(
                    one, wanted, rtol=1e-6 if operands[0].dtype == np.float32 else 1e-9, atol=1e-9
                )
            else:
                np.testing.assert_array_equal(one, wanted)
