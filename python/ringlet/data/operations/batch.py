"""Dataset.batch: consecutive elements stacked into batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.adapter_column import repeat_adapted
from ringlet.data.graph.count_arguments import check_parallel_calls, positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.mapped_stream import MappedStream
from ringlet.data.graph.node import (
    ElementTransform,
    IterationContext,
    Node,
    RowReader,
    RowStream,
    State,
    Stream,
    UnaryStream,
)
from ringlet.data.graph.stacking import stack
from ringlet.data.graph.table import Rows, Table, row_numbers
from ringlet.data.graph.thread_map import WORTH_A_THREAD_BYTES, count_calls
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.nest import flatten, map_structure


def batch(
    self: Dataset,
    batch_size: int,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    *,
    name: str | None = None,
) -> Dataset:
    """Stack `batch_size` consecutive elements along a new first dimension.

    Parameters
    ----------
    batch_size : int
    drop_remainder : bool, default False
        Whether to drop the last batch if it is short. If True, `element_spec` has the batch size.
    num_parallel_calls : int, optional
        Number of batches computed concurrently, in threads; AUTOTUNE (-1) means the number of cores. Rows of arrays are
        gathered in threads only if batches are large enough.
    deterministic : bool, optional
        False yields concurrent batches in the order of completion. Otherwise, the order is kept.
    name : str, unused

    Returns
    -------
    Dataset
        Batches of consecutive slices of arrays are views of these arrays; other batches are copies. Their NumPy arrays
        are read-only.

    Raises
    ------
    InvalidArgumentError
        If `batch_size` is zero or negative, or `num_parallel_calls` is neither positive nor AUTOTUNE; during iteration,
        if elements differ in structure, shape or dtype.

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
class Batch(ElementTransform):
    """Node that stacks `batch_size` consecutive elements into a batch."""

    batch_size: int
    drop_remainder: bool
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    @property
    def cardinality(self) -> int:
        return num_batches(self.input.cardinality, self.batch_size, self.drop_remainder)

    @property
    def element_spec(self) -> Nest:
        """The specs of the input with one more dimension, whose size is known only with `drop_remainder`."""
        size = self.batch_size if self.drop_remainder else None
        return map_structure(lambda spec: spec.with_batch(size), self.input.element_spec)

    @property
    def example(self) -> Nest:
        """The example of the input, repeated `batch_size` times; NumPy arrays are not copied."""
        return map_structure(self._repeated, self.input.example)

    @property
    def examples(self) -> tuple[Nest, ...]:
        return tuple(map_structure(self._repeated, example) for example in self.input.examples)

    def _repeated(self, leaf: Any) -> Any:
        if leaf is None:
            return None
        if kind_of(leaf) is not None:
            return repeat_adapted(leaf, self.batch_size)
        array = np.asarray(leaf, dtype=None if hasattr(leaf, "dtype") else object)
        return np.broadcast_to(array, (self.batch_size, *array.shape))

    @property
    def bytes_copied(self) -> int:
        """Zero for views; otherwise the size of a batch in bytes."""
        table = self.input.table
        if table is None:
            return sum(getattr(leaf, "nbytes", 0) for leaf in flatten(self.example)[0])
        return 0 if self.input.in_order and table.is_memory else self.batch_size * table.row_bytes

    def open_elements(self, context: IterationContext) -> Stream:
        table = self.input.table
        least = self.batch_size if self.drop_remainder else 1
        calls = count_calls(self.num_parallel_calls)
        is_ordered = self.deterministic is not False
        if table is None:
            source = self.input.open(context)
            if hasattr(source, "next_batch"):
                return BatchBlocks(source, self.batch_size, least)
            return BatchElements(Groups(source, self.batch_size, least), self.input, calls, is_ordered)
        if self.bytes_copied < WORTH_A_THREAD_BYTES:
            calls = 1
        return BatchRows(RowGroups(self.input.open_rows(context), self.batch_size, least), table, calls, is_ordered)


def num_batches(size: int, batch_size: int, drop_remainder: bool) -> int:
    """Return the number of batches of `size` elements; a negative `size`, a special value, is returned unchanged."""
    if size < 0:
        return size
    return size // batch_size if drop_remainder else -(-size // batch_size)


class RowGroups(RowReader):
    """Stream of the row numbers of each batch."""

    def __init__(self, rows: RowStream, batch_size: int, least: int) -> None:
        super().__init__(rows)
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


class BatchRows(MappedStream[Rows]):
    """Stream of batches of table rows; a batch takes one slice or one gather of each column."""

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


class BatchBlocks(UnaryStream):
    """Stream of batches that the input assembles itself, such as rows of a columnar file."""

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


class Groups(UnaryStream):
    """Stream of lists, each with the elements of one batch."""

    def __init__(self, source: Stream, batch_size: int, least: int) -> None:
        super().__init__(source)
        self._batch_size = batch_size
        self._least = least

    def __next__(self) -> list[Nest]:
        elements = list(islice(self._input, self._batch_size))
        if len(elements) < self._least:
            raise StopIteration
        return elements


class BatchElements(MappedStream[list[Nest]]):
    """Stream of batches of any elements; `make` converts a list of elements to a batch."""

    def __init__(
        self,
        groups: Groups,
        node: Node,
        num_calls: int = 1,
        is_ordered: bool = True,
        make: Callable[[list[Nest]], Nest] = stack,
    ) -> None:
        super().__init__(groups, make, num_calls, is_ordered, "ringlet-batch")
        self._node = node

    def _save_items(self, items: list[list[Nest]]) -> dict[str, Any]:
        return {"elements": [save_elements(elements) for elements in items]}

    def _load_items(self, state: State) -> list[list[Nest]]:
        return [load_elements(elements, self._node) for elements in state["elements"]]
