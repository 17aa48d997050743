"""Dataset.shuffle: elements in random order.

A *buffer* of ``buffer_size`` *slots* is filled from the input. Each output is taken from a random slot, which is
refilled with the next element of the input. After the end of the input, the rest of the buffer follows in random order.
Therefore, no element moves ahead by more than ``buffer_size - 1`` places, and a buffer as large as the dataset yields
every order with the same probability.

Row numbers are shuffled in blocks (`refill_slots`). The stream of elements draws the same random numbers in the same
order, so the result depends only on the seed, the round and the sizes, not on whether elements are rows of arrays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from operator import length_hint
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import InputStream, IterationContext, RowStream, State, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count, row_numbers
from ringlet.data.operations.random import Seeded, seed_entropy
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError

Numbers = np.ndarray[Any, np.dtype[np.int64]]

# Number of slots drawn at a time. A different number changes the order for a given seed.
BLOCK = 4096

# Larger than any input, so that the buffer holds the whole dataset.
WHOLE = 2**63 - 1


def shuffle(
    self: Dataset,
    buffer_size: int,
    seed: int | None = None,
    reshuffle_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Yield the elements in random order.

    Parameters
    ----------
    buffer_size : int
        Number of elements to draw from: no element moves ahead by more than ``buffer_size - 1`` places. A number that
        is at least the size of the dataset shuffles uniformly, as does UNKNOWN_CARDINALITY for any size. For slices of
        arrays, the buffer holds only row numbers.
    seed : int, optional
        The same seed and NumPy version produce the same order, which differs from TensorFlow's.
    reshuffle_each_iteration : bool, optional
        True, the default, yields a different order in each iteration and in each round of a `repeat`. False yields the
        same order in all iterations, even without a seed.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        If `buffer_size` is zero or negative, or is UNKNOWN_CARDINALITY and the dataset is infinite.

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
                "this dataset is infinite, so shuffle requires a buffer_size. Pass a number, or shuffle before repeat."
            )
        buffer_size = WHOLE
    hint = " If the size of an empty dataset was passed, pass a buffer_size that does not depend on the dataset."
    size = positive(buffer_size, "buffer_size", hint)
    return type(self)(Shuffle(self.node, size, seed_entropy(seed), reshuffle_each_iteration is not False))


@dataclass(frozen=True, eq=False)
class Shuffle(Seeded, Transformation):
    """Node that yields all elements in random order, drawn from a buffer."""

    buffer_size: int
    entropy: Any
    reshuffles: bool
    runs: Iterator[int] = field(default_factory=itertools.count, repr=False)

    @property
    def in_order(self) -> bool:
        return self.buffer_size == 1 and self.input.in_order

    @property
    def settings(self) -> dict[str, Any]:
        """The settings without the seed, which is part of the state."""
        return {"buffer_size": self.buffer_size, "reshuffles": self.reshuffles}

    @cached_property
    def order(self) -> Numbers:
        """A random order of all elements for random access (`at`); the same at every call."""
        return np.random.Generator(np.random.PCG64(np.random.SeedSequence(self.entropy))).permutation(self.cardinality)

    def open_rows(self, context: IterationContext) -> RowStream:
        if self.buffer_size == 1:
            return self.input.open_rows(context)
        return ShuffleRows(self.input.open_rows(context), self.buffer_size, self.generator(context, self.reshuffles))

    def open_elements(self, context: IterationContext) -> Stream:
        if self.buffer_size == 1:
            return self.input.open(context)
        return ShuffleElements(self, context)


def refill_slots(buffer: Numbers, slots: Numbers, incoming: Numbers) -> Numbers:
    """Return the contents of `slots`, read in sequence; each slot is refilled at once with the next incoming number.

    Equals ``for slot, number in zip(slots, incoming): out.append(buffer[slot]); buffer[slot] = number`` without the
    loop: the content of a slot is the number from its previous draw, or its initial content.
    """
    # Small keys are sorted with radix sort, which is five times faster.
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
    """Stream of the row numbers of its input in random order."""

    def __init__(self, rows: RowStream, buffer_size: int, random: np.random.Generator) -> None:
        self._rows: RowStream | None = rows
        self._buffer_size = buffer_size
        self._random = random
        self._buffer: Rows | None = None  # None until filled; a slice becomes an array before a slot is refilled
        self._ready: Numbers = np.empty(0, np.int64)  # shuffled row numbers
        self._at = 0  # number of shuffled row numbers that were yielded

    def next_rows(self, count: int) -> Rows:
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
        self._buffer = incoming if isinstance(incoming, slice) else incoming.copy()  # the buffer is changed in place
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
        return {
            "input": None if self._rows is None else self._rows.get_state(),
            "buffer": None if self._buffer is None else row_numbers(self._buffer).copy(),
            "ready": self._ready[self._at :].copy(),
            "random": self._random.bit_generator.state,
        }

    def set_state(self, state: State) -> None:
        if state["input"] is None:
            self._rows = None
        elif self._rows is not None:
            self._rows.set_state(state["input"])
        self._buffer = None if state["buffer"] is None else np.array(state["buffer"], np.int64)
        self._ready = np.array(state["ready"], np.int64)
        self._at = 0
        self._random.bit_generator.state = state["random"]


class ShuffleElements(InputStream):
    """Stream of the elements of its input in random order."""

    SAVED = ("is_filled", "is_rest")
    _is_filled = False
    _is_rest = False  # True after the input has ended; the rest of the buffer is then in reversed output order

    def __init__(self, node: Shuffle, context: IterationContext) -> None:
        super().__init__(node, context)
        self._random = node.generator(context, node.reshuffles)
        self._buffer: list[Nest] = []
        self._block: list[int] = []
        self._slots: Iterator[int] = iter(())  # the remaining slots of the block

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
        while len(self._buffer) < self._node.buffer_size:
            try:
                self._buffer.append(next(self._input))
            except StopIteration:
                self._start_rest()
                break
        self._is_filled = True

    def _next_slot(self) -> int:
        slot = next(self._slots, None)
        if slot is None:
            self._set_slots(self._random.integers(0, self._node.buffer_size, BLOCK).tolist())
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
        super().close()
        self._is_filled = self._is_rest = True
        self._buffer = []

    def get_state(self) -> State:
        return {
            **super().get_state(),
            "buffer": save_elements(self._buffer),
            "slots": self._block[len(self._block) - length_hint(self._slots) :],
            "random": self._random.bit_generator.state,
        }

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._buffer = load_elements(state["buffer"], self._node.input)
        self._set_slots(list(state["slots"]))
        self._random.bit_generator.state = state["random"]
