"""Values that may be missing."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset, DatasetSpec, NoneTensorSpec, Optional, OptionalSpec, PerReplicaSpec, TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy


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


def odd(x):
    return Optional.from_value(x) if x % 2 else Optional.empty(TensorSpec([], np.int64))


ODD = Dataset.range(4).map(odd)


@pytest.mark.parametrize(
    "dataset",
    [
        ODD,
        ODD.cache(),
        ODD.shuffle(1),
        ODD.prefetch(2),
        ODD.filter(lambda _: True),
        ODD.window(4).flat_map(lambda window: window),
        ODD.take(2).concatenate(ODD.skip(2)),
        ODD.map(lambda optional: optional),
    ],
)
def test_optionals_are_elements(dataset):
    assert dataset.element_spec == OptionalSpec(TensorSpec([], np.int64))
    found = [optional.get_value() if optional.has_value() else None for optional in dataset]
    assert found == [None, 1, None, 3]


def test_an_optional_that_is_given_is_an_element_with_its_spec():
    one = Dataset.from_tensors((Optional.from_value(np.int32(3)), 1)).repeat(2)
    assert one.element_spec == (OptionalSpec(TensorSpec([], np.int32)), TensorSpec([], np.int64))
    assert [optional.get_value() for optional, _ in one] == [3, 3]
    empty = Dataset.from_tensors(Optional.empty(TensorSpec([2], np.float32)))
    assert empty.element_spec == OptionalSpec(TensorSpec([2], np.float32))
    assert [optional.has_value() for optional in empty.concatenate(empty)] == [False, False]
    for batches in (lambda: list(one.batch(2)), lambda: one.batch(2).element_spec):
        with pytest.raises(TypeError, match="get_value"):
            batches()


def test_an_optional_in_a_dataset_does_not_change_with_its_array():
    buffer = np.zeros(2)
    ones = Dataset.from_tensors(Optional(buffer))
    buffer[:] = 1
    (found,) = ones
    assert found.get_value().tolist() == [0, 0]
    assert not found.get_value().flags.writeable


def test_optionals_are_elements_and_are_not_batched():
    pairs = Dataset.zip(Dataset.range(4), ODD)
    assert pairs.element_spec == (TensorSpec([], np.int64), OptionalSpec(TensorSpec([], np.int64)))
    for batches in (lambda: list(pairs.batch(2)), lambda: pairs.batch(2).element_spec):
        with pytest.raises(TypeError, match="get_value"):
            batches()
    with pytest.raises(TypeError, match="OptionalSpec"):
        list(ODD.padded_batch(2))
    with pytest.raises(TypeError, match="Optional"):
        list(ODD.as_numpy_iterator())


def test_optionals_are_saved(tmp_path):
    ODD.save(tmp_path)
    assert Dataset.load(tmp_path).element_spec == ODD.element_spec
    loaded = list(Dataset.load(tmp_path))
    assert [optional.has_value() for optional in loaded] == [False, True, False, True]
    assert loaded[0].element_spec == TensorSpec([], np.int64)
    iterator, later = iter(ODD.shuffle(4, seed=1)), iter(ODD.shuffle(4, seed=1))
    next(iterator)
    later.set_state(iterator.get_state())
    assert [x.has_value() for x in later] == [x.has_value() for x in iterator]


def test_a_spec_of_optionals_is_compatible_with_optionals_of_such_values():
    spec = OptionalSpec(TensorSpec([None], np.int64))
    assert spec.is_compatible_with(Optional(np.arange(3)))
    assert not spec.is_compatible_with(Optional(np.zeros(3)))
    assert not spec.is_compatible_with(np.arange(3))
    assert not spec.is_fully_defined
    assert OptionalSpec.from_value(Optional(np.arange(3))).is_fully_defined


def test_elements_of_the_compat_spelling_are_its_optionals():
    tf_odd = tf.data.Dataset.range(2).map(
        lambda x: (
            tf.experimental.Optional.from_value(x) if x else tf.experimental.Optional.empty(tf.TensorSpec([], tf.int64))
        )
    )
    assert tf_odd.element_spec == tf.OptionalSpec(tf.TensorSpec([], tf.int64))
    no, yes = tf_odd
    assert isinstance(no, tf.experimental.Optional)
    assert not no.has_value()
    assert isinstance(yes.get_value(), tf.Tensor)
    values = tf_odd.skip(1).map(lambda optional: optional.get_value() * 2)
    assert list(values.as_numpy_iterator()) == [2]
    assert iter(tf_odd).get_next_as_optional().get_value().element_spec == tf.TensorSpec([], tf.int64)
