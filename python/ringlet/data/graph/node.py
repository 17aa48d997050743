"""Base classes of the graph of a dataset: nodes, and the streams that execute them.

A dataset is a graph of *nodes*, small frozen objects that describe operations: ``from_tensor_slices <- shuffle <-
batch``. A node computes nothing. `Node.open` returns a *stream*, a single pass over the node's elements.
The graph can be inspected and rewritten (`Node.inputs`, `Node.with_inputs`) before it runs.

If the elements of a node are rows of a table (see `ringlet.data.graph.table`), `Node.table` is set, and
`Node.open_rows` opens a *row stream*, which yields row numbers, many per call. `Batch` turns row numbers into arrays in
one step; `RowElements` reads the rows one by one. An operation that selects or orders elements is implemented twice,
for elements and for row numbers; every other operation is implemented once.

Both kinds of streams can be saved and restored in another process: `Stream.get_state` and `Stream.set_state`. The
state of the iteration as a whole, such as its seeds, is saved with its `IterationContext` (see
`ringlet.data.graph.pipeline_handle`).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from operator import length_hint
from typing import Any, ClassVar, TypeVar

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.iteration_context import IterationContext
from ringlet.data.graph.table import Rows, Table, row_count, row_numbers
from ringlet.observe import trace_hook

__all__ = [
    "ElementTransform",
    "InputRows",
    "InputStream",
    "IterationContext",
    "Node",
    "OneToOneStream",
    "RowElements",
    "RowReader",
    "RowStream",
    "State",
    "Stream",
    "Transformation",
    "UnaryStream",
]

N = TypeVar("N", bound="Node")

State = dict[str, Any]
"""Saved state of a stream: nested dictionaries (keys are text) and lists of None, bool, int, float, str, bytes and
numeric NumPy arrays and scalars. Integers may have more than 64 bits. It is never modified."""

# Fields of nodes that do not affect the elements.
_NO_SETTINGS = frozenset({"name", "runs", "num_parallel_calls", "deterministic"})


def _no_state(stream: object) -> NotImplementedError:
    return NotImplementedError(
        f"the state of a {type(stream).__name__} cannot be saved or restored. Remove its operation, or read the "
        "dataset from the beginning."
    )


class Stream(ABC):
    """A single pass over the elements of a node.

    After the end, and after `close`, a stream keeps raising StopIteration. An error in user code leaves the stream
    open: the next call continues after the failed element.
    """

    def __iter__(self) -> Iterator[Nest]:
        return self

    @abstractmethod
    def __next__(self) -> Nest:
        """Return the next element."""

    @abstractmethod
    def close(self) -> None:
        """Release the threads, files and buffers of this stream and its inputs. Idempotent."""

    def get_state(self) -> State:
        """Return a snapshot, from which a new stream of an equivalent graph continues; this stream remains usable.

        A closed stream has the same state as an exhausted stream.
        """
        raise _no_state(self)

    def set_state(self, state: State) -> None:
        """Restore a snapshot; called at most once, before anything is read."""
        raise _no_state(self)


class UnaryStream(Stream):
    """Base class of streams with one input, `_input`, which is closed and saved (under ``"input"``) with the stream.

    Attributes named in `SAVED`, such as ``"count"`` for `_count`, are saved too; they hold immutable plain values.
    Subclasses with other state extend `get_state` and `set_state`.
    """

    SAVED: ClassVar[tuple[str, ...]] = ()

    def __init__(self, source: Stream) -> None:
        self._input = source
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        self._input.close()

    def get_state(self) -> State:
        """Return the state of the input (None if this stream is closed) and the attributes in `SAVED`."""
        return {"input": None if self._is_closed else self._input.get_state(), **_attributes(self, self.SAVED)}

    def set_state(self, state: State) -> None:
        if state["input"] is None:
            self.close()
        else:
            self._input.set_state(state["input"])
        _set_attributes(self, self.SAVED, state)


def _attributes(stream: object, names: tuple[str, ...]) -> State:
    return {name: getattr(stream, f"_{name}") for name in names}


def _set_attributes(stream: object, names: tuple[str, ...], state: State) -> None:
    for name in names:
        setattr(stream, f"_{name}", state[name])


class InputStream(UnaryStream):
    """Base class of streams that read the input of a transformation, `_node`."""

    _node: Any

    def __init__(self, node: Transformation, context: IterationContext) -> None:
        super().__init__(node.input.open(context))
        self._node = node


class OneToOneStream(UnaryStream):
    """Base class of streams that yield one element per input element; their state is the state of the input."""

    def get_state(self) -> State:
        return self._input.get_state()

    def set_state(self, state: State) -> None:
        self._input.set_state(state)


class TracedStream(OneToOneStream):
    """Stream that traces the time spent on each element."""

    def __init__(self, source: Stream, name: str) -> None:
        super().__init__(source)
        self._name = name

    def __next__(self) -> Nest:
        if (trace := trace_hook.current) is not None:
            return trace.timed(self._name, "stage", next)(self._input)
        return next(self._input)


class RowStream(ABC):
    """A single pass over the row numbers of a node's elements. A row stream holds only memory, so it has no `close`."""

    @abstractmethod
    def next_rows(self, count: int) -> Rows:
        """Return the next `count` row numbers, or fewer at the end."""

    def get_state(self) -> State:
        """Return a snapshot, from which a new row stream of an equivalent graph continues."""
        raise _no_state(self)

    def set_state(self, state: State) -> None:
        """Restore a snapshot; called at most once, before anything is read."""
        raise _no_state(self)


class InputRows(RowStream):
    """Base class of row streams that read an input row stream, `_rows`; `SAVED` is as for `UnaryStream`."""

    SAVED: ClassVar[tuple[str, ...]] = ()

    def __init__(self, rows: RowStream) -> None:
        self._rows = rows

    def get_state(self) -> State:
        return {"input": self._rows.get_state(), **_attributes(self, self.SAVED)}

    def set_state(self, state: State) -> None:
        self._rows.set_state(state["input"])
        _set_attributes(self, self.SAVED, state)


class RowReader(Stream):
    """Base class of streams of elements that read row numbers; `_rows` is None at the end and after `close`."""

    def __init__(self, rows: RowStream) -> None:
        self._rows: RowStream | None = rows

    def close(self) -> None:
        self._rows = None

    def get_state(self) -> State:
        """Return the state of the row stream; None after its end."""
        return {"input": None if self._rows is None else self._rows.get_state()}

    def set_state(self, state: State) -> None:
        if state["input"] is None:
            self._rows = None
        elif self._rows is not None:
            self._rows.set_state(state["input"])


@dataclass(frozen=True, eq=False)
class Node(ABC):
    """Base class of the operations of a dataset's graph; a node holds no position in an iteration.

    Nodes are frozen dataclasses that compare by identity. Fields that hold nodes are the inputs.
    """

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The input nodes, in the order of the fields."""
        values = (getattr(self, field.name) for field in dataclasses.fields(self))
        return tuple(value for value in values if isinstance(value, Node))

    def with_inputs(self: N, *inputs: Node) -> N:
        """Return the same operation on other inputs; the number of inputs must not change."""
        names = [f.name for f in dataclasses.fields(self) if isinstance(getattr(self, f.name), Node)]
        return dataclasses.replace(self, **dict(zip(names, inputs, strict=True)))

    @property
    def settings(self) -> dict[str, Any]:
        """The fields that are plain values, in order.

        A state is restored only if these fields are equal. `name`, `runs`, `num_parallel_calls` and
        `deterministic` are omitted.
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
        """The specs of an element, a nest of TensorSpec."""

    @property
    @abstractmethod
    def example(self) -> Nest:
        """A representative element for the inference of specs; computing it does not advance any iteration."""

    @property
    def examples(self) -> tuple[Nest, ...]:
        """`example`, and further examples that may differ in size, if they are cheap to compute."""
        return (self.example,)

    @property
    def table(self) -> Table | None:
        """The table whose rows are the elements, or None."""
        return None

    @property
    def in_order(self) -> bool:
        """Whether elements are runs of consecutive rows of the table, so that a batch within a run is a view."""
        return False

    @property
    def from_row_zero(self) -> bool:
        """Whether the elements are the rows 0, 1, 2, ... of the table."""
        return False

    @property
    def runs_user_code(self) -> bool:
        """Whether computing an element calls user functions or iterators, with unknown cost and effects."""
        return any(node.runs_user_code for node in self.inputs)

    @property
    def has_files(self) -> bool:
        """Whether elements are read from files."""
        return any(node.has_files for node in self.inputs)

    @property
    def bytes_copied(self) -> int:
        """Estimated number of bytes written to compute one element, except by user code."""
        return 0

    def choose(self, context: IterationContext) -> None:  # noqa: B027 - most nodes make no choice
        """Make the random choices of an iteration, with `IterationContext.choice`.

        Called when the iteration begins, so that a choice does not depend on whether and when a stream uses it.
        """

    def open_rows(self, context: IterationContext) -> RowStream:
        """Open a stream of row numbers of `table`; only for nodes with a table."""
        raise NotImplementedError(f"{type(self).__name__} does not define open_rows")

    @abstractmethod
    def open_elements(self, context: IterationContext) -> Stream:
        """Open a stream of elements, for nodes without a table."""

    def open(self, context: IterationContext) -> Stream:
        """Open a stream of all elements."""
        table = self.table
        stream = self.open_elements(context) if table is None else RowElements(table, self.open_rows(context))
        return stream if trace_hook.current is None else TracedStream(stream, type(self).__name__)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, bytes))


@dataclass(frozen=True, eq=False)
class Transformation(Node):
    """Base class of nodes with one input; by default, specs and properties are taken from the input."""

    input: Node

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    @property
    def element_spec(self) -> Nest:
        return self.input.element_spec

    @property
    def example(self) -> Nest:
        return self.input.example

    @property
    def examples(self) -> tuple[Nest, ...]:
        """The examples of the input, unless `example` is overridden."""
        return self.input.examples if type(self).example is Transformation.example else (self.example,)

    @property
    def table(self) -> Table | None:
        return self.input.table

    @property
    def in_order(self) -> bool:
        return self.input.in_order

    @property
    def bytes_copied(self) -> int:
        return self.input.bytes_copied


class RowElements(RowReader):
    """Stream of the elements at the row numbers that a row stream yields."""

    # Row numbers to request per call: enough to amortize the cost of a call.
    AT_ONCE = 256

    def __init__(self, table: Table, rows: RowStream) -> None:
        super().__init__(rows)
        self._table = table
        self._block: Rows = slice(0, 0)
        self._numbers: Iterator[int] = iter(())  # the remaining row numbers of the block

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
        super().close()
        self._set_block(slice(0, 0))

    def get_state(self) -> State:
        """Return the unread row numbers of the block, and the state of the row stream (None after its end)."""
        left = row_numbers(self._block)[row_count(self._block) - length_hint(self._numbers) :].copy()
        return {"left": left, **super().get_state()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._set_block(np.array(state["left"], np.int64))


@dataclass(frozen=True, eq=False)
class ElementTransform(Transformation):
    """Base class of transformations that read their input element by element."""

    table = None
    in_order = False
