"""Options of distributed input."""

from __future__ import annotations

import pickle

import pytest

from ringlet.data import InputOptions, InputReplicationMode


@pytest.mark.parametrize(("given", "found"), [(None, True), (True, True), (False, False)])
def test_fetching_is_on_unless_it_is_switched_off(given, found):
    assert InputOptions(given).experimental_fetch_to_device is found


def test_options_are_a_named_tuple():
    options = InputOptions(experimental_per_replica_buffer_size=2)
    assert tuple(options) == (True, InputReplicationMode.PER_WORKER, False, 2)
    assert options._replace(experimental_fetch_to_device=False) == (False, *options[1:])
    assert pickle.loads(pickle.dumps(options)) == options
    assert repr(options).startswith("InputOptions(experimental_fetch_to_device=True, ")


def test_the_defaults_are_tensorflows():
    options = InputOptions()
    assert options.experimental_replication_mode is InputReplicationMode.PER_WORKER
    assert options.experimental_place_dataset_on_device is False
    assert options.experimental_per_replica_buffer_size == 1
