"""Calls that are kept have the bits, the layout and the ownership of full ones."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, explain, mode, shard
from ringlet.sharding.execution import cached_calls

MESH = Mesh({"x": 4, "y": 2})
VALUES = np.random.default_rng(0).standard_normal((8, 12))
VALUES[0, :3] = -0.0, np.inf, np.nan


def combined(x):
    str(x)  # reads the values
    return x


CALLS = {
    "sum": lambda x: x.sum(),
    "sum of rows": lambda x: x.sum(axis=1),
    "sum of columns": lambda x: np.add.reduce(x, 0, keepdims=True),
    "max": lambda x: x.max(),
    "any": lambda x: (x > 0).any(1),
    "mean": np.mean,
    "norm": np.linalg.norm,
    "vdot": lambda x: np.vdot(x, x + 1),
    "vdot of long lines": lambda x: np.vdot(np.cos(y := x[4:, :, None] * np.arange(96)), np.sin(y)),
    "dot": lambda x: x.dot(x[0]),
    "inner": lambda x: np.inner(x[1], x[2]),
    "inner of every third": lambda x: np.inner(x[3, ::3], x[4, ::3]),
    "einsum": lambda x: np.einsum("ij,ij", x, x + 1),
    "tensordot": lambda x: np.tensordot(x, x + 1),
    "matvec": lambda x: x @ x[0],
    "vector product": lambda x: x[:, 3] @ x[:, 4],
    "product of a product": lambda x: x[:, 3] @ (x @ x[0]),
    "product of a combined product": lambda x: x[:, 3] @ combined(x @ x[0]),
    "copy": np.copy,
    "zeros": np.zeros_like,
    "ones": lambda x: np.ones_like(x[:, ::2]),
    "where": lambda x: np.where(x > 0, x, 2.5),
    "roll": lambda x: np.roll(x, (1, -2), (0, 1)),
    "clip": lambda x: np.clip(x, 0.0, 1.0),
    "concatenate": lambda x: np.concatenate([x, x], 1),
    "transpose": lambda x: x.T,
    "transpose of a column": lambda x: x[:, :1].T,
    "reshape": lambda x: x.reshape(4, -1),
    "astype": lambda x: x.astype(np.float32),
    "argmax": lambda x: x.argmax(1),
    "scaled sum": lambda x: x * (x.sum() / 3.0),
    "quotient of sums": lambda x: x.sum(1).sum() / np.sum(x * x),
}


@pytest.mark.parametrize("spec", [("x", "y"), ("y", "x"), (("x", "y"),)])
@pytest.mark.parametrize("name", CALLS)
def test_a_kept_call_has_the_bits_of_a_full_one(name, spec):
    sharding, call = MESH.sharding(*spec), CALLS[name]
    with mode("copy"):
        expected = call(shard(VALUES.copy(), sharding))
    x = shard(VALUES.copy(), sharding)
    with explain():  # a report is open, so nothing is kept
        full = call(x)
    for _ in range(3):
        made = call(x)
        assert (made.sharding, made.dtype, made._is_view) == (full.sharding, full.dtype, full._is_view)
        assert made._gathered().strides == full._gathered().strides
        np.testing.assert_array_equal(made._gathered(), expected._gathered())
        assert np.signbit(made._gathered()).tolist() == np.signbit(expected._gathered()).tolist()


PLANNED_ONCE = (
    "sum,where,roll,transpose,transpose of a column,matvec,vdot,dot,inner,einsum,tensordot,zeros,ones,"
    "product of a product,product of a combined product"
)


@pytest.mark.parametrize("name", PLANNED_ONCE.split(","))
def test_later_calls_plan_nothing(name, monkeypatch):
    x = shard(VALUES.copy(), MESH.sharding("x", "y"))
    CALLS[name](x)

    def refuse(*args, **kwargs):
        raise AssertionError("planned again")

    for module in ("execution.tile_execution.apply", "execution.array_function_table.recorded_as_one"):
        monkeypatch.setattr(f"ringlet.sharding.{module}", refuse)
    monkeypatch.setattr("ringlet.sharding.products.contraction.apply", refuse)
    CALLS[name](x)


def test_a_kept_view_does_not_change_with_its_source():
    x = shard(VALUES.copy(), MESH.sharding("x", "y"))
    for _ in range(2):
        turned = x.T
        x[0, 0] += 1
        assert turned[0, 0] == x[0, 0] - 1
        with pytest.raises(ShardingError, match="read-only"):
            turned[0, 0] = 2


def test_a_kept_call_reads_the_given_numbers():
    x = shard(VALUES.copy(), MESH.sharding("x", "y"))
    for low in (0.5, 1.5):
        np.testing.assert_array_equal(np.clip(x, low, 2.0), np.clip(VALUES, low, 2.0))
    for order in (1.5, 2.5):
        assert float(np.linalg.norm(x[1:], order, 0).sum()) == pytest.approx(np.linalg.norm(VALUES[1:], order, 0).sum())
    for shift in (1, True, 2):
        np.testing.assert_array_equal(np.roll(x, shift, 0), np.roll(VALUES, shift, 0))


def test_kept_calls_keep_no_array_alive():
    x = shard(VALUES.copy(), MESH.sharding("x", "y"))
    for call in CALLS.values():
        call(x)
    assert any(call is not None for call in cached_calls._calls.values())
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None
