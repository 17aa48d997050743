"""Dataset.repeat: several iterations of a dataset in sequence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.count_arguments import count_or_all
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, RowStream, State, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count, row_numbers
from ringlet.data.operations.shuffle import Shuffle

FOREVER = -1

# Number of consecutive empty rounds of a shuffle after which an infinite repeat ends.
MOST_EMPTY_ROUNDS = 1000


def repeat(self: Dataset, count: int | None = None, name: str | None = None) -> Dataset:
    """Repeat the dataset `count` times.

    Parameters
    ----------
    count : int, optional
        Number of rounds; None or a negative number repeats infinitely. An infinite repeat ends at the first round
        without elements. Directly after a `shuffle`, it ends only if the first round, or 1000 consecutive rounds, have
        no elements.
    name : str, unused

    Returns
    -------
    Dataset
        A shuffle before the repeat has a different order in every round, unless ``reshuffle_each_iteration=False``.

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
    """Node that repeats its input `count` times, or infinitely if `count` is -1."""

    count: int

    @property
    def cardinality(self) -> int:
        size = self.input.cardinality
        if size == 0 or self.count == 0:
            return 0
        if self.count == FOREVER:
            return INFINITE_CARDINALITY
        return size * self.count if size > 0 else size

    @property
    def rounds(self) -> int:
        """Number of times to open the input, -1 for infinitely often; zero if the input is known to be empty."""
        return 0 if self.cardinality == 0 else self.count

    def open_rows(self, context: IterationContext) -> RowStream:
        return RepeatRows(self.input, self.rounds, context)

    def open_elements(self, context: IterationContext) -> Stream:
        # TensorFlow fuses a shuffle and a repeat into one operation, which skips empty rounds.
        most_empty = MOST_EMPTY_ROUNDS if isinstance(self.input, Shuffle) else 1
        return RepeatElements(self.input, self.rounds, context, most_empty)


class RepeatRows(RowStream):
    """Stream of the row numbers of a node, in consecutive rounds."""

    def __init__(self, node: Node, rounds: int, context: IterationContext) -> None:
        self._node = node
        self._rounds = rounds
        self._context = context
        self._round = 0
        # The first round is opened immediately, so that its nodes count the iteration at the start.
        self._rows = self._open_round()

    def next_rows(self, count: int) -> Rows:
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
        return None if self._round == self._rounds else self._node.open_rows(self._context.in_round(self._round))

    def get_state(self) -> State:
        """Return the round and the state of the input in this round; None after the last round."""
        return {"input": None if self._rows is None else self._rows.get_state(), "round": self._round}

    def set_state(self, state: State) -> None:
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
    """Stream of the elements of a node, in consecutive rounds.

    An infinite repeat ends if the first round is empty, or if `most_empty` consecutive rounds are empty.
    """

    def __init__(self, node: Node, rounds: int, context: IterationContext, most_empty: int) -> None:
        self._node = node
        self._rounds = rounds
        self._context = context
        self._most_empty = most_empty
        self._empty_rounds = 0  # number of consecutive empty rounds, including the current round
        self._round = 0
        self._is_empty_round = True
        # The first round is opened immediately, so that its nodes count the iteration at the start.
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
        return None if self._round == self._rounds else self._node.open(self._context.in_round(self._round))

    def _end_round(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None
        self._empty_rounds = self._empty_rounds + 1 if self._is_empty_round else 0
        self._round += 1
        # Infinite repetition of empty rounds would never return.
        has_nothing = self._empty_rounds == self._round or self._empty_rounds >= self._most_empty
        if not (has_nothing and self._is_empty_round and self._rounds == FOREVER):
            self._is_empty_round = True
            self._input = self._open_round()

    def close(self) -> None:
        if self._input is not None:
            self._input.close()
            self._input = None

    def get_state(self) -> State:
        """Return the round and the state of the input in this round; None after the last round."""
        return {
            "input": None if self._input is None else self._input.get_state(),
            "round": self._round,
            "is_empty_round": self._is_empty_round,
            "empty_rounds": self._empty_rounds,
        }

    def set_state(self, state: State) -> None:
        self.close()
        self._round = state["round"]
        self._is_empty_round = state["is_empty_round"]
        self._empty_rounds = state.get("empty_rounds", 0)  # missing in states of earlier releases
        if state["input"] is not None:
            self._input = self._open_round()
        if self._input is not None:
            self._input.set_state(state["input"])
