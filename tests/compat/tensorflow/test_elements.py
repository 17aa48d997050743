"""Elements on their way to users are tensors, and on their way back plain arrays."""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from ringlet.compat import tf
from ringlet.compat.tensorflow.elements import as_arrays, as_plain, as_tensors, with_tensors
from ringlet.values import PerReplica

Point = namedtuple("Point", "x y")


def test_arrays_numbers_and_texts_become_tensors_at_any_depth():
    element = as_tensors(Point({"a": np.arange(2)}, (np.float32(1.5), "text")))
    assert isinstance(element, Point)
    assert [type(leaf) for leaf in (element.x["a"], *element.y)] == [tf.Tensor] * 3
    assert [leaf.dtype for leaf in (element.x["a"], *element.y)] == [tf.int64, tf.float32, tf.string]


def test_components_of_distributed_values_become_tensors():
    value = as_tensors({"a": PerReplica([np.arange(2), np.arange(1)])})["a"]
    assert type(value) is PerReplica
    assert [component.tolist() for component in value.values] == [[0, 1], [0]]
    assert all(isinstance(component, tf.Tensor) for component in value.values)


def test_tensors_become_the_arrays_that_they_are():
    tensor = tf.constant([1.0, 2.0])
    array, number = as_arrays((tensor, 3))
    assert type(array) is np.ndarray
    assert np.shares_memory(array, tensor)
    assert number.dtype == np.int32


def test_what_is_no_value_stays_itself():
    marker = object()
    assert as_tensors((marker, None)) == (marker, None)
    assert as_arrays((marker, None)) == (marker, None)
    assert as_plain([tf.constant(1), marker])[1] is marker


def test_a_function_of_tensors_keeps_its_name():
    def double(x, *, factor):
        assert isinstance(x, tf.Tensor)
        return x * factor

    plain = with_tensors(double)
    assert plain.__name__ == "double"
    assert plain(np.int32(2), factor=3).tolist() == 6
