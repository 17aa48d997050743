"""Elementwise functions: every ufunc without a signature, in all forms of call."""

from __future__ import annotations

import numpy as np

from tests.sharding.sweep import EVERY, FLOATS, NUMBERS, Row

UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature is None}
# Whole numbers go with floats in it.
del UFUNCS["ldexp"]
ADD = Row("add", np.add, ((7, 5), (7, 5)), NUMBERS)


def of(ufunc):
    """Return the row of a ufunc. NumPy's complex square depends on the array length, by one ulp."""
    shapes = {1: ((7, 5),), 2: ((7, 5), (5,))}[ufunc.nin]
    return Row(ufunc.__name__, ufunc, shapes, EVERY, length=2 if ufunc is np.square else 0)


def into(compute, dtype="float64"):
    """Return a computation with an array of zeros as `out`, laid out like its last operand."""

    def work(*arrays):
        out = np.multiply(arrays[-1], 0, dtype=dtype, casting="unsafe")
        compute(*arrays, out=out)
        return out

    return work


def in_place(operate):
    """Return a computation that changes a copy of its first operand."""

    def work(first, *others):
        changed = first.copy()
        result = operate(changed, *others)
        assert result is changed
        return changed

    return work


def iadd(a, b):
    a += b
    return a


def ipow(a, b):
    a **= 2
    a -= b
    return a


ROWS = [
    *map(of, UFUNCS.values()),
    *(
        ADD.on(*shapes)
        for shapes in [((7,), (3, 7)), ((3, 1), (1, 4)), ((), (5,)), ((2, 1, 5), (3, 1)), ((0, 3), (3,))]
    ),
    *(ADD.on(*shapes) for shapes in [((1, 5), (7, 5)), ((), ()), ((2,), (2,)), ((7, 5), (4, 5)), ((9, 1), (1,))]),
    Row("a number on the left", lambda x: 3 - x, ((7, 5),), NUMBERS),
    Row(
        "numbers that decide the dtype", lambda x: [x * 2, x * 2.5, x * 2j, x + True, x + np.float32(1)], ((5,),), EVERY
    ),
    Row("a plain array", lambda x: x * np.arange(5) - np.ones((3, 1, 1), "int8"), ((7, 5),), NUMBERS),
    Row("a list", lambda x: np.add(x, [1, 2, 3, 4, 5]), ((7, 5),), NUMBERS),
    Row("operators", lambda a, b: [a - b, a * b, a / b, a == b, a < b, -a, abs(b)], ((7, 5), (7, 5)), FLOATS),
    Row(
        "more operators",
        lambda a, b: [a // 3, a % 3, a**2, a & b, a | b, a ^ b, ~a, a << 1],
        ((7, 5), (5,)),
        ("int32",),
    ),
    Row("divmod", lambda a, b: divmod(a, b + 3), ((7, 5), (7, 5)), ("float32", "int64", "float16")),
    Row("two results in two arrays", lambda a: np.modf(a, out=(a * 0, None)), ((7, 5),), FLOATS),
    Row("dtype", lambda a, b: np.add(a, b, dtype="complex128"), ((7, 5), (5,)), NUMBERS),
    Row("casting", lambda a: np.negative(a, dtype="int32", casting="unsafe"), ((7, 5),), ("float32",)),
    Row("casting that is refused", lambda a: np.negative(a, dtype="int32"), ((7, 5),), ("float64",)),
    Row("order", lambda a: np.negative(a, order="F", subok=False), ((7, 5),), FLOATS),
    Row("out", into(np.add), ((7, 5), (7, 5)), ("float64", "float32", "int32")),
    Row("out of more dimensions", into(lambda a, b, out: np.negative(a, out=out)), ((5,), (7, 5)), FLOATS),
    Row("out of fewer dimensions", into(lambda a, b, out: np.negative(a, out=out)), ((7, 5), (5,)), FLOATS),
    Row("out of a dtype that does not do", into(np.add, "int8"), ((7, 5), (7, 5)), FLOATS),
    Row("out that is an operand", in_place(lambda a, b: np.subtract(b, a, out=a)), ((7, 5), (7, 5)), NUMBERS),
    Row("in place", in_place(iadd), ((7, 5), (5,)), EVERY),
    Row("in place, of a larger shape", in_place(iadd), ((5,), (7, 5)), FLOATS),
    Row("in place twice", in_place(ipow), ((7, 5), (7, 5)), ("float32", "int32", "uint8")),
    Row("in place with its own transposed", in_place(lambda a: iadd(a, a.T)), ((5, 5),), FLOATS),
    Row("in place with its own reverse", in_place(lambda a: iadd(a, a[::-1])), ((9,),), FLOATS),
    Row("where and out", into(lambda a, b, out: np.add(a, b, where=b > 0, out=out)), ((7, 5), (7, 5)), FLOATS),
    Row("where that is plain", into(lambda a, out: np.add(a, 1, where=[True, False] * 2 + [True], out=out)), ((7, 5),)),
    Row("where alone is sharded", into(lambda a, out: np.add(1, 1, where=a > 0, out=out)), ((7, 5),), FLOATS),
    Row("where that is no mask", into(lambda a, out: np.add(a, 1, where=a, out=out)), ((7, 5),), FLOATS),
    Row("where of two results", lambda a: np.modf(a, where=a > 0, out=(a * 0, a * 0 + 1)), ((7, 5),), FLOATS),
    Row("outer", np.add.outer, ((7,), (5,)), NUMBERS),
    Row("outer", np.multiply.outer, ((3, 2), (2, 5)), NUMBERS),
    Row("outer with a list", lambda a: np.subtract.outer([1, 2], a), ((7, 2),), NUMBERS),
    Row("outer with a number", lambda a: np.subtract.outer(a, 3), ((7, 2),), NUMBERS),
    Row("at", in_place(lambda a: np.add.at(a, [0, 3, 3, -1], 2) or a), ((7, 5),), NUMBERS),
    Row("at places", in_place(lambda a, b: np.subtract.at(a, ([0, 6, 6], [1, 4, 4]), b) or a), ((7, 5), (3,)), FLOATS),
    Row("at slices", in_place(lambda a, b: np.multiply.at(a, (slice(1, None, 2), 2), b) or a), ((7, 5), (3,)), FLOATS),
    Row("at one place", in_place(lambda a: np.negative.at(a, 4) or a), ((7,),), FLOATS),
    Row("at no place", in_place(lambda a: np.add.at(a, 9, 1) or a), ((7,),), FLOATS),
    Row("at the mask", in_place(lambda a: np.add.at(a, a > 0, 1) or a), ((7, 5),), FLOATS),
    Row("a chain", lambda a, b: np.exp(-((a - b) ** 2)) / (1 + np.abs(a)), ((7, 5), (7, 5)), FLOATS),
    Row("real and imag", lambda a: [a.real, a.imag, a.conj()], ((7, 5),), ("complex64", "float64")),
]
