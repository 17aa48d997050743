"""Functions that rotate, reshape, join, split, repeat and pad arrays: bit for bit as in NumPy."""

from __future__ import annotations

import numpy as np

from tests.sharding.sweep import EVERY, Row

SHAPE = (7, 5)


def of(name, compute, *shapes):
    """Return a row for values of any dtype."""
    return Row(name, compute, shapes or (SHAPE,), EVERY)


def reshape(before, after):
    """Return the row of a reshape."""
    return of(f"reshape to {after}", lambda x: np.reshape(x, after), before)


TURNS = [
    of("transpose", np.transpose),
    of("transpose of three", lambda x: np.transpose(x, (2, 0, 1)), (3, 4, 5)),
    of("T", lambda x: x.T),
    of("swapaxes", lambda x: np.swapaxes(x, 0, -1)),
    of("moveaxis", lambda x: np.moveaxis(x, [0, 1], [-1, 0]), (3, 4, 5)),
    of("rollaxis", lambda x: np.rollaxis(x, 2), (3, 4, 5)),
    of("no such axis", lambda x: np.swapaxes(x, 0, 2)),
    of("squeeze", np.squeeze, (1, 5, 1)),
    of("squeeze one", lambda x: np.squeeze(x, 0), (1, 5, 1)),
    of("squeeze what is wide", lambda x: np.squeeze(x, 1), (1, 5, 1)),
    of("expand_dims", lambda x: np.expand_dims(x, (0, -1))),
    of("atleast_1d", np.atleast_1d, ()),
    of("atleast_2d", np.atleast_2d, (5,)),
    of("atleast_3d", np.atleast_3d),
    of("broadcast_to", lambda x: np.broadcast_to(x, (3, 7, 5)), (7, 1)),
    of("broadcast_arrays", np.broadcast_arrays, (7, 1), (5,)),
    of("meshgrid", np.meshgrid, (7,), (5,)),
    of("flip", np.flip),
    of("flip one", lambda x: np.flip(x, 1)),
    of("flipud", np.flipud),
    of("fliplr", np.fliplr),
    of("rot90", lambda x: np.rot90(x, 3)),
    of("flip nothing", np.flip, (0, 5)),
]

RESHAPES = [
    reshape((8, 4), (32,)),
    reshape((8, 4), (4, 8)),
    reshape((32,), (4, 8)),
    reshape((4, 8), (4, 2, -1)),
    reshape((10,), (5, 2)),
    reshape((9, 7), (7, 9)),
    reshape((9, 7), (3, 21)),
    reshape((2, 3, 4), (4, 3, 2)),
    reshape((2, 12), (8, 3)),
    reshape((1, 8, 1), (8,)),
    reshape((8,), (1, 2, 4, 1)),
    reshape((0, 4), (2, 0)),
    reshape((1, 1), ()),
    reshape((), (1, 1)),
    reshape((7, 5), (6, 6)),
    of("reshape of a transposed", lambda x: x.T.reshape(-1), (8, 6)),
    of("reshape in columns", lambda x: np.reshape(x, (5, 7), order="F")),
    of("ravel", np.ravel),
    of("ravel as in memory", lambda x: np.ravel(x.T, order="K")),
    of("ravel of columns", lambda x: np.ravel(x.T, order="A")),
]

JOINS = [
    of("concatenate", lambda x, y: np.concatenate([x, y]), (7, 5), (4, 5)),
    of("concatenate rows", lambda x, y: np.concatenate((x, y), axis=-1), (7, 5), (7, 3)),
    of("concatenate all", lambda x, y: np.concatenate([x, y], axis=None), (3, 2), (4,)),
    of("concatenate one", lambda x: np.concatenate([x])),
    of("concatenate an array's rows", np.concatenate),
    of("concatenate with numbers", lambda x: np.concatenate([x, np.ones((1, 5), x.dtype), x[:2]])),
    of("concatenate as float64", lambda x: np.concatenate([x, x], dtype="complex128")),
    of("concatenate what does not fit", lambda x, y: np.concatenate([x, y]), (7, 5), (4, 6)),
    of("stack", lambda x, y: np.stack([x, y], axis=1), SHAPE, SHAPE),
    of("stack what does not fit", lambda x, y: np.stack([x, y]), SHAPE, (5, 7)),
    of("vstack", lambda x, y: np.vstack([x, y]), (5,), (3, 5)),
    of("hstack", lambda x, y: np.hstack([x, y]), (7,), (4,)),
    of("dstack", lambda x, y: np.dstack([x, y]), SHAPE, SHAPE),
    of("column_stack", lambda x, y: np.column_stack([x, y]), (7,), (7, 2)),
    of("append", lambda x, y: np.append(x, y, axis=0), (7, 5), (1, 5)),
    of("block", lambda x, y: np.block([[x, y], [y, x]]), (3, 2), (3, 2)),
    of("array_split", lambda x: np.array_split(x, 3)),
    of("split at", lambda x: np.split(x, [2, 4], axis=1)),
    of("split unevenly", lambda x: np.split(x, 2)),
    of("hsplit", lambda x: np.hsplit(x, 2), (3, 4)),
]

REPEATS = [
    of("roll", lambda x: np.roll(x, 1, axis=0)),
    of("roll far", lambda x: np.roll(x, (-9, 2), axis=(0, 1))),
    of("roll all", lambda x: np.roll(x, 3)),
    of("roll nothing", lambda x: np.roll(x, 3, axis=0), (0, 5)),
    of("tile", lambda x: np.tile(x, (2, 1, 3))),
    of("repeat", lambda x: np.repeat(x, 3, axis=0)),
    of("repeat each", lambda x: np.repeat(x, [2, 0, 1, 3, 1], axis=1)),
    of("repeat all", lambda x: np.repeat(x, 2)),
    of("pad", lambda x: np.pad(x, ((1, 2), (3, 0)))),
    of("pad with values", lambda x: np.pad(x, 2, constant_values=((1, 2), (3, 4)))),
    of("pad in one number", lambda x: np.pad(x, 1)),
    of("pad with edges", lambda x: np.pad(x, ((2, 1), (0, 3)), mode="edge")),
    of("pad reflected", lambda x: np.pad(x, 3, mode="reflect")),
    of("pad symmetrically", lambda x: np.pad(x, ((9, 8), (1, 1)), mode="symmetric")),
    of("pad wrapped", lambda x: np.pad(x, 2, mode="wrap")),
]

ROWS = TURNS + RESHAPES + JOINS + REPEATS
