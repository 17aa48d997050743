"""NumPy functions that run NumPy's own Python code, which calls only functions implemented for sharded arrays.

In this code, `asarray` and similar names are replaced by functions that do not convert sharded arrays.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.sharding.execution.array_function_table import implements, numpy_function
from ringlet.sharding.sharded_array import ShardedArray

_FUNCTIONS = """apply_over_axes cov fft.fft2 fft.fftn fft.fftshift fft.ifft2 fft.ifftn fft.ifftshift fft.irfft2
    fft.irfftn fft.rfft2 fft.rfftn gradient histogram_bin_edges intersect1d ix_ lib.scimath.arccos
    lib.scimath.arcsin lib.scimath.arctanh lib.scimath.log lib.scimath.log10 lib.scimath.log2 lib.scimath.logn
    lib.scimath.power lib.scimath.sqrt linalg.cond linalg.matrix_rank linalg.pinv linalg.tensorinv polyadd
    polyder polyfit polyint polysub real_if_close resize setxor1d sort_complex strings.center strings.expandtabs
    strings.ljust strings.multiply strings.rjust strings.zfill trapezoid trim_zeros union1d unique_all unique_counts
    unique_inverse unique_values unwrap"""


def _kept(function: Callable[..., Any]) -> Callable[..., Any]:
    def convert(a: Any, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(a, ShardedArray):
            if isinstance(a, (list, tuple)) and any(isinstance(x, ShardedArray) for x in a):
                return np.stack([convert(x, dtype) for x in a])
            return function(a, dtype, *args, **kwargs)
        is_copied = function is np.array and kwargs.get("copy", True)
        x = a.astype(a.dtype if dtype is None else dtype, copy=bool(is_copied))
        missing = kwargs.get("ndmin", 0) - x.ndim
        return x[(None,) * missing] if missing > 0 else x

    return convert


_NAMES = ("array", "asarray", "asanyarray", "asarray_chkfinite")
_CONVERSIONS: dict[str, Any] = {name: _kept(getattr(np, name)) for name in _NAMES}
_CONVERSIONS["_makearray"] = lambda a: (_CONVERSIONS["asarray"](a), lambda result: result)
_CONVERSIONS["_cond_svdvals"] = lambda x: np.linalg.svd(x, compute_uv=False)  # in NumPy 2.5, calls LAPACK directly
_CONVERSIONS["ndarray"] = (np.ndarray, ShardedArray)  # for isinstance() checks


_NUMERIC = importlib.import_module("numpy._core.numeric" if hasattr(np, "_core") else "numpy")


class _Numpy(types.ModuleType):
    """The module ``numpy`` with conversions that keep sharded arrays sharded."""

    def __getattr__(self, name: str) -> Any:
        return _CONVERSIONS.get(name) or getattr(_NUMERIC if hasattr(_NUMERIC, name) else np, name)


_NUMPY = _Numpy("numpy")


def own_body(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return NumPy's definition of a function, in which sharded arrays stay sharded."""
    inner: Any = getattr(function, "_implementation", function)
    names = dict(inner.__globals__)
    for name in inner.__code__.co_names:
        value = names.get(name)
        if value is np or getattr(value, "__name__", "") == "numpy._core.numeric":
            names[name] = _NUMPY
        elif name in _CONVERSIONS:
            names[name] = _CONVERSIONS[name]
        elif isinstance(value, types.FunctionType) and name.startswith("_") and not hasattr(value, "_implementation"):
            names[name] = own_body(value) if value is not inner else value
            if name == "_cook_nd_args":
                names[name] = _undivided_first(names[name], inner.__name__)
    made = types.FunctionType(inner.__code__, names, inner.__name__, inner.__defaults__, inner.__closure__)
    made.__kwdefaults__ = inner.__kwdefaults__
    return made


def _undivided_first(arguments: Callable[..., Any], function: str) -> Callable[..., Any]:
    """Wrap the function that orders the axes of an FFT: NumPy transforms undivided axes first; a real axis stays last.

    NumPy transforms the axes in descending order of their position in the list; `irfftn`, in ascending order.
    """

    def ordered(a: Any, s: Any, axes: Any, **kwargs: Any) -> tuple[list[Any], list[Any]]:
        s, axes = arguments(a, s, axes, **kwargs)
        cuts = a._layout.cuts if isinstance(a, ShardedArray) else ()
        divided = {d - n for d, cut in enumerate(cuts) if cut.count > 1 for n in (0, len(cuts))}
        count = len(axes) - (function != "_raw_fftnd")
        order = sorted(range(count), key=lambda n: (axes[n] in divided) == (function == "irfftn"))
        order += range(count, len(axes))
        return [s[n] for n in order], [axes[n] for n in order]

    return ordered


_PIECEWISE = own_body(np.piecewise)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, *args: Any, **kwargs: Any) -> Any:
    """Implement :func:`numpy.piecewise`; a sharded `condlist` of fewer than two dimensions is one condition."""
    is_one = isinstance(condlist, ShardedArray) and condlist.ndim < 2 and np.ndim(x)
    return _PIECEWISE(x, [condlist] if is_one else condlist, *args, **kwargs)


for _function in map(numpy_function, _FUNCTIONS.split()):
    if _function is not None:
        implements(_function)(own_body(_function))
