"""Saved datasets, read again."""

from __future__ import annotations

import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

from ringlet.data import Dataset, NoneTensorSpec, Optional, TensorSpec
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError
from tests.data.state_cases import through_a_file

Point = namedtuple("Point", "x y")
INT = TensorSpec((), np.int64)


@pytest.fixture
def shards(tmp_path):
    """Ten numbers in three shards."""
    Dataset.range(10).save(tmp_path / "saved", shard_func=lambda x: x % 3)
    return tmp_path / "saved"


def numbers(dataset):
    return [int(x) for x in dataset]


def test_shards_take_turns_or_are_read_as_a_function_says(shards):
    assert numbers(Dataset.load(shards)) == list(range(10))
    one_by_one = Dataset.load(shards, reader_func=lambda datasets: datasets.flat_map(lambda dataset: dataset))
    assert numbers(one_by_one) == [0, 3, 6, 9, 1, 4, 7, 2, 5, 8]
    mixed = Dataset.load(shards, reader_func=lambda datasets: datasets.shuffle(3, seed=1).interleave(lambda d: d))
    assert sorted(numbers(mixed)) == list(range(10))


def test_a_reader_function_gets_a_dataset_of_datasets(shards):
    seen = []
    Dataset.load(shards, reader_func=lambda datasets: seen.append(datasets) or datasets.flat_map(lambda d: d))
    assert len(seen[0]) == 3
    assert seen[0].element_spec.element_spec == INT
    assert [len(shard) for shard in seen[0]] == [4, 3, 3]


def test_spec_and_size_are_those_that_were_saved(tmp_path, shards):
    assert len(Dataset.load(shards)) == 10
    assert Dataset.load(shards).element_spec == INT
    Dataset.range(0).map(lambda x: (x, [1.5])).save(tmp_path)
    empty = Dataset.load(tmp_path)
    assert (list(empty), len(empty)) == ([], 0)
    assert empty.element_spec == Dataset.range(0).map(lambda x: (x, [1.5])).element_spec


def test_a_spec_that_is_given_must_fit(shards):
    loose = TensorSpec(None, np.int64)
    assert Dataset.load(shards, element_spec=loose).element_spec == loose
    with pytest.raises(InvalidArgumentError, match=r"element_spec does not match(.|\n)*float32(.|\n)*int64"):
        Dataset.load(shards, element_spec=TensorSpec((), np.float32))
    with pytest.raises(InvalidArgumentError, match="element_spec does not match"):
        Dataset.load(shards, element_spec=(INT, INT))


def test_named_tuples_come_back_and_other_classes_need_a_spec(tmp_path):
    Dataset.from_tensor_slices(Point([1, 2], [3, 4])).save(tmp_path / "a")
    first = next(iter(Dataset.load(tmp_path / "a")))
    assert (type(first).__name__, first.x, first.y) == ("Point", 1, 3)
    assert type(next(iter(Dataset.load(tmp_path / "a", Point(INT, INT))))) is Point
    ordered = Dataset.from_tensor_slices(OrderedDict(x=[1, 2]))
    ordered.save(tmp_path / "b")
    with pytest.raises(InvalidArgumentError, match=r"could not be saved\. Pass element_spec=, the specs of the"):
        Dataset.load(tmp_path / "b")
    assert list(Dataset.load(tmp_path / "b", ordered.element_spec)) == list(ordered)


@pytest.mark.parametrize(
    "make", [lambda x: (x, None), lambda x: Optional.empty((TensorSpec((), np.int64), NoneTensorSpec()))]
)
def test_none_comes_back(tmp_path, make):
    dataset = Dataset.range(2).map(make)
    dataset.save(tmp_path / "none")
    loaded = Dataset.load(tmp_path / "none")
    assert loaded.element_spec == dataset.element_spec
    assert repr(list(loaded)) == repr(list(dataset))


def test_what_is_not_there_is_named(tmp_path, shards):
    with pytest.raises(NotFoundError, match=r"no dataset is saved in .*absent"):
        Dataset.load(tmp_path / "absent")
    dataset = Dataset.load(shards)
    Dataset.range(2).save(shards)
    with pytest.raises(NotFoundError, match="was replaced or deleted"):
        list(dataset)


def test_waiting_ends_with_the_dataset(tmp_path):
    timer = threading.Timer(0.3, lambda: Dataset.range(2).save(tmp_path / "late"))
    timer.start()
    assert numbers(Dataset.load(tmp_path / "late", wait=True)) == [0, 1]
    timer.join()


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_damage_anywhere_is_named_by_file_and_place_behind_what_is_whole(tmp_path, compression):
    Dataset.range(4).save(tmp_path, compression)
    (path,) = tmp_path.rglob("*.ringlet-cache")
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        found = []
        with pytest.raises(DataLossError, match=r"ringlet-cache is damaged at byte \d+.*Save the dataset again"):
            found += iter(Dataset.load(tmp_path))
        path.write_bytes(whole[:at])
        with pytest.raises(DataLossError, match="is damaged at byte"):
            list(Dataset.load(tmp_path))


@pytest.mark.parametrize("wrong", [3, "abc"])
def test_a_reader_function_is_one_and_returns_a_dataset(shards, wrong):
    with pytest.raises(TypeError, match="reader_func must be a function"):
        Dataset.load(shards, reader_func=wrong)
    with pytest.raises(TypeError, match="reader_func must return a Dataset"):
        Dataset.load(shards, reader_func=lambda _: wrong)


READERS = {
    "in turns": None,
    "shuffled": lambda datasets: datasets.shuffle(3).interleave(lambda d: d, cycle_length=2).shuffle(3),
    "threads": lambda datasets: datasets.interleave(lambda d: d.map(lambda x: x), num_parallel_calls=2),
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
@pytest.mark.parametrize("taken", [0, 4, 10])
def test_it_goes_on_from_a_state(shards, reader, taken):
    dataset = Dataset.load(shards, reader_func=reader)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    later.set_state(through_a_file(iterator.get_state()))
    assert numbers(later) == numbers(iterator)


def test_windows_are_saved_too(tmp_path):
    Dataset.range(5).window(2).save(tmp_path)
    assert [numbers(window) for window in Dataset.load(tmp_path)] == [[0, 1], [2, 3], [4]]
