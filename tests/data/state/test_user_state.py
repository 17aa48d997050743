"""What is not part of a saved iterator."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
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
    with pytest.warns(UserWarning, match="not saved with the iterator"):
        start(with_policy(Dataset.range(4).map(lambda x: x).batch(2), ExternalStatePolicy.WARN)).get_state()
    start(with_policy(Dataset.range(4).batch(2), ExternalStatePolicy.WARN)).get_state()


def test_fail_fails_where_functions_make_elements(start):
    with pytest.raises(FailedPreconditionError, match="experimental_external_state_policy to IGNORE"):
        start(with_policy(Dataset.range(4).map(lambda x: x).batch(2), ExternalStatePolicy.FAIL)).get_state()
    start(with_policy(Dataset.range(4).batch(2), ExternalStatePolicy.FAIL)).get_state()


def test_without_a_policy_functions_that_draw_random_numbers_or_read_variables_fail(start):
    rng, variable = np.random.default_rng(1), ringlet.Variable(3.0)
    stateful = {
        "rng": lambda x: x + rng.normal(),
        "np.random.normal": lambda x: x + np.random.normal(),  # noqa: NPY002
        "variable": lambda x: x + variable,
    }
    for name, function in stateful.items():
        with pytest.raises(FailedPreconditionError, match=f"of Map is stateful: it .* {name}.*to IGNORE"):
            start(Dataset.range(4).map(function).batch(2)).get_state()
        assert start(with_policy(Dataset.range(4).map(function).batch(2), ExternalStatePolicy.IGNORE)).get_state()


def test_numbers_from_a_seed_in_the_element_are_no_state(start):
    assert start(Dataset.range(4).map(lambda x: np.random.default_rng(x).normal()).batch(2)).get_state()
