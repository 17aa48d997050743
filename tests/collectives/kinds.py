"""Two array types that stand for those of other libraries: one mutable, one immutable."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayAdapter, register_kind


class Written:
    """A mutable array, like torch's, without NumPy's protocols."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)
        self.shape, self.ndim = self.array.shape, self.array.ndim

    def __repr__(self) -> str:
        return f"Written({self.array.tolist()})"


class Frozen(Written):
    """An immutable array, like jax's."""


class WrittenKind(ArrayAdapter):
    name, is_mutable = "other.Written", True

    def as_ndarray(self, value: Any, name: str = "the array") -> Any:
        return value.array

    def from_ndarray(self, array: Any, like: Any) -> Any:
        assert array.flags.writeable
        return Written(array)


class FrozenKind(ArrayAdapter):
    name, is_mutable = "other.Frozen", False

    def as_ndarray(self, value: Any, name: str = "the array") -> Any:
        return value.array

    def from_ndarray(self, array: Any, like: Any) -> Any:
        return Frozen(array)


register_kind(Written, WrittenKind())
register_kind(Frozen, FrozenKind())
