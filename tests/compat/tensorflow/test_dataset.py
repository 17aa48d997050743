"""Datasets of tensors: every operation of ringlet's datasets, with tensors for users and arrays underneath."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.compat.tensorflow.dataset import as_dataset

D = tf.data.Dataset


def test_every_operation_of_ringlet_s_datasets_is_there():
    public = {name for name in dir(ringlet.data.Dataset) if not name.startswith("_")}
    assert public <= set(dir(D))
    for name in ("map", "batch", "interleave"):
        assert getattr(D, name).__doc__ == getattr(ringlet.data.Dataset, name).__doc__


def test_every_operation_gives_a_dataset_of_tensors():
    dataset = D.range(6).map(lambda x: x + 1).shuffle(6, seed=1).batch(2).prefetch(1).repeat(2).take(3)
    assert isinstance(dataset, D)
    assert isinstance(dataset, ringlet.data.Dataset)
    assert [type(x) for x in dataset] == [tf.Tensor] * 3
    assert [type(x) for x in dataset.as_numpy_iterator()] == [np.ndarray] * 3


def test_functions_are_given_tensors_and_their_numbers_have_tensorflow_s_dtypes():
    given = []

    def function(x, y):
        given.append((x, y))
        return x * 2, {"half": y / 2, "one": 1.0, "list": [1, 2]}

    first = next(iter(D.from_tensor_slices(([1, 2], [3.0, 4.0])).map(function)))
    assert all(isinstance(value, tf.Tensor) for pair in given for value in pair)
    assert (first[0].dtype, first[1]["half"].dtype, first[1]["one"].dtype) == (tf.int32, tf.float32, tf.float32)
    assert first[1]["list"].dtype == tf.int32


def test_elements_are_read_without_a_copy():
    array = np.arange(4.0)
    array.setflags(write=False)
    assert np.shares_memory(next(iter(D.from_tensor_slices(array).batch(2))), array)


def test_a_class_of_datasets_is_a_function_of_an_element(tmp_path):
    (tmp_path / "lines").write_text("a\nb\n")
    names = D.from_tensor_slices([str(tmp_path / "lines")])
    lines = list(names.flat_map(tf.data.TextLineDataset))
    assert [line.numpy() for line in lines] == [b"a", b"b"]
    assert isinstance(tf.data.TextLineDataset(str(tmp_path / "lines")), D)


def test_a_generator_gives_tensors_or_numbers():
    dataset = D.from_generator(lambda: [tf.constant(0.1), 0.2], output_signature=tf.TensorSpec([], tf.float64))
    assert [float(x) for x in dataset] == pytest.approx([0.1, 0.2])
    assert next(iter(dataset)).dtype == tf.float64


def test_an_error_of_a_function_names_it():
    def broken(x):
        raise KeyError("gone")

    with pytest.raises(KeyError) as caught:
        next(iter(D.range(3).map(broken)))
    assert "broken" in "".join(caught.value.__notes__)


def test_datasets_of_both_kinds_go_together():
    plain = ringlet.data.Dataset.range(2)
    zipped = D.zip((D.range(2), plain))
    assert [type(x) for pair in zipped for x in pair] == [tf.Tensor] * 4
    assert [type(x) for x in plain.concatenate(D.range(1))] == [np.int64] * 3
    assert [type(x) for x in as_dataset(plain)] == [tf.Tensor] * 2
    assert as_dataset(zipped) is zipped


def test_iterators_are_saved_and_restored():
    dataset = D.range(6).shuffle(6).batch(2)
    iterator, later = iter(dataset), iter(dataset)
    next(iterator)
    later.set_state(iterator.get_state())
    for one, other in zip(iterator, later, strict=True):
        assert isinstance(other, tf.Tensor)
        assert one.tolist() == other.tolist()


def test_options_count():
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    dataset = D.range(3).with_options(options)
    assert dataset.options().experimental_distribute.auto_shard_policy is tf.data.experimental.AutoShardPolicy.OFF
    assert [int(x) for x in dataset] == [0, 1, 2]


def test_a_first_state_of_python_numbers_has_the_dtypes_of_tensors():
    numbers = tf.data.Dataset.from_tensor_slices([1, 2, 3])
    total = numbers.reduce(0, lambda state, x: state + x)
    assert (total.dtype, int(total)) == (tf.int32, 6)
    both = numbers.reduce(initial_state=(0, 1.5), reduce_func=lambda state, x: (state[0] + x, state[1]))
    assert [x.dtype for x in both] == [tf.int32, tf.float32]
    sums = numbers.scan(0, lambda state, x: (state + x, state + x))
    assert [int(x) for x in sums] == [1, 3, 6]
    assert sums.element_spec.dtype == tf.int32


def test_a_list_that_a_function_returns_is_several_components():
    dataset = tf.data.Dataset.range(2).map(lambda x: [x, x + 1])
    assert [tuple(map(int, x)) for x in dataset] == [(0, 1), (1, 2)]
    assert tf.data.Dataset.range(2).map(lambda x: ([x, x], x)).element_spec[0].shape == (2,)
