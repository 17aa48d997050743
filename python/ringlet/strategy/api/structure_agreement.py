"""Whether replicas that combine nested structures mean the same by each array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringlet import nest
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.errors import CollectiveMismatchError
from ringlet.values.regroup import LEAF_TYPES

__all__ = ["LEAF", "KindShape", "Shapes", "describe_shape", "with_kinds"]

# The shape of what is no structure.
LEAF = nest.flatten(0)[1]


class KindShape:
    """The shape of a structure that holds arrays of other libraries, and which those are. Made by :func:`with_kinds`.

    Parameters
    ----------
    shape : PyTreeSpec
    names : tuple of str
        What the kind of each leaf is called.
    """

    __slots__ = ("names", "shape")

    def __init__(self, shape: nest.PyTreeSpec, names: tuple[str, ...]) -> None:
        self.shape = shape
        self.names = names

    def paths(self) -> list[Any]:
        """Give the place and the kind of each leaf; never what a shape without kinds gives."""
        return list(zip(self.shape.paths(), self.names, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KindShape) and self.names == other.names and self.shape == other.shape

    def __hash__(self) -> int:
        return hash((self.shape, self.names))


def with_kinds(shape: nest.PyTreeSpec, leaves: Sequence[Any]) -> Any:
    """Give a shape that tells where arrays of other libraries are; the shape itself if there are none.

    Examples
    --------
    >>> with_kinds(LEAF, [1.5]) is LEAF
    True
    """
    if LEAF_TYPES.issuperset(map(type, leaves)):  # the usual case
        return shape
    kinds = [kind_of(leaf) for leaf in leaves]
    if not any(kinds):
        return shape
    return KindShape(shape, tuple(_NUMPY if kind is None else kind.name for kind in kinds))


_NUMPY = "numpy.ndarray"


class Shapes:
    """The structures that the replicas of one run gave to their collectives.

    A collective combines the arrays of flattened structures by their position, and cannot tell ``{"w": x}`` from
    ``{"b": x}``. So every replica states its structure before a call and compares it with that of replica 0 after it.
    Replica 0 has stated its own by then, because the call has returned. And it has not gone further than the next call,
    for which it waits for all the others; hence two places for each replica, used in turn, are enough.

    Parameters
    ----------
    num_replicas : int

    Examples
    --------
    >>> shapes = Shapes(2)
    >>> given = [nest.flatten({"w": 1})[1], nest.flatten({"b": 1})[1]]
    >>> for replica in range(2): shapes.state(replica, given[replica])
    >>> shapes.compare(0, given[0])
    >>> shapes.compare(1, given[1])
    Traceback (most recent call last):
        ...
    ringlet.errors.CollectiveMismatchError: the replicas called all_reduce with different structures: ...
    """

    __slots__ = ("_places", "_turns")

    def __init__(self, num_replicas: int) -> None:
        self._places: tuple[list[Any], list[Any]] = ([LEAF] * num_replicas, [LEAF] * num_replicas)
        self._turns = [0] * num_replicas

    def state(self, replica: int, shape: Any) -> None:
        """Say what a replica is about to combine. A call that fails before others see it may be made again."""
        self._places[self._turns[replica]][replica] = shape

    def compare(self, replica: int, shape: Any, call: str = "all_reduce") -> None:
        """Raise unless replica 0 combined the same structure, in the call that has returned."""
        turn = self._turns[replica]
        first = self._places[turn][0]
        self._turns[replica] = 1 - turn
        # Paths decide: types that name the same places, such as lists and tuples, mean the same.
        if shape is not first and shape != first and shape.paths() != first.paths():
            raise CollectiveMismatchError(
                _mixed_kinds(call, first, replica, shape)
                or f"the replicas called {call} with different structures: replica 0 {_describe(first)}, replica "
                f"{replica} {_describe(shape)}, with * for each array. Give the same keys on every replica, with "
                "zeros where one has nothing to add"
            )

    def explain(self, replica: int, call: str, error: CollectiveMismatchError) -> CollectiveMismatchError:
        """Say which libraries' arrays the replicas gave, if that is why the core found their calls different.

        Parameters
        ----------
        replica : int
        call : str
            What this replica called.
        error : CollectiveMismatchError
            What the core says.

        Returns
        -------
        CollectiveMismatchError
            The same error if all gave arrays of the same.
        """
        told = [line for line in str(error).splitlines() if line.lstrip().startswith("rank ")]
        if not all(f"{call}(" in line for line in told):
            return error
        first, *others = self._places[self._turns[replica]]
        mixed = [_mixed_kinds(call, first, other, shape) for other, shape in enumerate(others, 1)]
        text = next(filter(None, mixed), None)
        return error if text is None else CollectiveMismatchError(text)


def describe_shape(shape: Any) -> str:
    """Tell all that :meth:`Shapes.compare` compares: the places of a structure, and the kinds of arrays there.

    Examples
    --------
    >>> describe_shape(nest.flatten({"w": [1]})[1])
    "('w', 0)"
    """
    return ", ".join(map(str, shape.paths()))


def _describe(shape: Any) -> str:
    return nest.describe(shape.shape if isinstance(shape, KindShape) else shape)


def _mixed_kinds(call: str, first: Any, replica: int, shape: Any) -> str | None:
    """What is wrong with two structures that differ in nothing but the kinds of their arrays."""
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
                f"with a {pair[0]}, replica {replica} with a {pair[1]}. Convert them to one kind first"
            )
    return None
