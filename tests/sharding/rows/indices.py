"""Indexing, assignment to an index, and functions that select elements: bit for bit as in NumPy."""

from __future__ import annotations

import numpy as np

from tests.sharding.sweep import EVERY, FLOATS, NUMBERS, Row

SHAPE = (7, 5)


def of(name, compute, *shapes, dtypes=EVERY):
    """Return a row for values of any dtype."""
    return Row(name, compute, shapes or (SHAPE,), dtypes)


def at(key, *shapes):
    """Return the row of an index."""
    return of(f"at {key}", lambda x: x[key], *shapes)


def written(name, change, *shapes):
    """Return the row of an operation that changes a copy of its first operand."""

    def compute(first, *others):
        copied = first.copy()
        change(copied, *others)
        return copied

    return of(name, compute, *(shapes or (SHAPE,)))


def assigned(key, value=3):
    """Return the row of an assignment of a value."""
    return written(f"{key} = {np.shape(value)}", lambda x: x.__setitem__(key, value))


def assigned_sharded(key, shape):
    """Return the row of an assignment of another array."""
    return written(f"{key} = array", lambda x, y: x.__setitem__(key, y), SHAPE, shape)


INDICES = [
    at(slice(2, 6)),
    at((slice(None), slice(1, 4))),
    at((slice(None, None, 2), slice(None, None, 3))),
    at((slice(None, None, -1), slice(4, 0, -2))),
    at(slice(5, 5)),
    at(slice(90, None)),
    at(3),
    at((-1, 2)),
    at((Ellipsis, -2)),
    at((None, slice(1, 3), None, 0)),
    at(()),
    at(Ellipsis),
    at((slice(None), 7)),
    at((0, 0, 0)),
    at(2.5),
    at((slice(1, 3), 1, slice(None, None, -1)), (4, 5, 6)),
    at([3, 0, -1, 3]),
    at((slice(1, 6, 2), [1, 0])),
    at((Ellipsis, np.array([[0, 4], [2, 2]]))),
    at([9]),
    of("a mask", lambda x: x[x != x[0]]),
    of("two arrays", lambda x: x[[1, 2], [0, 3]]),
    of("slices of slices", lambda x: x[1:][::2][:, ::-1].T[1:]),
]

ASSIGNMENTS = [
    assigned(slice(2, 6)),
    assigned((slice(None, None, -2), slice(1, None)), np.arange(16).reshape(4, 4)),
    assigned((3, slice(None)), np.arange(5)),
    assigned((Ellipsis, 0), np.ones((1, 7))),
    assigned((2, 1)),
    assigned((None, slice(0, 2)), [[[1], [2]]]),
    assigned(slice(0, 2), np.ones(4)),
    assigned((9, 9)),
    assigned_sharded(slice(2, 6), (4, 5)),
    assigned_sharded((slice(None), slice(None, None, -1)), (7, 5)),
    assigned_sharded((slice(1, None, 2), slice(2)), (2,)),
    assigned_sharded((4, slice(None)), (5,)),
    assigned_sharded(Ellipsis, (7, 1)),
    assigned_sharded(slice(0, 2), (3, 5)),
    written("rows moved within", lambda x: x.__setitem__(slice(1, None), x[:-1])),
    written("where a mask is true", lambda x: x.__setitem__(x != x[0], 1)),
    written("where another mask is true", lambda x, y: x.__setitem__(y != y[0], 1), SHAPE, SHAPE),
    written("rows of a mask", lambda x, y: x.__setitem__(y == y[0], x[2]), SHAPE, (7,)),
    written("values where a mask is true", lambda x: x.__setitem__(x >= x.min(), np.arange(35))),
    written("at an array", lambda x: x.__setitem__([1, 4, 1], 2)),
    written("copyto", lambda x, y: np.copyto(x, y, where=y == y[2]), SHAPE, (5,)),
    written("fill_diagonal", lambda x: np.fill_diagonal(x, 1)),
    written("put", lambda x: np.put(x, [3, 8], 1)),
]

CHOICES = [
    of("where", lambda x, y: np.where(x != x[0], x, y), SHAPE, (5,)),
    of("where with numbers", lambda x: np.where(x == x[1], x, 0)),
    of("where it is true", np.where),
    of("clip", lambda x: np.clip(x, 1, 20), dtypes=("float32", "int32", "float64", "uint8")),
    of("clip below", lambda x, y: np.clip(x, y, None), SHAPE, (7, 1), dtypes=FLOATS),
    of("choose", lambda x, y: np.choose(x % 2, [x, y]), SHAPE, SHAPE, dtypes=("int32", "int64")),
    of("select", lambda x, y: np.select([x > 1, y > 0], [x, y], 9), SHAPE, SHAPE, dtypes=FLOATS),
    of("take rows", lambda x: np.take(x, [3, 0, 6], axis=0)),
    of("take columns", lambda x: np.take(x, [[3, -1], [0, 2]], axis=1)),
    of("take many", lambda x: np.take(x, np.arange(20) % 7, axis=0)),
    of("take any", lambda x: np.take(x, [30, 2])),
    of("take what there is not", lambda x: np.take(x, [0, 7], axis=0)),
    of("take around", lambda x: np.take(x, [-9, 12, 3], axis=0, mode="wrap")),
    of("take at the edge", lambda x: np.take(x, [-9, 12, 3], axis=0, mode="clip")),
    of("take by an array", lambda x, y: np.take(x, y % 5, axis=1), SHAPE, (3,), dtypes=("int32", "int64")),
    of("take by a large array", lambda x, y: np.take(x, y % 7, axis=0), SHAPE, (4, 6), dtypes=("int32", "int64")),
    of("take_along_axis", lambda x, y: np.take_along_axis(x, y % 7, 0), SHAPE, (3, 5), dtypes=("int64",)),
    of("tril", lambda x: np.tril(x, 1)),
    of("triu", lambda x: np.triu(x, -1), (3, 4, 5)),
]

OTHERS = [
    of("diff", lambda x: np.diff(x, axis=0), dtypes=("float64", "int32", "bool", "uint8")),
    of("diff twice", lambda x: np.diff(x, 2, prepend=1, append=x[:, :2]), dtypes=("float64", "int32")),
    of("isclose", lambda x, y: np.isclose(x, y, atol=1), SHAPE, (5,), dtypes=NUMBERS),
    of("nan_to_num", lambda x: np.nan_to_num(x / (x - x)), dtypes=FLOATS),
    of("round", lambda x: np.round(x, 1), dtypes=("float64", "complex128", "int32")),
    of("sinc", np.sinc, dtypes=("float64", "float32")),
    of("angle", np.angle, dtypes=("complex128", "float64")),
    of("real", lambda x: np.real(x) - np.imag(x), dtypes=("complex128", "float64")),
    of("isin", lambda x: np.isin(x, [1, 5, 9]), dtypes=("int32", "uint8")),
    of("digitize", lambda x: np.digitize(x, [1, 5, 9]), dtypes=("int32", "float64")),
    of("searchsorted", lambda x: np.searchsorted([1, 5, 9], x), dtypes=("int32", "float64")),
    of("interp", lambda x: np.interp(x, [-1, 0, 2], [3, 5, 9]), dtypes=("float64",)),
    of("astype", lambda x: x.astype("complex64")),
    of("copy", np.copy),
    of("full_like", lambda x: np.full_like(x, 7)),
    of("zeros_like", lambda x: np.zeros_like(x, dtype="int16")),
    of("ones_like", lambda x: np.ones_like(x, shape=(2, 3, 4))),
    of("full_like of a row", lambda x: np.full_like(x, [1, 2, 3, 4, 5], dtype="float64")),
]

ROWS = INDICES + ASSIGNMENTS + CHOICES + OTHERS
