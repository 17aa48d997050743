"""Reference results of collectives, computed by NumPy and checked before any timing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "DTYPES",
    "OPS",
    "Inputs",
    "WrongAnswerError",
    "dtype_named",
    "identity",
    "is_supported",
    "left_to_right",
    "result_dtype",
    "tree_reduce",
]

Array = NDArray[Any]
DType = np.dtype[Any]

# What rounds once, at the end: float32 holds what they are combined as.
_NARROW = (
    "float16", "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz",
)  # fmt: skip
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_BITWISE = {"AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor}
_EXTREMES = {"MIN": np.minimum, "MAX": np.maximum}
_UFUNCS = {"SUM": np.add, "MEAN": np.add, "PROD": np.multiply, **_EXTREMES, **_BITWISE}

OPS = ("SUM", "MEAN", "MIN", "MAX", "PROD", "AND", "OR", "XOR")
DTYPES = ("bool", *_INTEGERS, *_NARROW, "float32", "float64", "complex64", "complex128")

# Inputs repeat after so many elements: a prime, so that no part of a buffer that a collective could take for another
# looks like it. That many are made and checked at a time, so that checking gigabytes needs megabytes.
_PERIOD = (1 << 18) - 5


class WrongAnswerError(AssertionError):
    """A result of a collective differs from the reference, so its speed is not reported."""


def dtype_named(name: str) -> DType:
    """Return a dtype by its name, including dtypes of ml_dtypes if installed.

    Raises
    ------
    ModuleNotFoundError
        If the dtype requires ml_dtypes, which is not installed.

    Examples
    --------
    >>> dtype_named("float32")
    dtype('float32')
    """
    with contextlib.suppress(TypeError):
        return np.dtype(name)
    try:
        import ml_dtypes
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{name} is a dtype of ml_dtypes, which is not installed; pip install it.") from error
    dtype: DType = np.dtype(getattr(ml_dtypes, name))
    return dtype


def is_supported(dtype: DType, op: str) -> bool:
    """Return whether ringlet supports this operation on this dtype.

    Examples
    --------
    >>> is_supported(np.dtype("bool"), "SUM"), is_supported(np.dtype("int8"), "XOR")
    (False, True)
    """
    if dtype.kind == "b":
        return op in _BITWISE or op in _EXTREMES
    if dtype.kind == "c":
        return op in ("SUM", "MEAN", "PROD")
    return op in OPS and (dtype.kind in "iu" or op not in _BITWISE)


def result_dtype(dtype: DType, op: str) -> DType:
    """Return the dtype of a result: that of the input, except for means of integers.

    Examples
    --------
    >>> result_dtype(np.dtype("int8"), "MEAN"), result_dtype(np.dtype("int8"), "SUM")
    (dtype('float32'), dtype('int8'))
    """
    if op != "MEAN" or dtype.kind not in "iu":
        return dtype
    return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)


def identity(dtype: DType, op: str) -> Any:
    """Return the identity element.

    Examples
    --------
    >>> identity(np.dtype("int8"), "MAX"), identity(np.dtype("float32"), "MIN")
    (np.int8(-128), np.float32(inf))
    """
    if op in _EXTREMES:
        return _largest(dtype, -1 if op == "MAX" else 1)
    if op == "AND":
        return dtype.type(True) if dtype.kind == "b" else np.invert(dtype.type(0))
    return dtype.type(op == "PROD")


def _largest(dtype: DType, sign: int) -> Any:
    if dtype.kind == "b":
        return dtype.type(sign > 0)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return dtype.type(info.max if sign > 0 else info.min)
    infinity = dtype.type(sign * np.inf)
    if np.isinf(infinity):
        return infinity
    import ml_dtypes

    finfo: Any = ml_dtypes.finfo
    return dtype.type(sign * float(finfo(dtype).max))


def tree_reduce(arrays: Sequence[Array], op: str) -> Array:
    """Combine one array of each rank in the documented order ((0+1)+(2+3))+...; an unpaired subtree moves up.

    Parameters
    ----------
    arrays : sequence of ndarray
        One per rank, of one shape and dtype.
    op : str
        One of `OPS`. MEAN divides once at the end, for integers the wrapped sum. Floats of 8 and 16 bits are combined
        as float32.

    Returns
    -------
    ndarray

    Examples
    --------
    >>> tree_reduce([np.float32([1e8]), np.float32([1.0]), np.float32([-1e8])], "SUM")
    array([0.], dtype=float32)
    """
    dtype = arrays[0].dtype
    level = [_widened(array) for array in arrays]
    while len(level) > 1:
        pairs = [_combine(level[i], level[i + 1], op) for i in range(0, len(level) - 1, 2)]
        level = pairs + level[2 * len(pairs) :]
    combined = level[0]
    if op == "MEAN":
        # A complex number is divided part by part.
        parts = combined.view(combined.real.dtype)
        divided = np.true_divide(parts, len(arrays), dtype=result_dtype(parts.dtype, op))
        combined = divided.view(combined.dtype) if dtype.kind == "c" else divided
    return _narrowed(combined, result_dtype(dtype, op))


def left_to_right(arrays: Sequence[Array], op: str) -> Array:
    """Combine arrays in the order (((0+1)+2)+3)+...

    Examples
    --------
    >>> left_to_right([np.float32([1e8]), np.float32([-1e8]), np.float32([1.0])], "SUM")
    array([1.], dtype=float32)
    """
    combined = _widened(arrays[0])
    for array in arrays[1:]:
        combined = _combine(combined, _widened(array), op)
    return _narrowed(combined, arrays[0].dtype)


def _widened(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.name in _NARROW else array


def _narrowed(combined: Array, dtype: DType) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return combined.astype(dtype, copy=False)


def _combine(a: Array, b: Array, op: str) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        if a.dtype.kind == "c" and op == "PROD":  # NumPy may fuse what it does in one function
            parts = np.stack([a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real], axis=-1)
            product: Array = parts.view(a.dtype)[..., 0]
            return product
        combined: Array = _UFUNCS[op](a, b)
        return combined


@dataclass(frozen=True)
class Inputs:
    """Inputs of each rank to a verified call: different values on every rank and at every position.

    Attributes
    ----------
    num_ranks, count : int
        Elements per rank.
    dtype : numpy dtype
    is_exact : bool
        Whether the combination is exact in any order; otherwise it reveals the order of rounding.
    op : str
        The operation that combines them.
    """

    num_ranks: int
    count: int
    dtype: DType
    is_exact: bool
    op: str = "SUM"

    def fill(self, rank: int, into: Array) -> None:
        """Write the values of `rank` to `into`, shape ``(count,)``."""
        pattern = self._pattern(rank)
        for begin in range(0, self.count, _PERIOD):
            into[begin : begin + _PERIOD] = pattern[: self.count - begin]

    def check(self, result: Array, who: str, *, first: int = 0, count: int | None = None) -> None:
        """Compare `result` with the combination of all ranks, bit for bit.

        Parameters
        ----------
        result : ndarray, shape (count,)
        who : str
            The subject in errors.
        first : int
            Index of the first expected element.
        count : int, optional
            Number of expected elements; by default the rest.

        Raises
        ------
        WrongAnswerError
            Names the first element that differs.
        """
        ranks, places = range(self.num_ranks), self._places(first, count)
        self._compare(result, who, places, ranks, lambda parts: tree_reduce(parts, self.op))

    def check_from(self, result: Array, rank: int, who: str, *, first: int = 0, count: int | None = None) -> None:
        """Compare `result` with the input of one rank; otherwise as :meth:`check`."""
        self._compare(result, who, self._places(first, count), [rank], lambda parts: parts[0])

    def check_scan(self, result: Array, rank: int, who: str) -> None:
        """Compare `result` with the combination of all ranks before `rank`; otherwise as :meth:`check`."""

        def expected(parts: Sequence[Array]) -> Array:
            before = parts[:rank]
            return left_to_right(before, self.op) if before else np.full_like(parts[0], identity(self.dtype, self.op))

        self._compare(result, who, self._places(0, None), range(max(rank, 1)), expected)

    def _places(self, first: int, count: int | None) -> range:
        return range(first, self.count if count is None else first + count)

    def _compare(
        self, result: Array, who: str, places: range, ranks: Sequence[int], expected_of: Callable[[list[Array]], Array]
    ) -> None:
        if result.shape != (len(places),):
            raise WrongAnswerError(f"{who}: gave {list(result.shape)}, expected [{len(places)}]. {_NO_TIME}")
        patterns = [self._pattern(rank) for rank in ranks]
        begin = 0
        while begin < len(places):
            place = places[begin] % _PERIOD
            end = min(len(places), begin + _PERIOD - place)
            expected = expected_of([pattern[place : place + end - begin] for pattern in patterns])
            given = result[begin:end]
            if given.dtype != expected.dtype or given.tobytes() != expected.tobytes():
                _refuse(given, expected, begin, who)
            begin = end

    def _pattern(self, rank: int) -> Array:
        """Return one period of values: nonzero floats, small enough to combine 16 of them; 8-bit floats end at 15.5."""
        random = np.random.default_rng((rank, 20_240_229))
        size = min(_PERIOD, self.count)
        kind, is_eight_bit = self.dtype.kind, self.dtype.itemsize == 1
        if kind in "biu":
            return random.integers(0, 2 if kind == "b" else 1 << 20, size).astype(self.dtype)
        signs = random.choice([-1.0, 1.0], size)
        if self.op == "PROD" and kind == "c":
            return np.asarray(signs * (1 + 2j), self.dtype)  # whole numbers, and powers of it have no zero part
        if self.is_exact:
            whole = random.integers(1, 8 if is_eight_bit else 1000, size)
            values = random.choice([0.5, 1.0], size) if self.op == "PROD" else whole / (8 if is_eight_bit else 1)
        else:
            exponents = random.integers(-1, 1, size) if is_eight_bit else random.integers(-5, 6, size)
            values = random.uniform(0.5, 1.0, size) * 2.0**exponents
        if kind == "c":
            return np.asarray(signs * (values + 1j * values[::-1]), self.dtype)
        return np.asarray(signs * values).astype(self.dtype)


_NO_TIME = "No time is reported for a wrong answer."


def _refuse(given: Array, expected: Array, begin: int, who: str) -> None:
    if given.dtype != expected.dtype:
        facts = f"gave {given.dtype}, expected {expected.dtype}"
    else:
        differing = np.flatnonzero(given != expected)
        place = int(differing[0]) if differing.size else 0
        facts = f"element {begin + place} is {given[place]!r}, expected {expected[place]!r}"
    raise WrongAnswerError(f"{who}: {facts}. {_NO_TIME}")
