"""How parts become values: the order, the dtypes."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from ringlet import testing
from ringlet.collectives import Op
from ringlet.sharding.resharding.partial_combine import combine, identity

FLOATS = ["float16", "float32", "float64", "complex64", "longdouble"]
OTHERS = ["bool", "int8", "uint16", "int64", "m8[s]", "object"]
UFUNCS = {Op.SUM: np.add, Op.PROD: np.multiply, Op.MIN: np.minimum, Op.MAX: np.maximum}


def parts_of(dtype: str, count: int = 5) -> list[np.ndarray]:
    draw = np.random.default_rng(3)
    kind = "float64" if dtype in FLOATS else "int64"
    return [(draw.standard_normal((2, 3)) * 9).astype(kind).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize(
    ("dtype", "op"), [(dtype, op) for dtype in FLOATS + OTHERS for op in UFUNCS if (dtype, op) != ("m8[s]", Op.PROD)]
)
def test_parts_combine_as_numpy_does_for_every_dtype(dtype, op):
    parts = parts_of(dtype)
    out = np.empty((2, 3), parts[0].dtype)
    combine(parts, op, out)
    wanted = functools.reduce(UFUNCS[op], parts).astype(dtype)
    if dtype in FLOATS:
        np.testing.assert_allclose(out, wanted, rtol=2e-2 if dtype == "float16" else 1e-5)
    else:
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("count", range(1, 10))
@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble"])
def test_the_order_is_a_balanced_tree_that_collectives_have_too(dtype, count):
    parts = parts_of(dtype, count)
    out = np.empty((2, 3), dtype)
    combine(parts, Op.SUM, out)
    if dtype == "longdouble":
        while len(parts) > 1:
            parts = [sum(parts[i + 1 : i + 2], parts[i]) for i in range(0, len(parts), 2)]
        np.testing.assert_array_equal(out, parts[0])
    else:
        np.testing.assert_array_equal(out, testing.reduce_in_tree_order(parts, Op.SUM))


def test_nothing_is_combined_to_nothing():
    combine([np.empty((0, 3))] * 2, Op.SUM, np.empty((0, 3)))


def test_the_result_may_go_to_memory_with_gaps():
    out = np.zeros((4, 4))
    combine([np.ones((2, 4)), np.ones((2, 4))], Op.SUM, out[::2])
    assert out[:, 0].tolist() == [2, 0, 2, 0]


@pytest.mark.parametrize(
    ("dtype", "op"),
    [(dtype, op) for dtype in ("float32", "float64") for op in UFUNCS]
    + [("complex64", op) for op in (Op.SUM, Op.PROD)]
    + [(dtype, op) for dtype in ("bool", "int8", "uint32") for op in Op if op is not Op.MEAN],
)
def test_an_identity_changes_nothing(dtype, op):
    values = parts_of(dtype, 1)[0]
    out = np.empty_like(values)
    combine([values, np.full_like(values, identity(op, values.dtype))], op, out)
    np.testing.assert_array_equal(out, values)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e5m2"])
@pytest.mark.parametrize("op", [Op.MIN, Op.MAX])
def test_the_identity_of_a_format_without_infinity_is_its_largest_or_smallest_number(name, op):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name))
    assert identity(op, dtype) == testing.identity_of(op, dtype)
