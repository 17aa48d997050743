"""Elements saved in the first iteration."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.errors import DataLossError, InvalidArgumentError
from tests.data.state_cases import through_a_file


def numbers(dataset):
    return [int(x) for x in dataset]


@pytest.fixture
def counted(tmp_path):
    """A dataset with a snapshot, and the elements that were made for it."""
    made = []

    def build(size=5, **options):
        dataset = Dataset.range(size).map(lambda x: made.append(int(x)) or x * x)
        _ = dataset.element_spec
        made.clear()
        return dataset.snapshot(tmp_path / "snapshot", **options), made

    return build


def test_elements_are_made_once(counted):
    dataset, made = counted()
    assert numbers(dataset.repeat(3)) == [0, 1, 4, 9, 16] * 3
    assert sum(x == 4 for x in made) == 1
    assert numbers(counted()[0]) == [0, 1, 4, 9, 16]
    assert sum(x == 4 for x in made) == 0
    assert len(dataset) == 5


def test_shards_and_their_reader_are_those_of_save_and_load(counted):
    dataset, _ = counted(shard_func=lambda x: x % 2, reader_func=lambda shards: shards.flat_map(lambda shard: shard))
    assert numbers(dataset) == [0, 1, 4, 9, 16]
    assert numbers(dataset) == [0, 4, 16, 1, 9]
    assert numbers(dataset.repeat(2)) == [0, 4, 16, 1, 9] * 2


def test_what_is_random_in_front_is_kept(tmp_path):
    dataset = Dataset.range(50).shuffle(50).snapshot(tmp_path)
    first = numbers(dataset)
    assert numbers(dataset) == first


def test_pipelines_of_other_sizes_have_their_own(counted):
    assert numbers(counted(2)[0]) == [0, 1]
    assert numbers(counted(3)[0]) == [0, 1, 4]
    assert numbers(counted(2)[0]) == [0, 1]


def test_an_iteration_that_ends_early_leaves_nothing(counted, tmp_path):
    dataset, made = counted()
    assert numbers(dataset.take(2)) == [0, 1]
    assert list(tmp_path.rglob("run-*")) == []
    with pytest.raises(ZeroDivisionError):
        list(Dataset.range(3).map(lambda x: x if x < 2 else 1 // 0).snapshot(tmp_path / "s", reader_func=len))
    assert list(tmp_path.rglob("dataset.json")) == []
    made.clear()
    assert numbers(dataset) == [0, 1, 4, 9, 16]
    assert made.count(3) == 1


def test_while_one_writes_others_make_their_own(counted):
    dataset, made = counted()
    first, second = iter(dataset), iter(dataset)
    assert [next(first), next(second)] == [0, 0]
    assert numbers(second) == [1, 4, 9, 16]
    assert numbers(first) == [1, 4, 9, 16]
    made.clear()
    assert numbers(dataset) == [0, 1, 4, 9, 16]
    assert made.count(3) == 0


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("taken", [0, 2, 5])
def test_it_goes_on_from_a_state(counted, is_saved, taken):
    dataset, _ = counted(shard_func=lambda x: x % 2, reader_func=lambda shards: shards.interleave(lambda shard: shard))
    if is_saved:
        list(dataset)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    state = through_a_file(iterator.get_state())
    rest = numbers(iterator)
    later.set_state(state)
    if taken or is_saved:
        assert numbers(later) == rest


def test_damage_is_named(counted, tmp_path):
    dataset, _ = counted()
    list(dataset)
    (path,) = tmp_path.rglob("*.ringlet-cache")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataLossError, match=r"shard .* is damaged at byte"):
        list(dataset)


def test_arguments_of_the_wrong_kind_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="compression"):
        Dataset.range(3).snapshot(tmp_path, "LZ4")
    with pytest.raises(TypeError, match="shard_func"):
        Dataset.range(3).snapshot(tmp_path, shard_func=3)
    with pytest.raises(TypeError, match="reader_func"):
        Dataset.range(3).snapshot(tmp_path, reader_func=3)
    with pytest.raises(InvalidArgumentError, match="scalar int64"):
        list(Dataset.range(3).snapshot(tmp_path, shard_func=lambda _: 1.5))


def test_elements_may_be_compressed(tmp_path):
    dataset = Dataset.from_tensors(np.zeros(10_000)).snapshot(tmp_path, "GZIP")
    list(dataset)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.ringlet-cache")) < 2000
    assert not next(iter(dataset)).any()
