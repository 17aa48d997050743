"""Settings of a dataset."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import AUTOTUNE, AutoShardPolicy, Dataset, Options
from ringlet.data.graph.iteration_context import graph_nodes
from ringlet.data.operations.map import Map
from ringlet.data.operations.with_options import with_options_applied


def made(**settings):
    options = Options()
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def test_options_go_along_with_everything_that_is_made_of_a_dataset():
    dataset = Dataset.range(8).with_options(made(deterministic=False)).map(lambda x: x).batch(2)
    assert dataset.options().deterministic is False
    assert Dataset.range(8).options() == Options()


def test_the_last_setting_wins_and_others_stay():
    first = made(deterministic=False, experimental_slack=True)
    dataset = Dataset.range(8).with_options(first).batch(2).with_options(made(deterministic=True))
    assert dataset.options() == made(deterministic=True, experimental_slack=True)


def test_options_are_copied():
    options = made(deterministic=False)
    dataset = Dataset.range(8).with_options(options)
    options.deterministic = True
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF
    assert dataset.options() == made(deterministic=False)


def test_options_of_a_dataset_cannot_be_changed():
    options = Dataset.range(8).options()
    with pytest.raises(ValueError, match=r"call dataset\.with_options\(options\)"):
        options.deterministic = False
    with pytest.raises(ValueError, match="are read-only"):
        options.experimental_distribute.auto_shard_policy = AutoShardPolicy.OFF


def test_elements_and_views_stay_as_they_are():
    rows = np.arange(6)
    dataset = Dataset.from_tensor_slices(rows).with_options(Options()).batch(4)
    assert np.shares_memory(next(iter(dataset)), rows)
    assert dataset.cardinality() == 2


def test_what_is_no_options_is_refused():
    with pytest.raises(TypeError, match=r"must be a ringlet\.data\.Options, got 5"):
        Dataset.range(3).with_options(5)


def maps_of(dataset):
    return [node for node in graph_nodes(with_options_applied(dataset.node)) if isinstance(node, Map)]


def test_options_decide_what_operations_leave_open():
    options = made(deterministic=False)
    options.threading.private_threadpool_size = 3
    dataset = Dataset.range(8).map(abs, AUTOTUNE).map(abs, 2, deterministic=True).map(abs).with_options(options)
    found = [(node.num_parallel_calls, node.deterministic) for node in maps_of(dataset)]
    assert found == [(3, False), (2, True), (None, False)]


def test_without_options_a_graph_stays_itself():
    node = Dataset.range(8).map(abs, AUTOTUNE).with_options(made(experimental_slack=True)).node
    assert with_options_applied(node) is node


def test_what_a_graph_uses_twice_is_decided_once():
    shared = Dataset.range(4).map(abs)
    dataset = Dataset.zip((shared, shared)).with_options(made(deterministic=False))
    assert len(maps_of(dataset)) == 1
