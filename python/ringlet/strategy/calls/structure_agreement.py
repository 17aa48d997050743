"""Check that replicas pass the same nested structure to a collective."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringlet import nest
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.errors import CollectiveMismatchError
from ringlet.values.regroup import LEAF_TYPES

# The structure of a single leaf.
LEAF = nest.flatten(0)[1]


class KindShape:
    """A structure's PyTreeSpec, with the array type of each leaf. Created by :func:`with_kinds`."""

    __slots__ = ("names", "shape")

    def __init__(self, shape: nest.PyTreeSpec, names: tuple[str, ...]) -> None:
        self.shape = shape
        self.names = names

    def paths(self) -> list[Any]:
        """Return the path and array type of each leaf, as pairs, which never equal the paths of a PyTreeSpec."""
        return list(zip(self.shape.paths(), self.names, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KindShape) and self.names == other.names and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.shape, self.names))


def with_kinds(shape: nest.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    """Return `shape`, or a KindShape if a leaf is an array of another library."""
    if LEAF_TYPES.issuperset(map(type, leaves)):  # the usual case: no arrays of other libraries
        return shape
    kinds = [kind_of(leaf) for leaf in leaves]
    if not any(kinds):
        return shape
    return KindShape(shape, tuple(_NUMPY if kind is None else kind.name for kind in kinds))


_NUMPY = "numpy.ndarray"


class Shapes:
    """The structures that the replicas of one run pass to their collectives.

    A collective combines the arrays of flattened structures by their position, and cannot distinguish ``{"w": x}`` from
    ``{"b": x}``. So every replica records its structure before a call, and compares it with replica 0's structure
    afterwards. Replica 0 has recorded its structure by then, because the call has returned, and waits for the other
    replicas in its next call at the latest. Two slots for each replica, used alternately, are therefore enough.
    """

    __slots__ = ("_calls", "_next_slots", "_slots")

    def __init__(self, num_replicas: int) -> None:
        self._slots: tuple[list[Any], list[Any]] = ([LEAF] * num_replicas, [LEAF] * num_replicas)
        self._next_slots = [0] * num_replicas
        self._calls = [""] * num_replicas

    def record(self, replica: int, shape: Any, call: str) -> None:
        """Record the structure of a replica's next call; may be repeated until another replica makes the call."""
        self._calls[replica] = call
        self._slots[self._next_slots[replica]][replica] = shape

    def compare(self, replica: int, shape: Any) -> None:
        """Raise an error unless replica 0 passed the same structure to the call that has returned."""
        slot = self._next_slots[replica]
        first = self._slots[slot][0]
        self._next_slots[replica] = 1 - slot
        # Container types are not compared: lists and tuples, for example, have the same paths.
        if shape is not first and shape != first and shape.paths() != first.paths():
            call = self._calls[replica]
            raise CollectiveMismatchError(
                _mixed_kinds(call, first, replica, shape)
                or f"the replicas called {call} with different structures: replica 0 with {_describe(first)}, replica "
                f"{replica} with {_describe(shape)}, where * stands for an array. Pass the same keys on every replica, "
                "with zeros where a replica has no value"
            )

    def explain(self, replica: int, error: CollectiveMismatchError) -> CollectiveMismatchError:
        """Return the core's error for a mismatch, or an error that names the array libraries if they differ."""
        call = self._calls[replica]
        calls = [line for line in str(error).splitlines() if line.startswith("  ")]
        if not all(f"{call}(" in line for line in calls):
            return error
        first, *others = self._slots[self._next_slots[replica]]
        mixed = [_mixed_kinds(call, first, other, shape) for other, shape in enumerate(others, 1)]
        text = next(filter(None, mixed), None)
        return error if text is None else CollectiveMismatchError(text)


def describe_shape(shape: Any) -> str:
    """Format what :meth:`Shapes.compare` compares: the paths and, in a KindShape, the array types of the leaves."""
    return ", ".join(map(str, shape.paths()))


def _describe(shape: Any) -> str:
    return nest.describe(shape.shape if isinstance(shape, KindShape) else shape)


def _mixed_kinds(call: str, first: Any, replica: int, shape: Any) -> str | None:
    """Return the message for two structures that differ only in the array types of their leaves; else None."""
    if not (isinstance(first, KindShape) or isinstance(shape, KindShape)):
        return None
    plain = [given.shape if isinstance(given, KindShape) else given for given in (first, shape)]
    if plain[0].paths() != plain[1].paths():
        return None
    names = [getattr(given, "names", (_NUMPY,) * plain[0].num_leaves) for given in (first, shape)]
    for path, *pair in zip(plain[0].paths(), *names, strict=True):
        if pair[0] != pair[1]:
            where = "".join(f"[{key!r}]" for key in path)
            return (
                f"the replicas called {call} with arrays of different libraries{where and f' at {where}'}: replica 0 "
                f"with a {pair[0]}, replica {replica} with a {pair[1]}. Convert them to one type first"
            )
    return None
