from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.sharding.products.product_kernel import sum_along, sum_of_products

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1}


def array(labels: str, seed: int) -> np.ndarray:
    """Small whole numbers, of sizes by their labels."""
    return np.random.default_rng(seed).integers(-9, 9, [SIZES[label] for label in labels]).astype(float)


@st.composite
def products(draw):
    """Labels of two operands and of a result, in any order."""
    one, other = (draw(st.permutations("abcde"))[: draw(st.integers(0, 5))] for _ in range(2))
    known = sorted({*one, *other})
    return "".join(one), "".join(other), "".join(draw(st.permutations(known))[: draw(st.integers(0, len(known)))])


@given(labels=products(), order=st.sampled_from("CF"))
def test_any_product_is_the_einsum_of_its_labels(labels, order):
    a, b = array(labels[0], 1), array(labels[1], 2)
    out = np.full([SIZES[label] for label in labels[2]], np.nan, order=order)
    sum_of_products(a, b, tuple(map(tuple, labels)), out)
    np.testing.assert_array_equal(out, np.einsum(f"{labels[0]},{labels[1]}->{labels[2]}", a, b))


@given(labels=st.permutations("abcde"), count=st.integers(0, 5))
def test_a_sum_is_the_einsum_of_one_operand(labels, count):
    x = array("abcde", 0)
    out = np.empty([SIZES[label] for label in labels[:count]])
    sum_along(x, tuple("abcde"), tuple(labels[:count]), out)
    np.testing.assert_array_equal(out, np.einsum(f"abcde->{''.join(labels[:count])}", x))


@pytest.mark.parametrize(("a", "b"), [((1, 3), (2, 3)), ((2, 3), (2, 1)), ((1, 1), (2, 3))])
def test_dimensions_of_size_one_are_repeated(a, b):
    out = np.empty((2, 3))
    sum_of_products(np.ones(a), np.ones(b), (("i", "j"), ("i", "j"), ("i", "j")), out)
    np.testing.assert_array_equal(out, np.ones((2, 3)))
    total = np.empty(())
    sum_of_products(np.ones(a), np.ones(b), (("i", "j"), ("i", "j"), ()), total)
    assert total == 6


def test_operands_are_multiplied_in_the_dtype_of_the_result():
    out = np.empty((1, 1))
    sum_of_products(
        np.full((1, 2), 100, np.int8), np.full((2, 1), 100, np.int8), (("i", "j"), ("j", "k"), ("i", "k")), out
    )
    assert out == 20000


@pytest.mark.parametrize("shapes", [((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0))])
def test_sums_of_nothing_are_zero(shapes):
    a, b = map(np.ones, shapes)
    out = np.full((shapes[0][0], shapes[1][1]), np.nan)
    sum_of_products(a, b, (("i", "j"), ("j", "k"), ("i", "k")), out)
    np.testing.assert_array_equal(out, a @ b)


def test_a_view_of_a_larger_array_is_written_to():
    space = np.zeros((4, 6))
    sum_of_products(np.ones((2, 5)), np.ones((5, 3)), (("i", "j"), ("j", "k"), ("i", "k")), space[1:3, 2:5])
    assert (space.sum(), space[1:3, 2:5].sum()) == (30, 30)
