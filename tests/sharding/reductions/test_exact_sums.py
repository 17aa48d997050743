"""Sums under ``deterministic("tiling")`` have the same bits however arrays are divided."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ringlet.sharding import Mesh, Sharding, deterministic, explain, mode, shard, strict

SHARDINGS = [
    Sharding.replicated(1),
    Mesh({"x": 2, "y": 2}).sharding("x", "y"),
    Mesh({"x": 3}).sharding(None, "x"),
    Mesh({"x": 8}).sharding("x"),
]
NUMBERS = np.random.default_rng(0)
VALUES = NUMBERS.standard_normal((40, 60)) * 10.0 ** NUMBERS.integers(-12, 12, (40, 60))

CALLS = {
    "sum": np.sum,
    "rows": lambda x: x.sum(axis=1, keepdims=True),
    "columns": lambda x: np.add.reduce(x, 0),
    "mean": lambda x: np.mean(x, 0),
    "nansum": lambda x: np.nansum(np.where(x > 1e6, np.nan, x), 1),
    "where": lambda x: np.sum(x, 0, where=x > 0, initial=3.0),
    "float32": lambda x: np.sum(x.astype(np.float32), 1),
    "complex": lambda x: np.sum(x + 1j * x[:, ::-1], 0),
    "huge": lambda x: np.sum(x * 1e294),
    "infinite": lambda x: np.sum(np.where(x > 1e11, np.inf, np.where(x < -1e12, -np.inf, x)), 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_sums_have_the_same_bits_in_any_tiling(name):
    found = set()
    for sharding in SHARDINGS:
        for array in (VALUES, np.asfortranarray(VALUES)):
            with deterministic("tiling"), strict():
                found.add(CALLS[name](shard(array.copy(order="K"), sharding)).tobytes())
        with mode("copy"), deterministic("tiling"):
            made = CALLS[name](shard(VALUES.copy(), sharding))
            found.add(made.tobytes())
    assert len(found) == 1
    expected = CALLS[name](VALUES)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(made._gathered(), expected, rtol=1e-5 if name == "float32" else 1e-10)


def test_sums_are_within_a_unit_of_the_exact_sum():
    values = np.concatenate([VALUES.ravel(), -VALUES.ravel()[:2000]])
    with deterministic("tiling"):
        total = float(shard(values, Sharding.tiled((3,))).sum())
    assert abs(total - math.fsum(values)) <= math.ulp(total)


def test_usual_sums_depend_on_the_tiling():
    assert len({float(shard(VALUES, sharding).sum()) for sharding in SHARDINGS}) > 1
    with deterministic("tiling"), deterministic(None):
        assert shard(VALUES, SHARDINGS[1]).sum().tobytes() == shard(VALUES, SHARDINGS[1]).sum().tobytes()


def test_the_sum_is_one_operation_in_a_report():
    with explain() as report, deterministic("tiling"):
        shard(VALUES, SHARDINGS[3]).sum()
    assert [operation.name for operation in report.operations] == ["sum"]
    assert report.nbytes == 4 * 2 * 7 * 8


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'mesh' is not a kind of determinism: expected 'tiling'"):
        deterministic("mesh").__enter__()
