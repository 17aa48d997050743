"""tf.data has the names of ringlet.data that TensorFlow has, too."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.compat import tf


def test_settings_and_constants_are_ringlet_s():
    for name in ("AUTOTUNE", "INFINITE_CARDINALITY", "Options", "ThreadingOptions", "UNKNOWN_CARDINALITY"):
        assert getattr(tf.data, name) is getattr(ringlet.data, name)
    for name in ("AutoShardPolicy", "DistributeOptions", "ExternalStatePolicy", "SHARD_HINT"):
        assert getattr(tf.data.experimental, name) is getattr(ringlet.data, name)


def test_files_of_records_are_written_and_read(tmp_path):
    path = str(tmp_path / "records")
    with tf.io.TFRecordWriter(path) as writer:
        writer.write(b"one")
        writer.write(b"two")
    dataset = tf.data.TFRecordDataset([path])
    assert isinstance(dataset, tf.data.Dataset)
    assert [record.numpy() for record in dataset] == [b"one", b"two"]
    parts = tf.data.FixedLengthRecordDataset(path, 2)
    assert isinstance(next(iter(parts)), tf.Tensor)


def test_the_cardinality_of_a_dataset_is_a_tensor():
    found = tf.data.experimental.cardinality(tf.data.Dataset.range(3))
    assert isinstance(found, tf.Tensor)
    assert (found.dtype, found.numpy()) == (tf.int64, 3)


def test_the_length_of_a_dataset_is_asserted():
    dataset = tf.data.Dataset.range(5).filter(lambda x: x < 3)
    known = dataset.apply(tf.data.experimental.assert_cardinality(3))
    assert isinstance(known, tf.data.Dataset)
    assert len(known) == 3


def test_optimization_options_are_kept():
    options = tf.data.Options()
    options.experimental_optimization = tf.data.experimental.OptimizationOptions()
    options.experimental_optimization.map_fusion = True
    dataset = tf.data.Dataset.range(2).with_options(options)
    assert dataset.options().experimental_optimization.map_fusion is True
    with pytest.raises(TypeError, match="map_fusion"):
        options.experimental_optimization.map_fusion = 1


def test_none_and_datasets_are_components():
    dataset = tf.data.Dataset.from_tensors((1, None)).batch(2)
    assert dataset.element_spec == (tf.TensorSpec([None], tf.int32), tf.NoneTensorSpec())
    ((x, nothing),) = dataset
    assert (x.numpy().tolist(), nothing) == ([1], None)
    nested = tf.data.Dataset.range(3).map(lambda x: (x, tf.data.Dataset.range(x)))
    assert nested.element_spec[1] == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))
    assert all(isinstance(inner, tf.data.Dataset) for _, inner in nested)
    flat = nested.flat_map(lambda x, inner: inner.map(lambda y: (x, y)))
    assert list(flat.as_numpy_iterator()) == [(1, 0), (2, 0), (2, 1)]


def test_a_batch_of_datasets_holds_datasets_of_tensors():
    batches = tf.data.Dataset.from_tensor_slices([tf.data.Dataset.range(3), tf.data.Dataset.range(2)]).batch(2)
    assert batches.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], tf.int64), [None])
    (batch,) = batches
    assert [type(inner) for inner in batch] == [tf.data.Dataset] * 2
    again = batches.flat_map(tf.data.Dataset.from_tensor_slices)
    assert [len(inner) for inner in again] == [3, 2]


def test_elements_have_numbers():
    dataset = tf.data.Dataset.range(5).map(lambda x: (x * 2, None)).batch(2)
    x, nothing = tf.data.experimental.at(dataset, tf.constant(2))
    assert isinstance(x, tf.Tensor)
    assert (x.numpy().tolist(), nothing) == ([8], None)
    with pytest.raises(tf.errors.OutOfRangeError, match=r"\[0, 3\): 3"):
        tf.data.experimental.at(dataset, 3)
    with pytest.raises(tf.errors.FailedPreconditionError):
        tf.data.experimental.at(dataset.unbatch(), 3)
    with pytest.raises(tf.errors.UnimplementedError):
        tf.data.experimental.at(dataset.padded_batch(2), 0)


def test_operations_that_tensorflow_deprecated_are_functions_for_apply(tmp_path):
    experimental, path = tf.data.experimental, str(tmp_path / "saved")
    numbers = tf.data.Dataset.range(4)

    def elements(dataset):
        return list(dataset.as_numpy_iterator())

    assert elements(numbers.batch(3).apply(experimental.unbatch())) == [0, 1, 2, 3]
    assert elements(numbers.concatenate(numbers).apply(experimental.unique())) == [0, 1, 2, 3]
    assert elements(numbers.apply(experimental.take_while(lambda x: x < 2))) == [0, 1]
    assert elements(numbers.apply(experimental.enumerate_dataset(5)).take(1)) == [(5, 0)]
    assert elements(numbers.apply(experimental.scan(tf.constant(10, tf.int64), lambda s, x: (s + x, s)))) == [
        10,
        10,
        11,
        13,
    ]
    assert elements(numbers.apply(experimental.snapshot(str(tmp_path / "snapshot")))) == [0, 1, 2, 3]
    assert elements(numbers.apply(experimental.ignore_errors())) == [0, 1, 2, 3]
    windows = experimental.group_by_window(lambda x: x % 2, lambda _, window: window.batch(2), window_size=2)
    assert [x.tolist() for x in elements(numbers.apply(windows))] == [[0, 2], [1, 3]]
    buckets = experimental.bucket_by_sequence_length(lambda x: x, [2], [2, 2])
    assert [x.tolist() for x in elements(numbers.apply(buckets))] == [[0, 1], [2, 3]]
    classes = numbers.apply(experimental.rejection_resample(lambda x: x % 2, [0.5, 0.5], seed=1))
    assert {int(label) for label, _ in elements(classes)} == {0, 1}
    assert elements(experimental.Counter(1, 2).take(2)) == [1, 3]
    assert elements(experimental.RandomDataset(7).take(2)) == elements(tf.data.Dataset.random(7).take(2))
    assert experimental.save(numbers, path) is None
    assert elements(experimental.load(path)) == [0, 1, 2, 3]
    assert experimental.get_structure(numbers) == tf.TensorSpec([], tf.int64)
    assert experimental.get_single_element(numbers.take(1)) == 0
    assert experimental.get_next_as_optional(iter(numbers)).get_value() == 0
