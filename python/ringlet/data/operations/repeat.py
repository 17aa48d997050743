"""A dataset several times over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node, RowStream, Run, State, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count, row_numbers
from ringlet.data.operations.counts import count_or_all

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Repeat", "repeat"]

FOREVER = -1


def repeat(self: Dataset, count: int | None = None, name: str | None = None) -> Dataset:
    """Go through the dataset `count` times.

    Parameters
    ----------
    count : int, optional
        None or -1 repeats without end. A dataset without elements ends all the same.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        A shuffle before it gives another order in every round, unless it was told not to.

    Raises
    ------
    TypeError
        If `count` is not an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [x.tolist() for x in Dataset.range(3).repeat(2).batch(4)]
    [[0, 1, 2, 0], [1, 2]]
    >>> len(Dataset.range(3).repeat(2))
    6
    """
    return type(self)(Repeat(self.node, count_or_all(FOREVER if count is None else count, "count")))


@dataclass(frozen=True, eq=False)
class Repeat(Transformation):
    """All elements, `count` times; -1 is without end."""

    count: int

    @property
    def cardinality(self) -> int:
        """`count` times that of the input."""
        size = self.input.cardinality
        if size == 0 or self.count == 0:
            return 0
        if self.count == FOREVER:
            return INFINITE_CARDINALITY
        return size * self.count if size > 0 else size

    @property
    def rounds(self) -> int:
        """How often to open the input: never where that would give nothing."""
        return 0 if self.cardinality == 0 else self.count

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers."""
        return RepeatRows(self.input, self.rounds, run)

    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements."""
        return RepeatElements(self.input, self.rounds, run)


class RepeatRows(RowStream):
    """The row numbers of a node, in one round behind another."""

    __slots__ = ("_node", "_round", "_rounds", "_rows", "_run")

    def __init__(self, node: Node, rounds: int, run: Run) -> None:
        self._node = node
        self._rounds = rounds
        self._run = run
        self._round = 0
        # The first round is opened at once, so that its nodes count this iteration where it begins.
        self._rows = self._open_round()

    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""
        parts: list[Rows] = []
        missing = count
        while self._rows is not None:
            rows = self._rows.next_rows(missing)
            missing -= row_count(rows)
            if missing == 0:
                return _joined([*parts, rows])
            parts.append(rows)
            self._round += 1
            self._rows = self._open_round()
        return _joined(parts)

    def _open_round(self) -> RowStream | None:
        return None if self._round == self._rounds else self._node.open_rows(self._run.in_round(self._round))

    def get_state(self) -> State:
        """Give the round, and the state of the input in it; None behind the last round."""
        return {"input": None if self._rows is None else self._rows.get_state(), "round": self._round}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._round = state["round"]
        self._rows = None if state["input"] is None else self._open_round()
        if self._rows is not None:
            self._rows.set_state(state["input"])


def _joined(parts: list[Rows]) -> Rows:
    parts = [rows for rows in parts if row_count(rows)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([row_numbers(rows) for rows in parts]) if parts else slice(0, 0)


class RepeatElements(Stream):
    """The elements of a node, in one round behind another."""

    __slots__ = ("_input", "_is_empty_round", "_node", "_round", "_rounds", "_run")

    def __init__(self, node: Node, rounds: int, run: Run) -> None:
        self._node = node
        self._rounds = rounds
        self._run = run
        self._round = 0
        self._is_empty_round = True
        # The first round is opened at once, so that its nodes count this iteration where it begins.
        self._input = self._open_round()

    def __next__(self) -> Nest:
        while self._input is not None:
            try:
                element = next(self._input)
            except StopIteration:
                self._end_round()
            else:
                self._is_empty_round = False
                return element
        raise StopIteration

    def _open_round(self) -> Stream | None:
        return None if self._round == self._rounds else self._node.open(self._run.in_round(self._round))

    def _end_round(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None
        self._round += 1
        # Nothing came where the number of elements was unknown: repeating that without end would never return.
        if not (self._is_empty_round and self._rounds == FOREVER):
            self._is_empty_round = True
            self._input = self._open_round()

    def close(self) -> None:
        """Close the current round and open no other."""
        if self._input is not None:
            self._input.close()
            self._input = None

    def get_state(self) -> State:
        """Give the round, and the state of the input in it; None behind the last round."""
        return {
            "input": None if self._input is None else self._input.get_state(),
            "round": self._round,
            "is_empty_round": self._is_empty_round,
        }

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self.close()
        self._round = state["round"]
        self._is_empty_round = state["is_empty_round"]
        if state["input"] is not None:
            self._input = self._open_round()
        if self._input is not None:
            self._input.set_state(state["input"])
