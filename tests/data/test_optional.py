"""Values that may be missing."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset, DatasetSpec, NoneTensorSpec, Optional, PerReplicaSpec, TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.strategy import MirroredStrategy


def test_a_value_that_is_none_is_a_value():
    assert Optional(None).has_value()
    assert Optional(None).get_value() is None


def test_asking_an_empty_optional_for_its_value_is_an_error():
    with pytest.raises(InvalidArgumentError, match="has_value"):
        Optional().get_value()


def test_an_optional_holds_one_value():
    with pytest.raises(TypeError, match="got 2"):
        Optional(1, 2)


def test_the_spec_is_that_of_the_value():
    assert Optional({"x": np.zeros(3)}).element_spec == {"x": TensorSpec([3], np.float64)}


def test_optionals_are_made_of_values_and_of_specs():
    assert Optional.from_value((1, "a")).get_value() == (1, "a")
    empty = Optional.empty(TensorSpec([], np.int32))
    assert not empty.has_value()
    assert empty.element_spec == TensorSpec([], np.int32)
    with pytest.raises(InvalidArgumentError):
        empty.get_value()


def test_the_compat_spelling_holds_tensors_of_tensorflow_s_dtypes():
    one = tf.data.experimental.Optional.from_value((1, 2.0))
    assert [x.dtype for x in one.get_value()] == [tf.int32, tf.float32]
    assert isinstance(iter(tf.data.Dataset.range(1)).get_next_as_optional(), tf.data.experimental.Optional)


def test_the_optional_at_the_end_of_an_iterator_has_the_specs_of_its_elements():
    empty = iter(Dataset.range(0).map(lambda x: (x, None))).get_next_as_optional()
    assert empty.element_spec == (TensorSpec([], np.int64), NoneTensorSpec())
    tensors = iter(tf.data.Dataset.range(0)).get_next_as_optional()
    assert not tensors.has_value(name="a")
    assert tensors.element_spec == tf.TensorSpec([], tf.int64)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tensors.get_value(name="a")


def test_the_spec_of_none_and_of_datasets_is_known():
    assert Optional.from_value((1, None)).element_spec == (TensorSpec([], np.int64), NoneTensorSpec())
    assert Optional.from_value(Dataset.range(3)).element_spec == DatasetSpec(TensorSpec([], np.int64))


def test_the_optional_of_a_distributed_iterator_has_a_spec_for_each_replica():
    strategy = MirroredStrategy(["cpu:0", "cpu:1"])
    batches = Dataset.from_tensor_slices((np.arange(3), None)).batch(3)
    iterator = iter(strategy.experimental_distribute_dataset(batches))
    step, end = iterator.get_next_as_optional(), iterator.get_next_as_optional()
    nothing = PerReplicaSpec(NoneTensorSpec(), NoneTensorSpec())
    assert step.element_spec == (PerReplicaSpec(TensorSpec([2], np.int64), TensorSpec([1], np.int64)), nothing)
    assert not end.has_value()
    assert end.element_spec == iterator.element_spec


def test_the_compat_spelling_has_both_names():
    assert tf.experimental.Optional is tf.data.experimental.Optional
