"""The graph of operations behind a dataset, and the streams that run it.

A dataset is a graph of *nodes*, small frozen objects that say what to do: ``from_tensor_slices <- shuffle <- batch``. A
node does nothing by itself. `Node.open` makes a *stream*, which gives the node's elements one after another, once.
Since the graph is data, it can be looked at and rewritten (`Node.inputs`, `Node.with_inputs`) before it runs.

Where the elements of a node are rows of a table (see `ringlet.data.graph.table`), `Node.table` says so, and
`Node.open_rows` makes a *row stream*, which gives row numbers instead, many in one call. `Batch` turns them into arrays
in one go; who needs the elements one by one reads them through `RowElements`. So an operation that chooses or orders elements is
written twice, once for any elements and once for row numbers; every other operation is written once.

Both kinds of streams can be saved and go on elsewhere: `Stream.get_state` and `Stream.set_state`. What belongs to the
iteration as a whole, such as the seeds that it chose, is saved with its `Run` (see
`ringlet.data.graph.pipeline_handle`).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, TypeVar

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import Run
from ringlet.data.graph.table import Rows, Table, row_count, row_numbers

__all__ = ["Downstream", "Node", "PassedOn", "RowElements", "RowStream", "Run", "State", "Stream", "Transformation"]

N = TypeVar("N", bound="Node")

State = dict[str, Any]
"""What is saved of a stream: nested dictionaries (keys are text) and lists of None, bool, int, float, str, bytes and
NumPy's arrays and scalars of numbers. Integers may have more than 64 bits. Nothing in it is changed later."""

# Fields of nodes whose values say nothing about which elements there are.
_NO_SETTINGS = frozenset({"name", "runs", "num_parallel_calls", "deterministic"})


def _no_state(stream: object) -> NotImplementedError:
    return NotImplementedError(
        f"the state of a {type(stream).__name__} cannot be saved or restored. Leave out the operation that made it, or "
        "go through the dataset from its beginning."
    )


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

    def get_state(self) -> State:
        """Give a snapshot, from which a fresh stream of an equal graph goes on as this one does; both may be used.

        A stream at its end, or closed, has a state as well: that of a stream without more elements.
        """
        raise _no_state(self)

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken; called once at most, on a stream that nothing was read from."""
        raise _no_state(self)


class Downstream(Stream):
    """A stream that reads one other, `_input`: closes it, and saves its state under ``"input"``.

    Subclasses add to `get_state` and `set_state` what they keep themselves.
    """

    __slots__ = ("_input", "_is_closed")

    def __init__(self, source: Stream) -> None:
        self._input = source
        self._is_closed = False

    def close(self) -> None:
        """Close the input."""
        self._is_closed = True
        self._input.close()

    def get_state(self) -> State:
        """Give the state of the input; None once this stream was closed."""
        return {"input": None if self._is_closed else self._input.get_state()}

    def set_state(self, state: State) -> None:
        """Set the state of the input."""
        if state["input"] is None:
            self.close()
        else:
            self._input.set_state(state["input"])


class PassedOn(Downstream):
    """A stream each of whose elements is made of one of its input's, so that its state is that of the input."""

    __slots__ = ()

    def get_state(self) -> State:
        """Give the state of the input."""
        return self._input.get_state()

    def set_state(self, state: State) -> None:
        """Set the state of the input."""
        self._input.set_state(state)


class RowStream(ABC):
    """The row numbers of a node's elements, in order, once. Holds memory only, so there is nothing to close."""

    __slots__ = ()

    @abstractmethod
    def next_rows(self, count: int) -> Rows:
        """Give the next `count` row numbers, fewer only at the end."""

    def get_state(self) -> State:
        """Give a snapshot, from which a fresh row stream of an equal graph goes on as this one does."""
        raise _no_state(self)

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken; called once at most, on a row stream that nothing was read from."""
        raise _no_state(self)


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
    def settings(self) -> dict[str, Any]:
        """The plain values among the fields, which say what the operation does; in their order.

        States are only restored where they are equal. Numbers of threads and names do not count.
        """
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in _NO_SETTINGS}
        return {name: value for name, value in values.items() if _is_plain(value)}

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
    def examples(self) -> tuple[Nest, ...]:
        """`example`, and others that may differ from it in size where that is easily had."""
        return (self.example,)

    @property
    def table(self) -> Table | None:
        """The table whose rows the elements are, or None."""
        return None

    @property
    def in_order(self) -> bool:
        """Whether the rows of the table come one after another, so that a batch of them is a view."""
        return False

    @property
    def from_row_zero(self) -> bool:
        """Whether the rows of the table are 0, 1, 2, ..., as many as there are elements."""
        return False

    @property
    def runs_user_code(self) -> bool:
        """Whether making an element calls functions or iterators of the user, which may do, and take, anything."""
        return any(node.runs_user_code for node in self.inputs)

    @property
    def has_files(self) -> bool:
        """Whether elements are read from files."""
        return any(node.has_files for node in self.inputs)

    @property
    def bytes_copied(self) -> int:
        """Bytes of memory that making one element writes, where no user code runs."""
        return 0

    def choose(self, run: Run) -> None:  # noqa: B027 - most nodes leave nothing to chance
        """Choose what is left to chance in an iteration, with `Run.choice`; called as the iteration begins.

        So a choice belongs to the iteration, whether and when a stream that uses it is opened.
        """

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


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


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
    def examples(self) -> tuple[Nest, ...]:
        """Those of the input, unless a subclass makes its own."""
        return self.input.examples if type(self).example is Transformation.example else (self.example,)

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

    __slots__ = ("_block", "_numbers", "_rows", "_table")

    # Row numbers to ask for in one call: enough to forget what the call costs.
    AT_ONCE = 256

    def __init__(self, table: Table, rows: RowStream) -> None:
        self._table = table
        self._rows: RowStream | None = rows
        self._block: Rows = slice(0, 0)
        self._numbers: Iterator[int] = iter(())  # those of the block that are left

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
        self._set_block(rows)
        return next(self._numbers)

    def _set_block(self, rows: Rows) -> None:
        self._block = rows
        self._numbers = iter(range(rows.start, rows.stop)) if isinstance(rows, slice) else iter(rows.tolist())

    def close(self) -> None:
        """Forget the rows."""
        self._rows = None
        self._set_block(slice(0, 0))

    def get_state(self) -> State:
        """Give the numbers that are left of those asked for, and the state of the row stream; None behind its end."""
        left = row_numbers(self._block)[row_count(self._block) - length_hint(self._numbers) :].copy()
        return {"left": left, "input": None if self._rows is None else self._rows.get_state()}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        self._set_block(np.array(state["left"], np.int64))
        if state["input"] is None:
            self._rows = None
        elif self._rows is not None:
            self._rows.set_state(state["input"])
