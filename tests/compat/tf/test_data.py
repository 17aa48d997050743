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
    with pytest.raises(tf.errors.UnimplementedError):
        tf.data.experimental.at(dataset.unbatch(), 3)
