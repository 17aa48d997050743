"""What each worker has for itself is found, travels, and is found again in the file."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.train import Checkpoint
from ringlet.train.per_worker_state import SavedParts, noted, pack, parts_of, unpack
from tests.train.objects import Counter


def on_read(value):
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        return ringlet.Variable(
            value,
            synchronization=ringlet.VariableSynchronization.ON_READ,
            aggregation=ringlet.VariableAggregation.SUM,
        )


def test_objects_with_a_state_and_variables_are_parts():
    class Model:
        def state_dict(self):
            return {"w": np.ones(2)}

        def load_state_dict(self, state):
            pass

    value = Checkpoint(counter=Counter(3), deep=[{"a": Counter(1)}], seen=on_read(0), w=ringlet.Variable(1.0),
                       model=Model(), array=np.ones(3), n=5)  # fmt: skip
    assert list(parts_of(value, 0)) == ["counter", "deep/0/a", "seen", "w"]


def test_digests_tell_equal_parts_whatever_the_worker():
    first, second = parts_of({"c": Counter(3)}, 0), parts_of({"c": Counter(3)}, 1)
    assert first["c"].digest == second["c"].digest
    assert first["c"].tensors[0].name != second["c"].tensors[0].name
    assert parts_of({"c": Counter(4)}, 0)["c"].digest != first["c"].digest


class Holding:
    def __init__(self, array):
        self.array = array

    def get_state(self):
        return {"array": self.array}

    def set_state(self, state):
        self.array = state["array"]


@pytest.mark.parametrize(
    "array",
    [np.arange(6.0).reshape(2, 3), np.array(3, ">i4"), np.empty((0, 2)), np.array(["a", "bc"]), np.ones((2, 3)).T],
    ids=["matrix", "scalar", "empty", "text", "transposed"],
)
def test_arrays_travel_as_they_lie_in_files(array):
    parts = parts_of({"h": Holding(array)}, 1)
    nodes, tensors = unpack(pack(parts))
    assert nodes == [["h", parts["h"].node]]
    (sent,), (came,) = parts["h"].tensors, tensors
    assert (came.name, came.form) == (sent.name, sent.form)
    assert came.array.tobytes() == sent.array.tobytes()
    assert came.array.shape == sent.array.shape


def test_a_file_without_parts_has_those_of_one_worker():
    saved = SavedParts(["group", [["a", 3]]])
    assert (saved.num_workers, saved.node_for(1, "a", 3), saved.nodes("a", 3)) == (1, 3, [3])


def test_a_worker_takes_its_own_part_and_else_that_of_the_writer():
    saved = SavedParts(noted(["group", []], 0, 3, {1: [["a", "one"]]}))
    assert [saved.node_for(worker, "a", "zero") for worker in range(4)] == ["zero", "one", "zero", "zero"]
    assert saved.nodes("a", "zero") == ["zero", "one", "zero"]
