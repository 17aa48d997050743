"""Products of vectors and matrices, under all their names."""

from __future__ import annotations

import numpy as np

from tests.sharding.sweep import NUMBERS, Row

MATMUL = Row("matmul", lambda a, b: a @ b, ((7, 5), (5, 6)), NUMBERS, length=5)
DOT = Row("dot", np.dot, ((7, 5), (5, 6)), NUMBERS, length=5)
INNER = Row("inner", np.inner, ((7, 5), (3, 5)), NUMBERS, length=5)


def einsum(subscripts, *shapes, length=0, **options):
    """Return the row of an einsum."""
    return Row(subscripts, lambda *arrays: np.einsum(subscripts, *arrays, **options), shapes, NUMBERS, length=length)


ROWS = [
    MATMUL,
    Row("matmul of halves", np.matmul, ((7, 5), (5, 6)), ("float16", "bool", "int8"), length=5),
    MATMUL.on((3, 7, 5), (5, 6)),
    MATMUL.on((3, 7, 5), (3, 5, 6)),
    MATMUL.on((2, 1, 7, 5), (3, 5, 6)),
    MATMUL.on((5,), (5, 6)),
    MATMUL.on((7, 5), (5,)),
    MATMUL.on((9,), (9,)),
    MATMUL.on((3, 4, 5), (5,)),
    MATMUL.on((7, 0), (0, 6)),
    MATMUL.on((0, 5), (5, 6)),
    MATMUL.on((1, 1), (1, 1)),
    MATMUL.on((7, 5), (4, 6)),
    MATMUL.on((), (5, 6)),
    Row("matmul of a transposed", lambda a, b: a.T @ b.T, ((5, 7), (6, 5)), NUMBERS, length=5),
    Row("matmul as float64", lambda a, b: np.matmul(a, b, dtype="float64"), ((7, 5), (5, 6)), ("float32",), length=5),
    Row("matmul along axes", lambda a, b: np.matmul(a, b, axes=[(0, 1), (1, 0), (1, 0)]), ((7, 5), (6, 5)), length=5),
    Row("a square of itself", lambda a: a @ a, ((5, 5),), NUMBERS, length=5),
    Row("a chain", lambda a, b, c: a @ b @ c, ((4, 7), (7, 5), (5, 3)), NUMBERS, length=35),
    Row("multi_dot", lambda *x: np.linalg.multi_dot(x), ((4, 7), (7, 5), (5, 3)), NUMBERS, length=35),
    Row("multi_dot", lambda *x: np.linalg.multi_dot(x), ((7,), (7, 5), (5,)), NUMBERS, length=35),
    Row("matrix_power", lambda a: np.linalg.matrix_power(a, 5), ((5, 5),), ("int64", "uint8")),
    Row("vecdot", np.vecdot, ((4, 5), (4, 5)), ("complex64", "float32", "int64"), length=5),
    Row("vecdot along 0", lambda a, b: np.vecdot(a, b, axis=0), ((5, 4), (5, 4)), length=5),
    *(Row("matvec", np.matvec, ((3, 7, 5), (3, 5)), NUMBERS, length=5) for _ in [1] if hasattr(np, "matvec")),  # 2.2
    *(Row("vecmat", np.vecmat, ((3, 5), (5, 6)), NUMBERS, length=5) for _ in [1] if hasattr(np, "vecmat")),
    DOT,
    DOT.on((3, 4, 5), (2, 5, 6)),
    DOT.on((9,), (9,)),
    DOT.on((7, 5), (5,)),
    DOT.on((), (5, 6)),
    DOT.on((7, 5), (7, 5)),
    INNER,
    INNER.on((3, 4, 5), (2, 5)),
    INNER.on((3, 4), ()),
    INNER.on((9,), (9,)),
    Row("vdot", np.vdot, ((4, 5), (4, 5)), NUMBERS, length=20),
    Row("vdot", np.vdot, ((4, 5), (5, 4)), NUMBERS, length=20),
    Row("outer", np.outer, ((7,), (5,)), NUMBERS, length=1),
    Row("outer", np.outer, ((2, 3), (5,)), NUMBERS, length=1),
    Row("kron", np.kron, ((2, 3), (3, 2)), NUMBERS, length=1),
    Row("kron", np.kron, ((3,), (2, 3)), NUMBERS, length=1),
    Row("tensordot", np.tensordot, ((3, 4, 5), (4, 5, 2)), NUMBERS, length=20),
    # Which factor a BLAS takes first decides about the last bit of a complex product where it fuses sums.
    Row("tensordot 0", lambda a, b: np.tensordot(a, b, 0), ((3, 2), (4,)), NUMBERS, length=1),
    Row("tensordot of pairs", lambda a, b: np.tensordot(a, b, ([0, 2], [1, 0])), ((3, 4, 5), (5, 3, 2)), length=15),
    Row("tensordot refused", lambda a, b: np.tensordot(a, b, 2), ((3, 4, 5), (5, 4, 2))),
    Row("diagonal", np.diagonal, ((6, 5),)),
    Row("diagonal above", lambda x: np.diagonal(x, 1, 0, 2), ((4, 3, 6),)),
    Row("diagonal below", lambda x: np.diagonal(x, -2), ((5, 4),)),
    Row("trace", np.trace, ((6, 5),), NUMBERS, length=5),
    Row("trace above", lambda x: np.trace(x, 1), ((6, 5),), NUMBERS, length=5),
    einsum("ij->ji", (4, 5)),
    einsum("ij->", (7, 5), length=35),
    einsum("ij->j", (7, 5), length=7),
    einsum("ii", (5, 5), length=5),
    einsum("ii->i", (5, 5)),
    einsum("iji->ji", (5, 3, 5)),
    einsum("ij,jk", (7, 5), (5, 6), length=5),
    einsum("ij,jk->ki", (7, 5), (5, 6), length=5),
    einsum("ij,ij->ij", (7, 5), (7, 5), length=1),
    einsum("ij,ij->i", (7, 5), (7, 5), length=5),
    einsum("i,j->ji", (7,), (5,), length=1),
    einsum("ij,kl->il", (3, 4), (5, 2), length=20),
    einsum("bij,bjk->bik", (3, 4, 5), (3, 5, 2), length=5),
    einsum("bhqd,bhkd->bhqk", (2, 2, 5, 3), (2, 2, 4, 3), length=3),
    einsum("...ij,...jk", (3, 4, 5), (5, 2), length=5),
    einsum("...i->...", (3, 4, 5), length=5),
    einsum("i...,i...->...", (3, 4), (3, 1), length=3),
    einsum("ij,jk,kl->il", (4, 7), (7, 5), (5, 3), length=35),
    einsum("ij,jk,kl->il", (4, 7), (7, 5), (5, 3), length=35, optimize=True),
    einsum("ij,j,kl,l->ik", (4, 7), (7,), (3, 5), (5,), length=35),
    einsum("ii,ij->j", (5, 5), (5, 4), length=5),
    einsum("ij,jk", (7, 1), (5, 6), length=5),
    einsum("ij,jk", (7, 4), (5, 6)),
    einsum(",ij->ij", (), (5, 6), length=1),
    einsum("ij->ik", (5, 6)),
    Row("einsum of lists", lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]), ((7, 5), (5, 6)), length=5),
]
