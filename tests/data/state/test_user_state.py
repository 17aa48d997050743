"""What is not part of a saved iterator."""

from __future__ import annotations

import pytest

from ringlet.data import Dataset, DistributedDataset, ExternalStatePolicy, Options
from ringlet.errors import FailedPreconditionError


def with_policy(dataset, policy):
    options = Options()
    options.experimental_external_state_policy = policy
    return dataset.with_options(options)


@pytest.fixture(params=[iter, lambda dataset: iter(DistributedDataset(dataset, 2))], ids=["plain", "distributed"])
def start(request):
    return request.param


def test_a_dataset_with_functions_is_saved_without_a_word(start):
    assert start(Dataset.range(4).map(lambda x: x).batch(2)).get_state()
    assert start(with_policy(Dataset.range(4).map(lambda x: x).batch(2), ExternalStatePolicy.IGNORE)).get_state()


def test_warn_warns_where_functions_make_elements(start):
    with pytest.warns(UserWarning, match="not part of the state of the iterator"):
        start(with_policy(Dataset.range(4).map(lambda x: x).batch(2), ExternalStatePolicy.WARN)).get_state()
    start(with_policy(Dataset.range(4).batch(2), ExternalStatePolicy.WARN)).get_state()


def test_fail_fails_where_functions_make_elements(start):
    with pytest.raises(FailedPreconditionError, match="experimental_external_state_policy to IGNORE"):
        start(with_policy(Dataset.range(4).map(lambda x: x).batch(2), ExternalStatePolicy.FAIL)).get_state()
    start(with_policy(Dataset.range(4).batch(2), ExternalStatePolicy.FAIL)).get_state()
