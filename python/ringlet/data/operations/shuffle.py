"""The elements of a dataset in random order.

A *buffer* of ``buffer_size`` *slots* is filled from the input. Each output is taken from a slot drawn at random, which
the next element of the input fills again; when the input has ended, the rest of the buffer comes out in random order.
So no element comes out more than ``buffer_size - 1`` places early, and a buffer as large as the dataset gives every
order with the same probability.

Row numbers are shuffled in blocks (`refill_slots`). The stream of elements draws the same numbers at the same places,
so that an order depends on the seed, the round and the sizes alone, and not on whether the elements are rows of arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import index, length_hint
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Downstream, Node, RowStream, Run, State, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count, row_numbers
from ringlet.data.operations.counts import positive
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Shuffle", "refill_slots", "shuffle"]

Numbers = np.ndarray[Any, np.dtype[np.int64]]

# Slots that are drawn together. A change of it changes the order that a seed gives.
BLOCK = 4096

# More than any input can fill: the whole dataset is the buffer.
WHOLE = 2**63 - 1


def shuffle(
    self: Dataset,
    buffer_size: int,
    seed: int | None = None,
    reshuffle_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Give the elements in random order.

    Parameters
    ----------
    buffer_size : int
        Number of elements to draw from: no element comes out more than ``buffer_size - 1`` places early. As large as
        the dataset, or larger, shuffles perfectly; so does UNKNOWN_CARDINALITY, whatever the size. Slices of arrays are
        not held in the buffer, only their numbers are.
    seed : int, optional
        A program that is run again with the same seed, and the same version of NumPy, sees the same orders. The order
        is NumPy's, not TensorFlow's.
    reshuffle_each_iteration : bool, optional
        True, the default, gives another order each time that the dataset is iterated, and in each round of a `repeat`.
        False gives one and the same order every time, also without a seed.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        If `buffer_size` is zero or negative, or is UNKNOWN_CARDINALITY and the dataset never ends.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.range(5).shuffle(5, seed=1)
    >>> first, second = [[int(x) for x in dataset] for _ in range(2)]
    >>> first == second, sorted(first)
    (False, [0, 1, 2, 3, 4])
    >>> again = Dataset.range(5).shuffle(5, seed=1)
    >>> [int(x) for x in again] == first
    True
    """
    if buffer_size == UNKNOWN_CARDINALITY:
        if self.cardinality() == INFINITE_CARDINALITY:
            raise InvalidArgumentError(
                "this dataset never ends, so its shuffle needs a buffer_size; shuffle before repeat."
            )
        buffer_size = WHOLE
    hint = " An empty dataset has no elements to shuffle: give a buffer_size that does not depend on its size."
    size = positive(buffer_size, "buffer_size", hint)
    entropy = np.random.SeedSequence().entropy if seed is None else _seed(seed)
    return type(self)(Shuffle(self.node, size, entropy, reshuffle_each_iteration is not False))


def _seed(seed: Any) -> int:
    try:
        number = index(seed)
    except TypeError:
        raise TypeError(f"seed must be an integer or None, got {seed!r}") from None
    return 2 * number if number >= 0 else -2 * number - 1  # NumPy takes no negative ones


@dataclass(frozen=True, eq=False)
class Shuffle(Transformation):
    """All elements in an order drawn from a buffer."""

    buffer_size: int
    entropy: Any
    reshuffles: bool
    # Counts the iterations of this node. Copies of it in a rewritten graph count on together.
    runs: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def in_order(self) -> bool:
        """Only with a buffer of one."""
        return self.buffer_size == 1 and self.input.in_order

    @property
    def settings(self) -> dict[str, Any]:
        """Without the seed: a restored iteration brings its own."""
        return {"buffer_size": self.buffer_size, "reshuffles": self.reshuffles}

    def choose(self, run: Run) -> None:
        """Count this iteration."""
        self._choice(run)

    def _choice(self, run: Run) -> list[int]:
        choice: list[int] = run.choice(self, lambda: [self.entropy, next(self.runs)])
        return choice

    def _generator(self, run: Run) -> np.random.Generator:
        entropy, number = self._choice(run)
        key = (number, *run.rounds) if self.reshuffles else ()
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy, spawn_key=key)))

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers."""
        if self.buffer_size == 1:
            return self.input.open_rows(run)
        return ShuffleRows(self.input.open_rows(run), self.buffer_size, self._generator(run))

    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements."""
        if self.buffer_size == 1:
            return self.input.open(run)
        return ShuffleElements(self.input, run, self.buffer_size, self._generator(run))


def refill_slots(buffer: Numbers, slots: Numbers, incoming: Numbers) -> Numbers:
    """Take out the content of one slot after another, and fill each with the next incoming number at once.

    Equals ``for slot, number in zip(slots, incoming): out.append(buffer[slot]); buffer[slot] = number`` without the
    loop: what comes out of a slot is what went into it when it was drawn before, or what was there at the beginning.

    Examples
    --------
    >>> buffer = np.array([0, 1, 2])
    >>> refill_slots(buffer, np.array([1, 0, 1]), np.array([3, 4, 5])), buffer
    (array([1, 0, 3]), array([4, 5, 2]))
    """
    # Small keys are sorted by radix, five times faster.
    keys = slots.astype(np.uint16) if len(buffer) <= 2**16 else slots
    order = np.argsort(keys, kind="stable")
    slots_in_order = slots[order]
    again = slots_in_order[1:] == slots_in_order[:-1]
    out = buffer[slots]
    out[order[1:][again]] = incoming[order[:-1][again]]
    last = np.append(~again, True)[: len(order)]
    buffer[slots_in_order[last]] = incoming[order[last]]
    return out


class ShuffleRows(RowStream):
    """Row numbers of another stream in random order."""

    __slots__ = ("_at", "_buffer", "_buffer_size", "_random", "_ready", "_rows")

    def __init__(self, rows: RowStream, buffer_size: int, random: np.random.Generator) -> None:
        self._rows: RowStream | None = rows
        self._buffer_size = buffer_size
        self._random = random
        self._buffer: Rows | None = None  # None until it is filled; an array of its own once a slot is filled again
        self._ready: Numbers = np.empty(0, np.int64)  # numbers that may come out
        self._at = 0  # how many of them have

    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""
        stop = self._at + count
        if stop > len(self._ready) and self._rows is not None:
            self._make_ready(count)
            stop = count
        numbers = self._ready[self._at : stop]
        self._at += len(numbers)
        return numbers

    def _make_ready(self, count: int) -> None:
        parts = [self._ready[self._at :]]
        missing = count - len(parts[0])
        while missing > 0 and self._rows is not None:
            found = self._fill(self._rows) if self._buffer is None else self._replace(self._rows, self._buffer)
            parts += found
            missing -= sum(map(len, found))
        parts = [part for part in parts if len(part)]
        self._ready = parts[0] if len(parts) == 1 else np.concatenate(parts or [self._ready[:0]])
        self._at = 0

    def _fill(self, rows: RowStream) -> list[Numbers]:
        incoming = rows.next_rows(self._buffer_size)
        if row_count(incoming) < self._buffer_size:
            self._rows = None
            return [self._permuted(incoming)]
        self._buffer = incoming if isinstance(incoming, slice) else incoming.copy()  # the input may own it
        return []

    def _replace(self, rows: RowStream, buffer: Rows) -> list[Numbers]:
        incoming = row_numbers(rows.next_rows(BLOCK))
        found = []
        if len(incoming):
            if isinstance(buffer, slice):
                self._buffer = buffer = row_numbers(buffer)
            slots = self._random.integers(0, self._buffer_size, BLOCK)[: len(incoming)]
            found.append(refill_slots(buffer, slots, incoming))
        if len(incoming) < BLOCK:
            found.append(self._permuted(buffer))
            self._rows = self._buffer = None
        return found

    def _permuted(self, rows: Rows) -> Numbers:
        order: Numbers = self._random.permutation(row_count(rows))
        if isinstance(rows, slice):
            return order + rows.start if rows.start else order
        return rows[order]

    def get_state(self) -> State:
        """Give the numbers in the buffer and those that may come out, and what draws them."""
        return {
            "input": None if self._rows is None else self._rows.get_state(),
            "buffer": None if self._buffer is None else row_numbers(self._buffer).copy(),
            "ready": self._ready[self._at :].copy(),
            "random": self._random.bit_generator.state,
        }

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        if state["input"] is None:
            self._rows = None
        elif self._rows is not None:
            self._rows.set_state(state["input"])
        self._buffer = None if state["buffer"] is None else np.array(state["buffer"], np.int64)
        self._ready = np.array(state["ready"], np.int64)
        self._at = 0
        self._random.bit_generator.state = state["random"]


class ShuffleElements(Downstream):
    """Elements of another stream in random order."""

    __slots__ = ("_block", "_buffer", "_buffer_size", "_is_filled", "_is_rest", "_node", "_random", "_slots")

    def __init__(self, node: Node, run: Run, buffer_size: int, random: np.random.Generator) -> None:
        super().__init__(node.open(run))
        self._node = node
        self._buffer_size = buffer_size
        self._random = random
        self._buffer: list[Nest] = []
        self._block: list[int] = []
        self._slots: Iterator[int] = iter(())  # those of the block that are left
        self._is_filled = False
        self._is_rest = False  # the input has ended, and the rest of the buffer is in the order to come out, reversed

    def __next__(self) -> Nest:
        if not self._is_filled:
            self._fill()
        if not self._is_rest:
            try:
                incoming = next(self._input)
            except StopIteration:
                self._start_rest()
            else:
                slot = self._next_slot()
                element, self._buffer[slot] = self._buffer[slot], incoming
                return element
        if not self._buffer:
            raise StopIteration
        return self._buffer.pop()

    def _fill(self) -> None:
        while len(self._buffer) < self._buffer_size:
            try:
                self._buffer.append(next(self._input))
            except StopIteration:
                self._start_rest()
                break
        self._is_filled = True

    def _next_slot(self) -> int:
        slot = next(self._slots, None)
        if slot is None:
            self._set_slots(self._random.integers(0, self._buffer_size, BLOCK).tolist())
            slot = next(self._slots)
        return slot

    def _set_slots(self, slots: list[int]) -> None:
        self._block = slots
        self._slots = iter(slots)

    def _start_rest(self) -> None:
        order = self._random.permutation(len(self._buffer))
        self._buffer = [self._buffer[position] for position in order[::-1]]
        self._is_filled = self._is_rest = True

    def close(self) -> None:
        """Close the input and drop the buffer."""
        super().close()
        self._is_filled = self._is_rest = True
        self._buffer = []

    def get_state(self) -> State:
        """Give the buffer with its elements, the slots that were drawn, and what draws them."""
        return {
            **super().get_state(),
            "buffer": save_elements(self._buffer),
            "is_filled": self._is_filled,
            "is_rest": self._is_rest,
            "slots": self._block[len(self._block) - length_hint(self._slots) :],
            "random": self._random.bit_generator.state,
        }

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        self._buffer = load_elements(state["buffer"], self._node)
        self._is_filled, self._is_rest = state["is_filled"], state["is_rest"]
        self._set_slots(list(state["slots"]))
        self._random.bit_generator.state = state["random"]
