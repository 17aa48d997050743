"""Whether replicas that combine nested structures mean the same by each array."""

from __future__ import annotations

from ringlet import nest
from ringlet.errors import CollectiveMismatchError

__all__ = ["LEAF", "Shapes"]

# The shape of what is no structure.
LEAF = nest.flatten(0)[1]


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
        self._places = ([LEAF] * num_replicas, [LEAF] * num_replicas)
        self._turns = [0] * num_replicas

    def state(self, replica: int, shape: nest.PyTreeSpec) -> None:
        """Say what a replica is about to combine. A call that fails before others see it may be made again."""
        self._places[self._turns[replica]][replica] = shape

    def compare(self, replica: int, shape: nest.PyTreeSpec, call: str = "all_reduce") -> None:
        """Raise unless replica 0 combined the same structure, in the call that has returned."""
        turn = self._turns[replica]
        first = self._places[turn][0]
        self._turns[replica] = 1 - turn
        # Paths decide: types that name the same places, such as lists and tuples, mean the same.
        if shape is not first and shape != first and shape.paths() != first.paths():
            raise CollectiveMismatchError(
                f"the replicas called {call} with different structures: replica 0 {nest.describe(first)}, replica "
                f"{replica} {nest.describe(shape)}, with * for each array. Give the same keys on every replica, with "
                "zeros where one has nothing to add"
            )
