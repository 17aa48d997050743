"""Datasets written to files."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.compat import tf
from ringlet.data import Dataset, TensorSpec
from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.values import Variable


def numbers(path):
    return [int(x) for x in Dataset.load(path)]


def test_a_saved_dataset_replaces_the_one_before(tmp_path):
    Dataset.range(5).save(tmp_path / "new" / "folder")
    assert numbers(tmp_path / "new" / "folder") == [0, 1, 2, 3, 4]
    Dataset.range(7, 9).save(str(tmp_path / "new" / "folder"))
    assert numbers(tmp_path / "new" / "folder") == [7, 8]


def test_a_dataset_may_be_saved_where_it_is_loaded_from(tmp_path):
    Dataset.range(3).save(tmp_path)
    Dataset.load(tmp_path).map(lambda x: x + 1).save(tmp_path)
    assert numbers(tmp_path) == [1, 2, 3]


def test_the_shard_function_gets_the_components_of_a_tuple(tmp_path):
    pairs = Dataset.from_tensor_slices(([1, 2, 3], ["a", "b", "c"]))
    pairs.save(tmp_path, shard_func=lambda x, y: -1 if y == "b" else 10**9)
    shards = Dataset.load(tmp_path, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert list(shards) == [(2, "b"), (1, "a"), (3, "c")]


@pytest.mark.parametrize("compression", [None, "NONE", "GZIP", "SNAPPY"])
def test_elements_come_back_whatever_the_compression(tmp_path, compression):
    element = {"x": np.zeros((100, 100)), "text": ("a", b"b\0"), "t": np.datetime64("2026-01-01", "ns")}
    Dataset.from_tensors(element).save(tmp_path, compression)
    (found,) = Dataset.load(tmp_path, compression=compression)
    np.testing.assert_array_equal(found["x"], element["x"])
    assert found["text"] == ("a", b"b\0")
    assert found["t"] == element["t"]
    size = sum(path.stat().st_size for path in tmp_path.rglob("*.ringlet-cache"))
    assert (size < 10_000) == (compression in ("GZIP", "SNAPPY"))


@pytest.mark.parametrize("wrong", [1.5, "a", [0, 1], None])
def test_a_shard_is_an_integer(tmp_path, wrong):
    with pytest.raises(InvalidArgumentError, match="must return a scalar int64") as raised:
        Dataset.range(3).save(tmp_path, shard_func=lambda _: wrong)
    assert "for element 0" in raised.value.__notes__[0]


def test_arguments_of_the_wrong_kind_are_refused(tmp_path):
    with pytest.raises(TypeError, match="shard_func requires a function"):
        Dataset.range(3).save(tmp_path, shard_func=3)
    with pytest.raises(InvalidArgumentError, match="compression must be"):
        Dataset.range(3).save(tmp_path, "LZ4")
    with pytest.raises(TypeError):
        Dataset.range(3).save(3)
    for wrong, error in [
        ({"directory": "x"}, TypeError),  # as TensorFlow's CheckpointManager
        ({"directory": "x", "max_to_keep": 0}, ValueError),
        ({"directory": "x", "max_to_keep": 1, "checkpoint_interval": 2}, ValueError),
        ({"directory": "x", "max_to_keep": 1, "checkpoint": None}, ValueError),
    ]:
        with pytest.raises(error):
            Dataset.range(3).save(tmp_path, checkpoint_args=wrong)
    assert list(tmp_path.iterdir()) == []


def test_an_exception_leaves_what_was_there(tmp_path):
    Dataset.range(3).save(tmp_path)
    with pytest.raises(ZeroDivisionError):
        Dataset.range(3).map(lambda x: x if x < 2 else 1 // 0).save(tmp_path)
    assert numbers(tmp_path) == [0, 1, 2]
    assert len(list(tmp_path.glob("run-*"))) == 1


def test_two_saves_to_one_folder_are_refused(tmp_path):
    def save_again(x):
        Dataset.range(3).save(tmp_path)
        return x

    with pytest.raises(FailedPreconditionError, match="another program is saving"):
        Dataset.from_iterable(map(save_again, [1])).save(tmp_path)


def test_what_can_be_read_only_once_is_saved_with_the_spec_of_its_elements(tmp_path):
    Dataset.from_iterable(np.zeros(n) for n in (1, 2)).save(tmp_path)
    assert Dataset.load(tmp_path).element_spec == TensorSpec((None,), np.float64)
    assert [x.tolist() for x in Dataset.load(tmp_path)] == [[0.0], [0.0, 0.0]]


def test_tensors_are_saved_and_loaded(tmp_path):
    path = str(tmp_path)
    tf.data.Dataset.from_tensor_slices(([1, 2], [1.5, 2.5])).save(path, shard_func=lambda x, _: tf.cast(x, tf.int64))
    dataset = tf.data.Dataset.load(path, reader_func=lambda shards: shards.interleave(lambda shard: shard))
    assert dataset.element_spec == (tf.TensorSpec((), tf.int32), tf.TensorSpec((), tf.float32))
    assert [[float(x) for x in row] for row in dataset] == [[1, 1.5], [2, 2.5]]


class Numbers:
    """Elements 0 to 9, of which one raises an exception; counts those that are computed."""

    def __init__(self, breaks_at=-1):
        self.breaks_at = breaks_at
        self.computed = []
        self.dataset = Dataset.range(10).shuffle(10, seed=1).enumerate().map(self.number)

    def number(self, position, x):
        if position == self.breaks_at:
            raise ZeroDivisionError
        if position:  # the function is also called with the first element, for its spec
            self.computed.append(int(position))
        return x


def test_an_interrupted_save_continues_after_its_newest_checkpoint(tmp_path):
    steps = Variable(np.int64(0))
    arguments = {
        "directory": tmp_path / "progress", "max_to_keep": 2, "checkpoint_interval": 3, "step_counter": steps
    }  # fmt: skip
    shard_func = lambda x: x % 2  # noqa: E731
    first, second = Numbers(breaks_at=8), Numbers()
    with pytest.raises(ZeroDivisionError):
        first.dataset.save(tmp_path / "saved", shard_func=shard_func, checkpoint_args=arguments)
    assert int(steps) == 8
    # TensorFlow's checkpoints: after the first element, and every 3 elements from there on.
    assert sorted(path.name for path in (tmp_path / "progress").iterdir()) == [
        "ckpt-2.ringlet-cache", "ckpt-3.ringlet-cache"
    ]  # fmt: skip
    second.dataset.save(tmp_path / "saved", shard_func=shard_func, checkpoint_args=arguments)
    assert second.computed == [7, 8, 9]
    assert sorted(numbers(tmp_path / "saved")) == list(range(10))
    by_shard = Dataset.load(tmp_path / "saved", reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    order = [int(x) for x in Numbers().dataset]
    assert [int(x) for x in by_shard] == [x for x in order if x % 2 == 0] + [x for x in order if x % 2]


def test_a_finished_save_with_checkpoints_starts_again(tmp_path):
    arguments = {"directory": tmp_path / "progress", "max_to_keep": 1}
    Dataset.range(3).save(tmp_path / "saved", checkpoint_args=arguments)
    again = Numbers()
    again.dataset.save(tmp_path / "saved", checkpoint_args=arguments)
    assert again.computed == list(range(1, 10))
    assert len(list((tmp_path / "saved").glob("run-*"))) == 1


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    arguments = {"directory": tmp_path / "progress", "max_to_keep": None}
    with pytest.raises(ZeroDivisionError):
        Numbers(breaks_at=4).dataset.save(tmp_path / "saved", checkpoint_args=arguments)
    (tmp_path / "progress" / "ckpt-4.ringlet-cache").write_bytes(b"RGLCACH1")
    second = Numbers()
    second.dataset.save(tmp_path / "saved", checkpoint_args=arguments)
    assert second.computed == [3, 4, 5, 6, 7, 8, 9]
    assert numbers(tmp_path / "saved") == [int(x) for x in Numbers().dataset]


def test_the_checkpoint_of_another_dataset_is_refused(tmp_path):
    arguments = {"directory": tmp_path / "progress", "max_to_keep": 1}
    with pytest.raises(ZeroDivisionError):
        Numbers(breaks_at=4).dataset.save(tmp_path / "saved", checkpoint_args=arguments)
    with pytest.raises(FailedPreconditionError, match="another dataset"):
        Dataset.range(3).save(tmp_path / "saved", checkpoint_args=arguments)
