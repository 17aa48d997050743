"""What a replica gets that has no data."""

from __future__ import annotations

import numpy as np

from ringlet.data import Dataset, TensorSpec
from ringlet.data.distribution.element_distribution import empty_part
from ringlet.data.graph.spec_inference import known_spec


def test_an_empty_part_has_the_structure_and_no_rows():
    node = Dataset.from_tensor_slices({"x": np.zeros((5, 3), np.int8), "y": np.zeros(5)}).batch(2).node
    for present in (None, {"x": np.zeros((2, 3), np.int8), "y": np.zeros(2)}):
        part = empty_part(node, present)
        assert (part["x"].shape, part["x"].dtype, part["y"].shape) == ((0, 3), np.int8, (0,))
        assert not part["x"].flags.writeable


def test_sizes_that_are_not_known_are_zero():
    node = Dataset.range(4).batch(2).batch(2).node
    assert node.element_spec == TensorSpec([None, None], np.int64)
    assert empty_part(node, None).shape == (0, 0)


def test_scalars_are_zeros_and_text_is_empty():
    node = Dataset.from_tensor_slices((np.arange(3), np.array([b"a"] * 3, object))).node
    assert empty_part(node, None) == (0, b"")


def test_what_can_be_read_once_is_known_from_another_replica():
    node = Dataset.from_iterable(iter([np.zeros((2, 3), np.int8)])).node
    assert known_spec(node) is None
    part = empty_part(node, (np.zeros((2, 3), np.int8), np.int64(4)))
    assert (part[0].shape, part[0].dtype, part[1]) == ((0, 3), np.int8, 4)


def test_an_unknown_number_of_dimensions_is_known_from_another_replica():
    node = Dataset.from_generator(lambda: [], (np.int64, np.int64)).node
    rows, scalar = empty_part(node, (np.zeros((2, 3), np.int64), np.int64(4)))
    assert (rows.shape, rows.dtype, scalar) == ((0, 3), np.int64, 0)


def test_arrays_of_other_libraries_are_cut_from_another_replica():
    class Tensor:
        shape = (2, 3)

        def __getitem__(self, rows):
            return "rows of a tensor", rows

    node = Dataset.from_tensor_slices(np.zeros((2, 3))).batch(2).node
    assert empty_part(node, Tensor()) == ("rows of a tensor", slice(None, 0))
