"""The node behind `from_tensor_slices` and `range`."""

from __future__ import annotations

import numpy as np

from ringlet.data import Dataset
from ringlet.data.graph.sources import Elements, TableRows
from ringlet.data.graph.table import row_count


def test_rows_come_in_slices_until_they_end():
    rows = TableRows(5)
    found = [rows.next_rows(count) for count in (2, 0, 2, 7, 7)]
    assert found[:4] == [slice(0, 2), slice(2, 2), slice(2, 4), slice(4, 5)]
    assert row_count(found[4]) == 0


def test_the_example_of_an_empty_source_has_the_shape_of_a_row():
    source = Dataset.from_tensor_slices({"x": np.zeros((0, 3), np.float32), "y": np.zeros(0, np.int8)})
    example = source.node.example
    assert example["x"].shape == (3,)
    assert type(example["y"]) is np.int8


def test_functions_are_tried_on_empty_text_where_there_is_no_row():
    dataset = Dataset.from_tensor_slices(np.empty((0, 2), object)).map(lambda x: x[::-1])
    assert dataset.element_spec.shape == (2,)
    assert Dataset.from_tensor_slices(np.empty(0, object)).map(lambda x: x).element_spec.dtype == object


def test_they_are_given_in_order_every_time():
    dataset = Dataset(Elements((np.int64(3), np.int64(5))))
    assert list(dataset.repeat(2)) == [3, 5, 3, 5]
    assert len(dataset) == 2


def test_an_iterator_goes_on_where_it_was_saved():
    dataset = Dataset(Elements(tuple(map(np.int64, range(5)))))
    first, second = iter(dataset), iter(dataset)
    next(first), next(first)
    second.set_state(first.get_state())
    assert list(second) == [2, 3, 4]
