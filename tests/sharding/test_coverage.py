"""Every function of NumPy that can be overridden is known here: it works tile by tile, or it says that it gathers.

A function that a later NumPy adds fails this file until somebody has looked at it.
"""

from __future__ import annotations

import importlib
import re
import warnings

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_array_functions, get_overridable_numpy_ufuncs

from ringlet.errors import GatherWarning
from ringlet.sharding import ShardedArray, Sharding, shard
from ringlet.sharding.execution.array_function_table import _CREATORS, implementations

# Run on the gathered arrays, with a warning.
_NAMES = """
    alltrue apply_along_axis apply_over_axes argwhere bincount busday_count busday_offset
    compress corrcoef cov cumproduct datetime_as_string delete ediff1d extract
    flatnonzero geomspace gradient histogram histogram2d histogram_bin_edges histogramdd in1d insert intersect1d
    is_busday ix_ lexsort linspace logspace median msort nanmedian nanpercentile nanquantile nonzero
    packbits percentile piecewise poly polyadd polyder polydiv polyfit polyint polymul polysub product
    quantile ravel_multi_index real_if_close resize roots save savetxt savez savez_compressed setdiff1d setxor1d
    sometrue sort_complex trapezoid trapz trim_zeros union1d unique unique_all unique_counts unique_inverse
    unique_values unpackbits unravel_index unwrap vander lib.stride_tricks.sliding_window_view linalg.cond
    linalg.eig linalg.eigh linalg.eigvals linalg.lstsq linalg.qr linalg.slogdet linalg.svd linalg.tensorinv
    linalg.tensorsolve
"""
GATHER = set(_NAMES.split())
# Modules of which all functions gather: text, transforms, structured arrays, coefficients, and functions whose dtype
# depends on the values. Those of some are known once they were imported.
GATHER_MODULES = ("char.", "fft.", "lib.recfunctions", "lib.scimath", "lib._scimath_impl", "polynomial.", "strings.")
for module in ("char", "fft", "polynomial", *(["strings"] if hasattr(np, "strings") else [])):
    importlib.import_module(f"numpy.{module}")


def name_of(function):
    return f"{function.__module__}.{function.__name__}".removeprefix("numpy.")


def kinds(function):
    """What is known of a function."""
    name = name_of(function)
    known = {
        "creates": name in _CREATORS,
        "implemented": function in implementations(),
        "gathers": name in GATHER or name.startswith(GATHER_MODULES),
    }
    return [kind for kind, is_so in known.items() if is_so]


FUNCTIONS = sorted(get_overridable_numpy_array_functions(), key=name_of)


def test_every_function_is_of_one_kind():
    unclear = {name_of(function): kinds(function) for function in FUNCTIONS if len(kinds(function)) != 1}
    assert unclear == {}


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="earlier versions have fewer functions")
def test_half_of_the_functions_work_tile_by_tile():
    native = [function for function in FUNCTIONS if kinds(function) != ["gathers"]]
    assert len(native) >= 150


VECTOR = np.array([3.0, 1.0, 2.0, 1.0])
MATRIX = np.array([[2.0, 1.0, 0.5, 1.0], [1.0, 3.0, 1.0, 0.0], [0.5, 1.0, 4.0, 1.0], [1.0, 0.0, 1.0, 5.0]])
BITS = np.array([1, 0, 1, 1], np.uint8)
# What functions take that do not take one vector.
CALLS = {
    "apply_along_axis": lambda f, v, m, b: f(np.sum, 0, m),
    "apply_over_axes": lambda f, v, m, b: f(np.sum, m, [0]),
    "bincount": lambda f, v, m, b: f(b),
    "compress": lambda f, v, m, b: f(b, v),
    "corrcoef": lambda f, v, m, b: f(m),
    "cov": lambda f, v, m, b: f(m),
    "delete": lambda f, v, m, b: f(v, 1),
    "extract": lambda f, v, m, b: f(b, v),
    "geomspace": lambda f, v, m, b: f(v, 9, 3),
    "histogram2d": lambda f, v, m, b: f(v, v)[0],
    "histogramdd": lambda f, v, m, b: f(m[:, :2])[0],
    "in1d": lambda f, v, m, b: f(v, [1, 3]),
    "insert": lambda f, v, m, b: f(v, 1, 5),
    "intersect1d": lambda f, v, m, b: f(v, [1, 3]),
    "linspace": lambda f, v, m, b: f(v, 9, 3),
    "logspace": lambda f, v, m, b: f(v, 9, 3),
    "nanpercentile": lambda f, v, m, b: f(v, 30),
    "nanquantile": lambda f, v, m, b: f(v, 0.3),
    "packbits": lambda f, v, m, b: f(b),
    "percentile": lambda f, v, m, b: f(v, 30),
    "piecewise": lambda f, v, m, b: f(v, [v > 1], [5]),
    "polyadd": lambda f, v, m, b: f(v, [1, 2]),
    "polydiv": lambda f, v, m, b: f(v, [1, 2]),
    "polyfit": lambda f, v, m, b: f(v, [1, 2, 3, 4], 1),
    "polymul": lambda f, v, m, b: f(v, [1, 2]),
    "polysub": lambda f, v, m, b: f(v, [1, 2]),
    "quantile": lambda f, v, m, b: f(v, 0.3),
    "ravel_multi_index": lambda f, v, m, b: f((b, [0, 1, 0, 1]), (2, 2)),
    "resize": lambda f, v, m, b: f(v, (3, 2)),
    "setdiff1d": lambda f, v, m, b: f(v, [1]),
    "setxor1d": lambda f, v, m, b: f(v, [1]),
    "union1d": lambda f, v, m, b: f(v, [1]),
    "unpackbits": lambda f, v, m, b: f(b),
    "unravel_index": lambda f, v, m, b: f(b, (2, 2)),
    "fft.fft2": lambda f, v, m, b: f(m),
    "fft.ifft2": lambda f, v, m, b: f(m),
    "fft.irfft2": lambda f, v, m, b: f(m),
    "fft.rfft2": lambda f, v, m, b: f(m),
    "linalg.lstsq": lambda f, v, m, b: f(m, v, rcond=None)[0],
    "linalg.tensorinv": lambda f, v, m, b: f(m, ind=1),
    "linalg.tensorsolve": lambda f, v, m, b: f(m, v),
    "lib.scimath.logn": lambda f, v, m, b: f(2, v),
    "lib.scimath.power": lambda f, v, m, b: f(v, 2),
    "lib.stride_tricks.sliding_window_view": lambda f, v, m, b: f(v, 2),
}
# Not called here: they write files, or take text, dates, coefficients, structured arrays or a dtype.
UNCALLED = (
    *("char.", "polynomial.", "strings."),
    *("busday_count", "busday_offset", "can_cast", "datetime_as_string", "is_busday", "lib.recfunctions"),
    *("min_scalar_type", "lib._scimath_impl", "save", "savetxt", "savez", "savez_compressed"),
)
CALLED = [
    function for function in FUNCTIONS if kinds(function) == ["gathers"] and not name_of(function).startswith(UNCALLED)
]


@pytest.mark.parametrize("function", CALLED, ids=name_of)
def test_a_function_that_gathers_says_so_and_gives_what_it_gives_for_the_whole(function):
    on_matrices = name_of(function).startswith("linalg")
    call = CALLS.get(name_of(function), lambda f, v, m, b: f(m) if on_matrices else f(v))
    plain = VECTOR, MATRIX, BITS
    sharded = [shard(array.copy(), Sharding.tiled((2, 1)[: array.ndim])) for array in plain]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.warns(GatherWarning, match=re.escape(f"np.{name_of(function)} ")):
            found = call(function, *sharded)
        np.testing.assert_equal(found, call(function, *plain))


# Those of text have no types that numbers have.
OF_NUMBERS = sorted((f for f in get_overridable_numpy_ufuncs() if f.types), key=lambda ufunc: ufunc.__name__)


@pytest.mark.parametrize("ufunc", OF_NUMBERS, ids=lambda ufunc: ufunc.__name__)
@np.errstate(all="ignore")
def test_every_ufunc_of_numbers_works_tile_by_tile(ufunc):
    for code in "d?lm":
        size = (4, 4) if ufunc.signature else (4,)
        arrays = [np.full(size, 0.5).astype(code) for _ in range(ufunc.nin)]
        try:
            expected = ufunc(*arrays)
        except TypeError:
            continue
        found = ufunc(*(shard(array, Sharding.tiled((2, 1)[: array.ndim])) for array in arrays))
        assert all(isinstance(each, ShardedArray) for each in (found if ufunc.nout > 1 else (found,)))
        np.testing.assert_equal(np.asarray(found), np.asarray(expected))
        return
    pytest.fail(f"no dtype for {ufunc.__name__}")
