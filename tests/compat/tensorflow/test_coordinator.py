"""The coordinator of ringlet.compat takes what tf.function gave, and gives tensors."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from tests.coordinator.in_threads import strategy_of


@pytest.fixture
def coordinator():
    made = tf.distribute.coordinator.ClusterCoordinator(strategy_of(2, 1, tf.distribute.ParameterServerStrategy))
    yield made
    made.shutdown()


def test_results_are_got_as_tensors_and_fetched_as_arrays(coordinator):
    value = coordinator.schedule(tf.function(lambda x: {"double": 2 * x}), args=(tf.constant(1.5),))
    assert isinstance(value.get()["double"], tf.Tensor)
    assert value.fetch() == {"double": np.float32(3.0)}


def test_functions_that_are_not_marked_are_refused_and_told_how_to_be(coordinator):
    with pytest.raises(TypeError, match=r"only accepts a `tf\.function` .* Decorate .* with @tf\.function"):
        coordinator.schedule(abs, args=(1,))


def test_the_index_of_a_worker_is_a_tensor(coordinator):
    value = coordinator.schedule(tf.function(tf.distribute.coordinator.experimental_get_current_worker_index))
    assert value.get().dtype == tf.int64
    assert int(value.fetch()) in (0, 1)


def test_both_names_stand_for_either_class(coordinator):
    assert isinstance(coordinator, ringlet.coordinator.ClusterCoordinator)
    experimental = tf.distribute.experimental.coordinator
    assert experimental.ClusterCoordinator is tf.distribute.coordinator.ClusterCoordinator
    assert experimental.PerWorkerValues is tf.distribute.coordinator.PerWorkerValue
