"""Objects for checkpoints, and their comparison."""

from __future__ import annotations

import collections
import dataclasses
import math

import numpy as np

from ringlet.train import Checkpoint

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Settings:
    rate: float
    names: list


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: float


class Counter:
    """An object with a state of its own."""

    def __init__(self, count=0):
        self.count = count

    def get_state(self):
        return {"count": self.count, "history": np.arange(self.count)}

    def set_state(self, state):
        assert state["history"].tolist() == list(range(state["count"]))
        self.count = state["count"]


class Model:
    """An object with the state methods of PyTorch modules."""

    def __init__(self, value):
        self.weights = np.full(3, value)

    def state_dict(self):
        return collections.OrderedDict(weights=self.weights)

    def load_state_dict(self, state):
        self.weights[...] = state["weights"]


def there_and_back(tmp_path, value, like=None):
    """Save a value, and restore it into another."""
    path = Checkpoint(value=value).write(tmp_path / "it")
    restored = Checkpoint(value=like)
    restored.read(path).assert_consumed()
    return restored.value


def same(given_value, restored):
    """Return whether two values are equal, including types and dtypes."""
    if type(given_value) is not type(restored):
        return False
    if isinstance(given_value, (np.ndarray, np.generic)):
        if given_value.dtype != restored.dtype or given_value.shape != restored.shape:
            return False
        return np.ascontiguousarray(given_value).tobytes() == np.ascontiguousarray(restored).tobytes()
    if isinstance(given_value, dict):
        return list(given_value) == list(restored) and all(same(given_value[k], restored[k]) for k in given_value)
    if isinstance(given_value, (list, tuple)):
        return len(given_value) == len(restored) and all(map(same, given_value, restored))
    return given_value == restored or (
        isinstance(given_value, float) and math.isnan(given_value) and math.isnan(restored)
    )
