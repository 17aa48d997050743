"""Streams of a cache in memory.

A stream either *computes* elements and stores them, or *reads* stored elements. Its state consists of its position and
the *beginning* of its input: the rounds and the state of the input before the first element. A restored stream computes
the elements up to its position again, unless this process has stored them. The iteration context saves the beginning of
a complete store, so that later rounds of the iteration, restored or not, yield the stored elements, even if the stream
that computed them is closed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, RowStream, State, Stream, Transformation
from ringlet.data.graph.table import Rows, row_count, row_numbers


class Store:
    """The elements of a complete iteration (`kept`; None before there is one), and the beginning of its input."""

    def __init__(self) -> None:
        self.kept: Any = None  # a list of elements, or row numbers
        self.begun: State | None = None

    def complete(self, kept: Any, begun: State | None, replaces: bool = False) -> None:
        """Store the elements, unless other elements are stored and `replaces` is False."""
        if self.kept is None or replaces:
            self.begun, self.kept = begun, kept

    def can_serve(self, begun: State | None) -> bool:
        """Return whether the store has the elements of an iteration with this beginning; None means any beginning."""
        return self.kept is not None and (begun is None or same_state(begun, self.begun))


def same_state(one: Any, other: Any) -> bool:
    """Return whether two states are equal."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same_state(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_state, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


def _beginning(rounds: list[int], source: Stream | RowStream) -> State | None:
    try:
        return {"rounds": rounds, "input": source.get_state()}
    except NotImplementedError:
        return None  # the cache's get_state raises the error again


class CachedElements(Stream):
    """Stream of the elements of a cache, which are computed or read."""

    def __init__(self, cache: Transformation, context: IterationContext, store: Store) -> None:
        self._cache = cache
        self._context = context
        self._store = store
        self._keeps = True  # False once the input raises, since the cache is then incomplete
        self._at = 0  # number of elements yielded so far
        self._go_to(context.chosen(cache))

    def _go_to(self, begun: State | None) -> None:
        """Read the store if it has an iteration with the beginning `begun` (None: any); otherwise compute elements."""
        self._is_closed = False
        # A restored iteration may need elements that differ from the stored elements.
        self._replaces = begun is not None
        if self._keeps and self._store.can_serve(begun):
            self._input: Stream | None = None  # elements are read from the store
            self._kept: list[Nest] = self._store.kept
            self._begun = self._store.begun
            self._context.choose(self._cache, self._begun)
            return
        self._rounds = list(self._context.rounds) if begun is None else begun["rounds"]
        self._input = self._cache.input.open(self._context.at(*self._rounds))
        self._kept = []
        if begun is not None:
            self._input.set_state(begun["input"])
        self._begun = _beginning(self._rounds, self._input) if begun is None else begun

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if self._input is not None:
            while self._keeps and len(self._kept) < self._at:  # after a restore, recompute up to the position
                self._make(self._input)
            element = self._make(self._input)
        elif self._at < len(self._kept):
            element = self._kept[self._at]
        else:
            self.close()
            raise StopIteration
        self._at += 1
        return element

    def _make(self, source: Stream) -> Nest:
        try:
            element = next(source)
        except StopIteration:
            if self._keeps:
                self._store.complete(self._kept, self._begun, self._replaces)
                self._context.choose(self._cache, self._store.begun)
            self.close()
            raise
        except Exception:
            self._keeps = False
            self._kept = []
            raise
        if self._keeps:
            self._kept.append(element)
        return element

    def close(self) -> None:
        """Close the input, and discard the elements of an incomplete iteration."""
        self._is_closed = True
        self._kept = []
        if self._input is not None:
            self._input.close()

    def get_state(self) -> State:
        """Return the position, and the beginning of the input, or its current state if an element has failed."""
        if self._is_closed:
            return {"at": None, "begun": None, "keeps": False}
        begun = self._begun
        if self._input is not None and (begun is None or not self._keeps):
            begun = {"rounds": self._rounds, "input": self._input.get_state()}
        return {"at": self._at, "begun": begun, "keeps": self._keeps}

    def set_state(self, state: State) -> None:
        self.close()
        if state["at"] is not None:
            self._at, self._keeps = state["at"], state["keeps"]
            self._go_to(state["begun"])


class CachedRows(RowStream):
    """Stream of the row numbers of a cache, which are computed or read."""

    def __init__(self, cache: Transformation, context: IterationContext, store: Store) -> None:
        self._cache = cache
        self._context = context
        self._store = store
        self._at = 0
        self._go_to(context.chosen(cache))

    def _go_to(self, begun: State | None) -> None:
        """Read the store if it has an iteration with the beginning `begun` (None: any); otherwise compute rows."""
        self._replaces = begun is not None
        self._parts: list[Any] = []
        self._kept: Any = None  # None while row numbers are computed
        if self._store.can_serve(begun):
            self._kept, self._begun = self._store.kept, self._store.begun
            self._context.choose(self._cache, self._begun)
            return
        rounds = list(self._context.rounds) if begun is None else begun["rounds"]
        self._rows = self._cache.input.open_rows(self._context.at(*rounds))
        if begun is not None:
            self._rows.set_state(begun["input"])
        self._begun = _beginning(rounds, self._rows) if begun is None else begun

    def next_rows(self, count: int) -> Rows:
        if self._kept is None:
            made = sum(map(len, self._parts))
            if made < self._at:  # after a restore, recompute the rows up to the position
                self._make(self._at - made)
        rows = self._make(count) if self._kept is None else self._kept[self._at : self._at + count]
        self._at += row_count(rows)
        return rows

    def _make(self, count: int) -> Rows:
        rows = self._rows.next_rows(count)
        self._parts.append(row_numbers(rows).copy())
        if row_count(rows) < count:
            self._kept = np.concatenate(self._parts)
            self._kept.setflags(write=False)
            self._store.complete(self._kept, self._begun, self._replaces)
            self._context.choose(self._cache, self._store.begun)
        return rows

    def get_state(self) -> State:
        return {"at": self._at, "begun": self._begun}

    def set_state(self, state: State) -> None:
        self._at = state["at"]
        self._go_to(state["begun"])
