"""The streams of a cache in memory.

An iteration either *makes* elements and keeps them, or *reads* those that were kept. Its state is where it is, and the
state in which the input began: a restored stream makes the elements up to that place again, unless this process has
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.data.node import Node, RowStream, Run, State, Stream
from ringlet.data.structure import Nest
from ringlet.data.table import Rows, row_count, row_numbers

__all__ = ["CachedElements", "CachedRows", "Store", "same_state"]


class Store:
    """What an iteration that came to its end has kept, and the state in which its input began."""

    __slots__ = ("begun", "kept")

    def __init__(self) -> None:
        self.kept: Any = None  # a list of elements, or row numbers
        self.begun: State | None = None

    def complete(self, kept: Any, begun: State | None) -> None:
        """Take what was kept; the first that comes counts."""
        if self.kept is None:
            self.begun, self.kept = begun, kept


def same_state(one: Any, other: Any) -> bool:
    """Compare two states.

    Examples
    --------
    >>> same_state({"a": [np.arange(2)]}, {"a": [np.arange(2)]})
    True
    """
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same_state(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same_state, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return type(one) is type(other) and one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and bool(one == other)


def _state_of(source: Stream) -> State | None:
    try:
        return source.get_state()
    except NotImplementedError:
        return None  # asked for a state of its own, this stream says so, too


class CachedElements(Stream):
    """Elements that are made, or read."""

    __slots__ = ("_at", "_begun", "_input", "_is_closed", "_keeps", "_kept", "_node", "_run", "_store")

    def __init__(self, node: Node, run: Run, store: Store) -> None:
        self._node = node
        self._run = run
        self._store = store
        self._begun: State | None = store.begun
        self._kept: list[Nest] = store.kept or []
        self._input: Stream | None = None  # None where elements are read
        self._keeps = True  # until one raises
        self._at = 0  # how many came
        self._is_closed = False
        if store.kept is None:
            self._open()

    def _open(self, begun: State | None = None) -> None:
        self._input = self._node.open(self._run)
        if begun is not None:
            self._input.set_state(begun)
        self._begun = _state_of(self._input) if begun is None else begun
        self._kept = []

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if self._input is not None:
            while self._keeps and len(self._kept) < self._at:  # behind a restoration
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
                self._store.complete(self._kept, self._begun)
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
        """Close the input; drop what is not complete."""
        self._is_closed = True
        self._kept = []
        if self._input is not None:
            self._input.close()

    def get_state(self) -> State:
        """Give the place, and the state in which the input began; its present one, where nothing is kept."""
        if self._is_closed:
            return {"at": None, "begun": None, "input": None}
        if self._input is not None and (self._begun is None or not self._keeps):
            return {"at": self._at, "begun": None, "input": self._input.get_state()}
        return {"at": self._at, "begun": self._begun, "input": None}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        if state["at"] is None:
            self.close()
            return
        self._at = state["at"]
        if state["begun"] is None:
            self._keeps = False
            self._open(state["input"])
        elif self._input is not None:
            self._input.set_state(state["begun"])
            self._begun = state["begun"]
        elif not same_state(self._begun, state["begun"]):
            self._open(state["begun"])


class CachedRows(RowStream):
    """Row numbers that are made, or read."""

    __slots__ = ("_at", "_begun", "_kept", "_parts", "_rows", "_store")

    def __init__(self, rows: RowStream, store: Store) -> None:
        self._rows = rows
        self._store = store
        self._begun = rows.get_state() if store.kept is None else store.begun
        self._kept: Any = store.kept  # None where they are made
        self._parts: list[Any] = []
        self._at = 0

    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""
        if self._kept is None:
            made = sum(map(len, self._parts))
            if made < self._at:  # behind a restoration
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
            self._store.complete(self._kept, self._begun)
        return rows

    def get_state(self) -> State:
        """Give the place, and the state in which the input began."""
        return {"at": self._at, "begun": self._begun}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._at = state["at"]
        if self._kept is None or not same_state(self._begun, state["begun"]):
            self._kept, self._begun = None, state["begun"]
            self._rows.set_state(state["begun"])
