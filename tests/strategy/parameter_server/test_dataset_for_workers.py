"""The dataset of a ParameterServerStrategy before a worker builds it."""

from __future__ import annotations

import pickle

import pytest

from ringlet.data import Dataset, DistributedDataset
from ringlet.strategy.parameter_server.dataset_for_workers import DatasetForWorkers


def make():
    return Dataset.range(3)


def test_it_is_a_distributed_dataset_that_is_not_built():
    dataset = DatasetForWorkers(make)
    assert isinstance(dataset, DistributedDataset)
    for call in (iter, lambda each: each.reduce(0, max), lambda each: each.decision):
        with pytest.raises(ValueError, match=r"pass this dataset to ClusterCoordinator\.create_per_worker_dataset"):
            call(dataset)
    for name in ("cardinality", "element_spec"):
        with pytest.raises(ValueError, match=f"{name} of a dataset that is not built"):
            getattr(dataset, name)
    with pytest.raises(AttributeError, match="Transform the dataset before"):
        dataset.map  # noqa: B018
    assert repr(dataset) == "<DatasetForWorkers>"


def test_datasets_built_by_workers_can_be_transformed_and_pickled():
    dataset = pickle.loads(pickle.dumps(DatasetForWorkers(make).then(list).then(len)))
    assert dataset.build() == 3
