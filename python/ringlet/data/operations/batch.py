"""Consecutive elements put together into one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.graph.adapter_column import repeated_in_kind
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import Called
from ringlet.data.graph.node import Downstream, Node, RowStream, Run, State, Stream, Transformation
from ringlet.data.graph.stacking import stack
from ringlet.data.graph.table import Rows, Table, row_numbers
from ringlet.data.graph.thread_map import WORTH_A_THREAD_BYTES, count_calls
from ringlet.data.operations.counts import check_parallel_calls, positive
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.nest import flatten, map_structure

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Batch", "batch"]


def batch(
    self: Dataset,
    batch_size: int,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """Put `batch_size` consecutive elements together along a new first dimension.

    Parameters
    ----------
    batch_size : int
    drop_remainder : bool, default False
        Whether to leave out the last batch where it is short. Only then is the size known to `element_spec`.
    num_parallel_calls : int, optional
        How many batches may be made at once, each in a thread; AUTOTUNE (-1) takes the number of cores. Rows of
        arrays are gathered in threads only where a batch is large enough for it to pay.
    deterministic : bool, optional
        False lets batches that are made at once come as they are done. Otherwise they keep their order.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Batches of slices of arrays in their order are views of those arrays; others are copies. All are read-only.

    Raises
    ------
    InvalidArgumentError
        If `batch_size` is zero or negative, or `num_parallel_calls` neither positive nor AUTOTUNE; during iteration, if
        elements differ in structure, shape or dtype.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [x.tolist() for x in Dataset.range(5).batch(2)]
    [[0, 1], [2, 3], [4]]
    >>> Dataset.range(5).batch(2, drop_remainder=True).element_spec
    TensorSpec(shape=(2,), dtype=int64)
    """
    check_parallel_calls(num_parallel_calls)
    size = positive(batch_size, "batch_size")
    return type(self)(Batch(self.node, size, bool(drop_remainder), num_parallel_calls, deterministic))


@dataclass(frozen=True, eq=False)
class Batch(Transformation):
    """`batch_size` consecutive elements as one."""

    batch_size: int
    drop_remainder: bool
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    @property
    def cardinality(self) -> int:
        """Number of batches."""
        size = self.input.cardinality
        if size < 0:
            return size
        return size // self.batch_size if self.drop_remainder else -(-size // self.batch_size)

    @property
    def element_spec(self) -> Nest:
        """The specs of the input with one more dimension, known if every batch is full."""
        size = self.batch_size if self.drop_remainder else None
        return map_structure(lambda spec: spec.with_batch(size), self.input.element_spec)

    @property
    def example(self) -> Nest:
        """The example of the input, `batch_size` times without copying it."""
        return map_structure(self._repeated, self.input.example)

    @property
    def examples(self) -> tuple[Nest, ...]:
        """The examples of the input, each `batch_size` times."""
        return tuple(map_structure(self._repeated, example) for example in self.input.examples)

    def _repeated(self, leaf: Any) -> Any:
        if kind_of(leaf) is not None:
            return repeated_in_kind(leaf, self.batch_size)
        array = np.asarray(leaf, dtype=None if hasattr(leaf, "dtype") else object)
        return np.broadcast_to(array, (self.batch_size, *array.shape))

    @property
    def table(self) -> None:
        """None: a batch is no row."""
        return

    @property
    def in_order(self) -> bool:
        """Means nothing without a table."""
        return False

    @property
    def bytes_copied(self) -> int:
        """Nothing for views; else the size of a batch."""
        table = self.input.table
        if table is None:
            return sum(leaf.nbytes for leaf in flatten(self.example)[0])
        return 0 if self.input.in_order and table.is_memory else self.batch_size * table.row_bytes

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        table = self.input.table
        least = self.batch_size if self.drop_remainder else 1
        calls = count_calls(self.num_parallel_calls)
        is_ordered = self.deterministic is not False
        if table is None:
            source = self.input.open(run)
            if hasattr(source, "next_batch"):
                return BatchBlocks(source, self.batch_size, least)
            return BatchElements(Groups(source, self.batch_size, least), self.input, calls, is_ordered)
        if self.bytes_copied < WORTH_A_THREAD_BYTES:
            calls = 1
        return BatchRows(RowGroups(self.input.open_rows(run), self.batch_size, least), table, calls, is_ordered)


class RowGroups(Stream):
    """The row numbers of each batch."""

    __slots__ = ("_batch_size", "_least", "_rows")

    def __init__(self, rows: RowStream, batch_size: int, least: int) -> None:
        self._rows: RowStream | None = rows
        self._batch_size = batch_size
        self._least = least

    def __next__(self) -> Rows:
        if self._rows is None:
            raise StopIteration
        rows = self._rows.next_rows(self._batch_size)
        if (rows.stop - rows.start if type(rows) is slice else len(rows)) < self._least:
            self._rows = None
            raise StopIteration
        return rows

    def close(self) -> None:
        """Forget the rows."""
        self._rows = None

    def get_state(self) -> State:
        """Give the state of the row stream; None behind its end."""
        return {"input": None if self._rows is None else self._rows.get_state()}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        if state["input"] is None:
            self._rows = None
        elif self._rows is not None:
            self._rows.set_state(state["input"])


class BatchRows(Called[Rows]):
    """Batches of rows of a table: one slice or one gather of each column."""

    __slots__ = ()

    def __init__(self, groups: RowGroups, table: Table, num_calls: int, is_ordered: bool) -> None:
        super().__init__(groups, table.batch, num_calls, is_ordered, "ringlet-batch")

    def __next__(self) -> Nest:
        if self._num_calls == 1 and not self._again:
            return self._function(next(self._input))
        return super().__next__()

    def _save_items(self, items: list[Rows]) -> dict[str, Any]:
        return {"rows": [row_numbers(rows) for rows in items]}

    def _load_items(self, state: State) -> list[Rows]:
        return [np.asarray(rows, np.int64) for rows in state["rows"]]


class BatchBlocks(Downstream):
    """Batches that the input makes by itself, such as rows of a file in columns."""

    __slots__ = ("_batch_size", "_least", "_next_batch")

    def __init__(self, source: Any, batch_size: int, least: int) -> None:
        super().__init__(source)
        self._next_batch = source.next_batch
        self._batch_size = batch_size
        self._least = least

    def __next__(self) -> Nest:
        batch, size = self._next_batch(self._batch_size)
        if size < self._least:
            raise StopIteration
        return batch


class Groups(Downstream):
    """The elements of each batch, in a list."""

    __slots__ = ("_batch_size", "_least")

    def __init__(self, source: Stream, batch_size: int, least: int) -> None:
        super().__init__(source)
        self._batch_size = batch_size
        self._least = least

    def __next__(self) -> list[Nest]:
        elements = list(islice(self._input, self._batch_size))
        if len(elements) < self._least:
            raise StopIteration
        return elements


class BatchElements(Called[list[Nest]]):
    """Batches of any elements, stacked."""

    __slots__ = ("_node",)

    def __init__(self, groups: Groups, node: Node, num_calls: int, is_ordered: bool) -> None:
        super().__init__(groups, stack, num_calls, is_ordered, "ringlet-batch")
        self._node = node

    def _save_items(self, items: list[list[Nest]]) -> dict[str, Any]:
        return {"elements": [save_elements(elements) for elements in items]}

    def _load_items(self, state: State) -> list[list[Nest]]:
        return [load_elements(elements, self._node) for elements in state["elements"]]
