"""Graphs rewritten for workers."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import SHARD_HINT, AutoShardPolicy, Dataset, Options, TensorSpec, distribution, operations, readers
from ringlet.data.distribution import auto_shard as module
from ringlet.data.distribution.auto_shard import Sharding, auto_shard, reads_files
from ringlet.errors import NotFoundError
from tests.data.sharing import Numbers, number_files

FILES = number_files([2, 2, 2, 2])
NAMES = Dataset(FILES.node.input)
ELEMENTS = [0, 1, 2, 3, 4, 5, 6, 7]
OWN = [2, 3, 6, 7]  # of worker 1 of 2, by files


def read(name):
    return Dataset(Numbers(Dataset.from_tensor_slices([name]).node))


def sharded(dataset, policy=AutoShardPolicy.FILE, num_workers=2, worker=1):
    options = Options()
    options.experimental_distribute.auto_shard_policy = policy
    return auto_shard(dataset.with_options(options).node, Sharding(num_workers, worker, num_workers))


def numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


@pytest.mark.parametrize(
    "dataset",
    [
        FILES,
        FILES.filter(lambda x: True),
        FILES.map(lambda x: x),
        FILES.batch(4).unbatch(),
        FILES.cache(),
        FILES.prefetch(1).skip(0).take(-1).shuffle(1),
        FILES.window(4).flat_map(lambda window: window),
        FILES.flat_map(Dataset.from_tensors),
        NAMES.flat_map(read),
        NAMES.interleave(read, cycle_length=1),
        NAMES.flat_map(lambda name: read(name).map(lambda x: x).take(2)),
        NAMES.flat_map(lambda name: Dataset.from_tensors(name).flat_map(read)),
    ],
)
def test_files_are_dealt_where_readers_are_seen(dataset):
    found = sharded(dataset)
    assert found.policy is AutoShardPolicy.FILE
    assert numbers(Dataset(found.node)) == OWN


def test_all_datasets_that_are_put_together_are_dealt():
    assert numbers(Dataset(sharded(FILES.concatenate(FILES)).node)) == OWN * 2
    assert [int(x) for x, _ in Dataset(sharded(Dataset.zip((FILES, FILES))).node)] == OWN


@pytest.mark.parametrize(
    "dataset",
    [
        Dataset.range(8),
        Dataset.from_tensors(1),
        Dataset.from_iterable([1, 2]),
        FILES.enumerate(),
        FILES.take_while(lambda x: True),
        FILES.scan(0, lambda state, x: (state, x)),
        FILES.ignore_errors(),
        Dataset.zip((FILES, Dataset.range(8))),
        NAMES,
        NAMES.flat_map(Dataset.from_tensors),
    ],
)
def test_where_no_reader_is_seen_file_fails_and_auto_deals_elements(dataset):
    with pytest.raises(NotFoundError, match="unshardable source"):
        sharded(dataset)
    found = sharded(dataset, AutoShardPolicy.AUTO)
    assert found.policy is AutoShardPolicy.DATA
    assert found.reason.startswith("AUTO: ")
    assert len(numbers(Dataset(found.node))) == len(numbers(dataset)) // 2


@pytest.mark.parametrize("seed", [None, 5])
def test_names_that_are_shuffled_are_dealt_in_their_order_first(seed):
    """Else each worker would deal an order of its own, and files would be read twice or never."""
    dataset = NAMES.shuffle(4, seed=seed).flat_map(read)
    found = [numbers(Dataset(sharded(dataset, worker=worker).node)) for worker in (0, 1)]
    assert sorted(found[0]) == [0, 1, 4, 5]
    assert sorted(found[1]) == OWN


def test_a_function_that_fails_on_the_example_is_taken_for_none_that_reads_files():
    def fails(name):
        raise KeyError(name)

    assert sharded(NAMES.flat_map(fails), AutoShardPolicy.AUTO).policy is AutoShardPolicy.DATA


def test_a_shard_of_data_stands_in_front_of_a_last_prefetch():
    node = sharded(Dataset.range(8).batch(2).prefetch(2), AutoShardPolicy.DATA).node
    assert [type(n).__name__ for n in (node, node.input, node.input.input)] == ["WithOptions", "Prefetch", "Shard"]


def test_a_hint_is_filled_in_wherever_it_stands():
    dataset = Dataset.range(8).shard(SHARD_HINT, SHARD_HINT).concatenate(Dataset.range(4).shard(SHARD_HINT, 0))
    assert numbers(Dataset(sharded(dataset, AutoShardPolicy.HINT).node)) == [1, 3, 5, 7, 1, 3]


def test_off_changes_nothing():
    assert numbers(Dataset(sharded(FILES, AutoShardPolicy.OFF).node)) == ELEMENTS


def test_one_worker_reads_all_files_or_none():
    assert numbers(Dataset(sharded(FILES, num_workers=1, worker=0).node)) == ELEMENTS
    assert numbers(Dataset(sharded(Dataset.range(3), num_workers=1, worker=0).node)) == [0, 1, 2]


def test_a_reader_is_known_by_itself_and_by_a_function_that_gives_it():
    assert reads_files(FILES.node)
    assert reads_files(NAMES.flat_map(read).node)
    assert not reads_files(FILES.map(lambda x: x).node)


def test_every_operation_that_is_named_exists():
    import importlib
    import pkgutil

    found = {
        name
        for package in (operations, readers, distribution)
        for info in pkgutil.iter_modules(package.__path__)
        for name in dir(importlib.import_module(f"{package.__name__}.{info.name}"))
    }
    named = module._SEEN_THROUGH | module._SEVERAL_INPUTS | module._AT_THE_END
    assert sorted(named - found) == []


GENERATED = Dataset.from_generator(lambda: iter(range(6)), output_signature=TensorSpec((), np.int64))
OPENED = Dataset.from_tensors(np.arange(6)).flat_map(Dataset.from_tensor_slices)


def twice(x):
    return Dataset.from_tensors(x).repeat(2)


# As TensorFlow deals them, also with the policy FILE.
@pytest.mark.parametrize("policy", [AutoShardPolicy.AUTO, AutoShardPolicy.FILE])
@pytest.mark.parametrize(
    ("dataset", "own"),
    [
        (GENERATED.flat_map(twice), [1, 1, 3, 3, 5, 5]),
        (GENERATED.map(lambda x: x).flat_map(twice).map(lambda x: x), [1, 1, 3, 3, 5, 5]),
        (GENERATED.window(2).flat_map(lambda window: window.batch(2)), [[1, 3], [5]]),
        (OPENED.interleave(twice, cycle_length=1), [1, 1, 3, 3, 5, 5]),
        (Dataset.from_tensor_slices(np.arange(6)).flat_map(Dataset.from_tensors).flat_map(twice), [1, 1, 3, 3, 5, 5]),
    ],
)
def test_elements_for_which_datasets_are_opened_are_dealt_like_files(dataset, own, policy):
    found = sharded(dataset, policy)
    assert found.policy is AutoShardPolicy.FILE
    assert "read from files" not in found.reason
    assert numbers(Dataset(found.node)) == own


@pytest.mark.parametrize(
    "dataset",
    [
        GENERATED,
        OPENED,
        Dataset.range(6).flat_map(Dataset.from_tensors).flat_map(twice),
        Dataset.from_tensors(np.arange(6)).map(abs).flat_map(Dataset.from_tensor_slices).flat_map(twice),
        Dataset.zip((GENERATED, GENERATED)).flat_map(lambda x, y: Dataset.from_tensors(x)),
    ],
)
def test_other_elements_are_dealt_at_the_end(dataset):
    assert sharded(dataset, AutoShardPolicy.AUTO).policy is AutoShardPolicy.DATA
