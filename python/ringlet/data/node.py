"""The graph of operations behind a dataset, and the streams that run it.

A dataset is a graph of *nodes*, small frozen objects that say what to do: ``from_tensor_slices <- shuffle <- batch``. A
node does nothing by itself. `Node.open` makes a *stream*, which gives the node's elements one after another, once.
Since the graph is data, it can be looked at and rewritten (`Node.inputs`, `Node.with_inputs`) before it runs.

Where the elements of a node are rows of a table (see `ringlet.data.table`), `Node.table` says so, and `Node.open_rows`
makes a *row stream*, which gives row numbers instead, many in one call. `Batch` turns them into arrays in one go; who
needs the elements one by one reads them through `RowElements`. So an operation that chooses or orders elements is
written twice, once for any elements and once for row numbers; every other operation is written once.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ringlet.data.spec import TensorSpec
from ringlet.data.structure import Nest
from ringlet.data.table import Rows, Table, row_count
from ringlet.nest import flatten, map_structure

__all__ = ["Node", "RowElements", "RowStream", "Run", "Stream", "Transformation"]

N = TypeVar("N", bound="Node")


class Run:
    """One iteration of a dataset, as its nodes see it: which of their iterations, and which round of a repeat.

    What is random in a node follows from these two and from its seed, and not from what was opened when: a thread that
    reads ahead opens rounds that nobody may ever see.
    """

    __slots__ = ("_numbers", "rounds")

    def __init__(self) -> None:
        self._numbers: dict[Node, int] = {}
        self.rounds: tuple[int, ...] = ()

    def number(self, node: Node, runs: Iterator[int]) -> int:
        """Give the number of this iteration of a node: the next of `runs` at the first call, the same ever after."""
        if node not in self._numbers:
            self._numbers[node] = next(runs)
        return self._numbers[node]

    def in_round(self, number: int) -> Run:
        """Give the same iteration in one round of a repeat."""
        run = Run()
        run._numbers = self._numbers
        run.rounds = (*self.rounds, number)
        return run


class Stream(ABC):
    """The elements of a node, one after another, once.

    After the end, and after `close`, a stream keeps raising StopIteration. An error of user code leaves it open: the
    next call goes on behind the element at fault.
    """

    __slots__ = ("__weakref__",)

    def __iter__(self) -> Iterator[Nest]:
        return self

    @abstractmethod
    def __next__(self) -> Nest:
        """Give the next element."""

    @abstractmethod
    def close(self) -> None:
        """Let go of threads, files and buffers, at once and down to the source. Does nothing the second time."""


class RowStream(ABC):
    """The row numbers of a node's elements, in order, once. Holds memory only, so there is nothing to close."""

    __slots__ = ()

    @abstractmethod
    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """One operation of a dataset's graph: says what to do, and holds no state of a run.

    Nodes are frozen dataclasses that compare by identity; those of their fields that are nodes are what they read from.
    """

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The nodes that this one reads from, in the order of its fields."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return tuple(value for value in values if isinstance(value, Node))

    def with_inputs(self: N, *inputs: Node) -> N:
        """Give the same operation over other nodes, as many as `inputs` has."""
        names = [f.name for f in dataclasses.fields(self) if isinstance(getattr(self, f.name), Node)]
        return dataclasses.replace(self, **dict(zip(names, inputs, strict=True)))

    @property
    @abstractmethod
    def cardinality(self) -> int:
        """Number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""

    @property
    @abstractmethod
    def element_spec(self) -> Nest:
        """The nest of TensorSpec that every element follows."""

    @property
    @abstractmethod
    def example(self) -> Nest:
        """One element of the kind that this node gives, to infer specs with; never taken from a run."""

    @property
    def table(self) -> Table | None:
        """The table whose rows the elements are, or None."""
        return None

    @property
    def in_order(self) -> bool:
        """Whether the rows of the table come one after another, so that a batch of them is a view."""
        return False

    @property
    def runs_user_code(self) -> bool:
        """Whether making an element calls functions or iterators of the user, which may do, and take, anything."""
        return any(node.runs_user_code for node in self.inputs)

    @property
    def bytes_copied(self) -> int:
        """Bytes of memory that making one element writes, where no user code runs."""
        return 0

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers of `table`; only where there is one."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    @abstractmethod
    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements, where there is no table."""

    def open(self, run: Run) -> Stream:
        """Start a run: a stream of all the elements, from the first."""
        table = self.table
        return self.open_elements(run) if table is None else RowElements(table, self.open_rows(run))

    def empty_component(self, present: Nest) -> Nest | None:
        """Give what a replica without data gets in a step, beside the element `present` of another replica.

        Its arrays have no rows, and no entries along other dimensions that the spec does not know. None if the spec is
        fully defined: nothing without rows would follow it.
        """
        specs, _ = flatten(self.element_spec)
        if all(spec.is_fully_defined for spec in specs):
            return None
        return map_structure(_no_rows, self.element_spec)


def _no_rows(spec: TensorSpec) -> Any:
    if not spec.shape:
        return b"" if spec.dtype == object else spec.dtype.type(0)
    empty = np.zeros([0, *(size or 0 for size in spec.shape[1:])], spec.dtype)
    empty.setflags(write=False)
    return empty


@dataclass(frozen=True, eq=False)
class Transformation(Node):
    """A node with one input, whose elements are like those of its input wherever a subclass does not say otherwise."""

    input: Node

    @property
    def cardinality(self) -> int:
        """Number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return self.input.cardinality

    @property
    def element_spec(self) -> Nest:
        """The nest of TensorSpec that every element follows."""
        return self.input.element_spec

    @property
    def example(self) -> Nest:
        """One element of the kind that this node gives, to infer specs with; never taken from a run."""
        return self.input.example

    @property
    def table(self) -> Table | None:
        """The table whose rows the elements are, or None."""
        return self.input.table

    @property
    def in_order(self) -> bool:
        """Whether the rows of the table come one after another, so that a batch of them is a view."""
        return self.input.in_order

    @property
    def bytes_copied(self) -> int:
        """Bytes of memory that making one element writes, where no user code runs."""
        return self.input.bytes_copied


class RowElements(Stream):
    """The elements of a row stream, one by one."""

    __slots__ = ("_numbers", "_rows", "_table")

    # Row numbers to ask for in one call: enough to forget what the call costs.
    AT_ONCE = 256

    def __init__(self, table: Table, rows: RowStream) -> None:
        self._table = table
        self._rows: RowStream | None = rows
        self._numbers: Iterator[int] = iter(())

    def __next__(self) -> Nest:
        number = next(self._numbers, None)
        if number is None:
            number = self._refill()
        return self._table.element(number)

    def _refill(self) -> int:
        if self._rows is None:
            raise StopIteration
        rows = self._rows.next_rows(self.AT_ONCE)
        if row_count(rows) < self.AT_ONCE:
            self._rows = None
        self._numbers = iter(range(rows.start, rows.stop)) if isinstance(rows, slice) else iter(rows.tolist())
        return next(self._numbers)

    def close(self) -> None:
        """Forget the rows."""
        self._rows = None
        self._numbers = iter(())
