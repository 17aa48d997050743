"""Look-ups under TensorFlow's name."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from tests.values.tables import sharded

VALUE = np.arange(14, dtype=np.float32).reshape(7, 2)


@pytest.mark.parametrize(
    "table",
    [
        VALUE,
        tf.constant(VALUE),
        tf.Variable(VALUE),
        sharded(VALUE, [4, 3]),
        sharded(VALUE, [4, 3]).variables,
        [tf.Variable(VALUE)],
        [VALUE[:4], VALUE[4:]],
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_look_up_in_any_kind_of_table_gives_a_tensor(table):
    found = tf.nn.embedding_lookup(table, tf.constant([[6, 0]]))
    assert isinstance(found, tf.Tensor)
    np.testing.assert_array_equal(found, VALUE[[[6, 0]]])


def test_parts_of_any_numbers_of_rows_follow_each_other():
    parts = [tf.Variable(part) for part in np.split(VALUE, [1, 5])]
    np.testing.assert_array_equal(tf.nn.embedding_lookup(parts, [6, 1, 0]), VALUE[[6, 1, 0]])


def test_a_table_may_be_a_list_of_numbers():
    np.testing.assert_array_equal(tf.nn.embedding_lookup([1.0, 2.0], [1]), [2.0])


def test_rows_are_cut_to_a_length():
    np.testing.assert_allclose(tf.nn.embedding_lookup(VALUE, [1], max_norm=0.5), [[0.27735, 0.41603]], rtol=1e-4)


def test_what_else_tensorflow_has_says_what_to_use():
    with pytest.raises(AttributeError, match=r"ringlet has no tf\.nn\.conv2d: use your framework's models"):
        tf.nn.conv2d  # noqa: B018  # what is refused
