"""tf.TensorSpec is ringlet's, with float32 as its dtype unless another one is given."""

from __future__ import annotations

import ringlet
from ringlet.compat import tf


def test_a_spec_is_one_of_ringlet_s():
    spec = tf.TensorSpec([None, 3], name="x")
    assert spec == ringlet.data.TensorSpec([None, 3], "float32")
    assert isinstance(spec, tf.TensorSpec)
    assert tf.TensorSpec(3) == tf.TensorSpec([3]) == tf.TensorSpec.from_tensor(tf.constant([1.0, 2.0, 3.0]))
    assert tf.TensorSpec(shape=[], dtype=float) == tf.TensorSpec([], tf.float32)


def test_the_spec_of_a_dataset_is_an_instance():
    assert isinstance(tf.data.Dataset.range(3).element_spec, tf.TensorSpec)
    assert tf.data.Dataset.range(3).element_spec == tf.TensorSpec([], tf.int64)
