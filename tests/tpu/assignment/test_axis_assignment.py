"""Axis assignments: the products of rows and columns are the shapes, and the busiest axis has the most."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.tpu.assignment.axis_assignment import assign_axes, lay_out


@st.composite
def meshes(draw):
    """Physical lengths, and logical ones with the same product."""
    physical = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 8, 14, 20]), min_size=1, max_size=4))
    mesh = [1] * draw(st.integers(1, 4))
    for prime in (2, 3, 5, 7):
        left = math.prod(physical)
        while left % prime == 0:
            left //= prime
            mesh[draw(st.integers(0, len(mesh) - 1))] *= prime
    return tuple(physical), tuple(mesh)


@given(meshes())
def test_rows_multiply_to_the_chips_and_columns_to_the_mesh(shapes):
    physical, mesh = shapes
    matrix = assign_axes(physical, mesh, allow_split=True)
    assert tuple(matrix.prod(1)) == physical
    assert tuple(matrix.prod(0)) == mesh


@given(meshes())
def test_every_place_is_in_the_mesh_once(shapes):
    physical, mesh = shapes
    places = np.arange(math.prod(physical)).reshape(*physical, 1)
    laid = lay_out(places, assign_axes(physical, mesh, allow_split=True), mesh)
    assert laid.shape == (*mesh, 1)
    assert sorted(laid.ravel().tolist()) == list(range(math.prod(physical)))


@pytest.mark.parametrize(
    ("physical", "mesh", "matrix"),
    [
        ((2, 2, 4), (2, 8), [[1, 2], [2, 1], [1, 4]]),
        ((2, 2, 4), (4, 2, 2), [[1, 1, 2], [1, 2, 1], [4, 1, 1]]),
        ((4, 4, 8), (4, 32), [[1, 4], [4, 1], [1, 8]]),
        # JAX does not split an axis with a prime factor as large as 7.
        ((2, 28), (7, 8), [[1, 2], [7, 4]]),
    ],
)
def test_the_busiest_axis_takes_the_most_axes_of_chips(physical, mesh, matrix):
    assert assign_axes(physical, mesh, allow_split=True).tolist() == matrix


def test_axes_are_not_split_unless_that_is_allowed():
    with pytest.raises(
        NotImplementedError, match=r"(?s)index 1 of size 8 .*mesh \[4, 4, 4\].*allow_split_physical_axes"
    ):
        assign_axes((4, 4, 4), (8, 8))
    assert assign_axes((4, 4, 4), (8, 8), allow_split=True).tolist() == [[1, 4], [2, 2], [4, 1]]


def test_of_a_shared_axis_the_later_one_has_neighbours():
    laid = lay_out(np.arange(16).reshape(16, 1), np.array([[4, 4]]), (4, 4))[..., 0]
    assert laid[0].tolist() == [0, 1, 2, 3]
