"""Tiles of a tensor as views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.errors import PartitionError
from ringlet.sharding import tile_views

grids = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), max_size=5)  # parts, size of a tile


@given(grid=grids, order=st.sampled_from("CF"))
def test_tiles_are_row_major_views_that_cover_the_tensor_once(grid: list[tuple[int, int]], order: Any) -> None:
    parts = [p for p, _ in grid]
    shape = [p * size for p, size in grid]
    tensor = np.arange(math.prod(shape)).reshape(shape).copy(order=order)
    tiles = tile_views(tensor, parts)
    assert len(tiles) == math.prod(parts)
    for tile, index in zip(tiles, np.ndindex(*parts), strict=True):
        where = tuple(slice(i * size, (i + 1) * size) for i, (_, size) in zip(index, grid, strict=True))
        np.testing.assert_array_equal(tile, tensor[where])
        assert tile.size == 0 or np.shares_memory(tile, tensor)


def test_what_is_written_to_a_tile_is_seen_in_the_tensor() -> None:
    tensor = np.zeros((4, 6))
    for number, tile in enumerate(tile_views(tensor, (2, 3))):
        tile[...] = number
    assert tensor.tolist() == [[0, 0, 1, 1, 2, 2]] * 2 + [[3, 3, 4, 4, 5, 5]] * 2


@pytest.mark.parametrize("dtype", ["float16", "U3", object, [("a", "i4"), ("b", "f8")], ">f8", bool])
def test_any_dtype_and_layout_can_be_cut(dtype: Any) -> None:
    tensor = np.zeros((9, 8, 3), dtype)[::-2, ::2].transpose(1, 0, 2)[:, :4]
    for tile, expected in zip(tile_views(tensor, (2, 1, 1)), (tensor[:2], tensor[2:]), strict=True):
        assert tile.dtype == tensor.dtype
        assert tile.strides == tensor.strides
        assert tile.__array_interface__["data"] == expected.__array_interface__["data"]


def test_tiles_of_a_read_only_tensor_are_read_only() -> None:
    tile = tile_views(np.broadcast_to(1.0, (4, 4)), (2, 2))[3]
    with pytest.raises(ValueError, match="read-only"):
        tile[0, 0] = 2


def test_tiles_keep_the_memory_alive() -> None:
    tiles = tile_views(np.arange(8), (4,))
    assert [tile.tolist() for tile in tiles] == [[0, 1], [2, 3], [4, 5], [6, 7]]


def test_a_scalar_is_one_tile() -> None:
    assert [tile.item() for tile in tile_views(np.array(5), ())] == [5]


BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ((4, 6), (3, 2), PartitionError, r"dimension 0 of shape \(4, 6\) into 3 equal tiles: 4 is not .*to 6"),
    ((4, 6), (2,), PartitionError, r"has 2 dimensions and partition_dimensions 1 entries"),
    ((4, 6), (2, 0), PartitionError, "into 0 tiles"),
    ((4, 6), (2, -2), PartitionError, "into -2 tiles"),
    ((4, 6), (2, 1.5), PartitionError, "expected a sequence of 2 integers"),
    ((4, 6), 4, PartitionError, "expected a sequence of 2 integers"),
    ((4,), (2**62,), PartitionError, "is not a multiple"),
]


@pytest.mark.parametrize(("shape", "parts", "error", "message"), BAD)
def test_a_cut_that_is_impossible_says_what_is_possible(shape: Any, parts: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tile_views(np.zeros(shape), parts)


def test_only_arrays_can_be_viewed() -> None:
    with pytest.raises(TypeError, match="cannot divide a list into views: expected an ndarray"):
        tile_views([[1, 2]], (1, 1))  # type: ignore[arg-type]
