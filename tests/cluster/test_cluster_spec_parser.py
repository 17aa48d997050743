"""Jobs of a cluster, read from dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.cluster.cluster_spec_parser import read_jobs
from ringlet.cluster.config_errors import ABSENT, Fault


@pytest.mark.parametrize(
    "tasks", [["a", "b"], ("a", "b"), {0: "a", 1: "b"}, {"1": "b", "0": "a"}, {np.int64(0): "a", 1: "b"}]
)
def test_tasks_are_numbered_whatever_they_are_given_in(tasks):
    assert read_jobs({"worker": tasks}) == {"worker": {0: "a", 1: "b"}}


def test_the_order_of_jobs_is_kept():
    assert list(read_jobs({"z": [], "a": [], "m": {}})) == ["z", "a", "m"]


@pytest.mark.parametrize(
    ("cluster", "keys", "instead"),
    [
        # cluster, way to the fault, what would be better
        (["a:1", "b:1"], (), {"worker": ["a:1", "b:1"]}),
        ([], (), ABSENT),
        ({"worker": "a:1"}, ("worker",), ["a:1"]),
        ({"worker": 3}, ("worker",), ABSENT),
        ({"worker": ["a:1", 3]}, ("worker", 1), ABSENT),
    ],
)
def test_a_fault_tells_its_place_and_what_may_have_been_meant(cluster, keys, instead):
    with pytest.raises(Fault) as caught:
        read_jobs(cluster)
    assert caught.value.keys == keys
    assert caught.value.instead == instead
