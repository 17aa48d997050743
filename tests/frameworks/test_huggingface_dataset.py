"""Data sets of Hugging Face as sources: in memory and streamed, their formats, and their places."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset, TensorSpec
from tests.data.state_cases import through_a_file
from tests.frameworks.libraries import library

datasets = library("datasets")


@pytest.fixture
def table():
    return datasets.Dataset.from_dict(
        {
            "x": [[float(n), n + 0.5] for n in range(10)],
            "label": list(range(10)),
            "text": [f"row {n}" for n in range(10)],
        }
    )


def labels(elements):
    return [int(x) for element in elements for x in np.atleast_1d(element["label"])]


@pytest.mark.parametrize("kind", [None, "numpy"])
def test_rows_come_as_dictionaries_of_arrays_numbers_and_text(table, kind):
    first = next(iter(Dataset.from_iterable(table.with_format(kind))))
    assert first["x"].tolist() == [0.0, 0.5]
    assert (first["label"], first["text"]) == (0, "row 0")


def test_rows_are_batched_and_distributed(table):
    dataset = Dataset.from_iterable(table).batch(4)
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    steps = list(strategy.experimental_distribute_dataset(dataset))
    assert [[part.tolist() for part in step["label"].values] for step in steps] == [
        [[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], [9]],
    ]  # fmt: skip
    assert steps[0]["x"].values[1].shape == (2, 2)
    assert dataset.element_spec["label"] == TensorSpec((None,), np.int64)


def test_batches_of_the_data_set_itself_are_distributed_too(table):
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    batches = list(table.with_format("numpy").iter(batch_size=5))
    assert labels(
        {"label": part} for step in strategy.experimental_distribute_dataset(batches) for part in step["label"].values
    ) == list(range(10))


def test_shuffled_and_mapped_rows_are_all_there(table):
    dataset = Dataset.from_iterable(table).shuffle(10, seed=1).map(lambda row: {"label": row["label"] * 2}).batch(3)
    assert sorted(labels(dataset)) == list(range(0, 20, 2))


def continued(make, taken):
    with iter(make()) as first, iter(make()) as second:
        for _ in range(taken):
            next(first)
        second.set_state(through_a_file(first.get_state()))
        return labels(second), labels(first)


def test_a_restored_iterator_goes_on_in_memory(table):
    restored, expected = continued(lambda: Dataset.from_iterable(table).shuffle(4).batch(2), 2)
    assert restored == expected
    assert len(restored) == 6


def test_a_stream_goes_on_at_the_place_that_it_told(table):
    reads = []

    def stream():
        return Dataset.from_iterable(
            table.to_iterable_dataset(num_shards=2).map(lambda row: reads.append(row["label"]) or row)
        )

    restored, expected = continued(stream, 7)
    assert restored == expected == [7, 8, 9]
    assert reads.count(0) == 1, "what was before the place is not read again"


def test_tensors_of_torch_stay_tensors(table):
    torch = library("torch")
    first = next(iter(Dataset.from_iterable(table.with_format("torch", columns=["x", "label"]))))
    assert type(first["x"]) is torch.Tensor
