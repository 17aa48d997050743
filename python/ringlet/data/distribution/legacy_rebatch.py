"""LegacyRebatch: splits each batch separately into a part for each replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.distribution.replica_rows import chunk_slices
from ringlet.data.graph.batch_rows import example_rows
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, RowReader, RowStream, State, Stream
from ringlet.data.graph.table import Rows, row_count, row_numbers
from ringlet.data.operations.batch import Batch
from ringlet.data.operations.with_options import WithOptions
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import map_structure


def legacy_rebatch(dataset: Dataset, num_replicas: int) -> Dataset:
    """Split every batch into parts of ``ceil(rows / num_replicas)`` rows; the last parts may be short or empty.

    TensorFlow's strategies rebatch datasets of unknown batch size in this way. Parts of NumPy arrays are views.
    """
    return type(dataset)(LegacyRebatch(dataset.node, positive(num_replicas, "num_replicas")))


@dataclass(frozen=True, eq=False)
class LegacyRebatch(ElementTransform):
    """Node that splits each element into consecutive parts; yields all parts, or the parts with the indices `kept`."""

    num_replicas: int
    kept: tuple[int, ...] | None = None

    cardinality = UNKNOWN_CARDINALITY  # as in TensorFlow

    @property
    def element_spec(self) -> Nest:
        """The specs of the input with a replica's batch size: unknown if the input's is, or does not divide evenly."""
        return map_structure(self._part_spec, self.input.element_spec)

    def _part_spec(self, spec: TensorSpec) -> TensorSpec:
        if spec.shape is None:
            return spec
        if not spec.shape:
            raise InvalidArgumentError(
                f"cannot split elements into {self.num_replicas} parts, because they hold scalars "
                f"({self.input.element_spec}). Call dataset.batch(batch_size) first."
            )
        rows = spec.shape[0]
        return spec.with_rows(None if rows is None or rows % self.num_replicas else rows // self.num_replicas)

    @property
    def example(self) -> Nest:
        return example_rows(self.input.example, 1)

    @property
    def bytes_copied(self) -> int:
        return self.input.bytes_copied // self.num_replicas

    def open_elements(self, context: IterationContext) -> Stream:
        source = self.input
        while isinstance(source, WithOptions):
            source = source.input
        kept = tuple(range(self.num_replicas)) if self.kept is None else self.kept
        if self.kept is not None and isinstance(source, Batch) and source.input.table is not None:
            return PartRows(source, source.input.open_rows(context), self.num_replicas, kept)
        return PartElements(self, context, kept)


class PartElements(InputStream):
    """Stream that yields the kept parts of each batch of its input."""

    SAVED = ("part",)
    _batch: Nest | None = None
    _part = 0  # index of the next part among the kept parts

    def __init__(self, node: LegacyRebatch, context: IterationContext, kept: tuple[int, ...]) -> None:
        super().__init__(node, context)
        self._kept = kept

    def __next__(self) -> Nest:
        if self._batch is None:
            self._batch, self._part = next(self._input), 0
        part = map_structure(self._cut, self._batch)
        self._part += 1
        if self._part == len(self._kept):
            self._batch = None
        return part

    def _cut(self, array: Any) -> Any:
        if array is None:
            return None
        if not getattr(array, "shape", ()):
            raise InvalidArgumentError(
                f"cannot split an element into {self._node.num_replicas} parts, because it holds the scalar {array!r}. "
                "Call dataset.batch(batch_size) first."
            )
        return array[chunk_slices(array.shape[0], self._node.num_replicas)[self._kept[self._part]]]

    def close(self) -> None:
        self._batch = None
        super().close()

    def get_state(self) -> State:
        left = [] if self._batch is None else [self._batch]
        return {**super().get_state(), "batch": save_elements(left)}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        left = load_elements(state["batch"], self._node.input)
        self._batch = left[0] if left else None


class PartRows(RowReader):
    """Stream of the parts of batches of table rows; gathers only the rows of the kept parts."""

    def __init__(self, batch: Batch, rows: RowStream, num_replicas: int, kept: tuple[int, ...]) -> None:
        super().__init__(rows)
        self._batch = batch
        self._num_replicas = num_replicas
        self._kept = kept
        self._parts: list[Rows] = []  # kept parts of the current batch
        self._part = 0  # index of the next part

    def __next__(self) -> Nest:
        if self._part == len(self._parts):
            self._parts, self._part = self._next_batch(), 0
        part = self._parts[self._part]
        self._part += 1
        table = self._batch.input.table
        assert table is not None  # the node opens this stream only for rows of a table
        return table.batch(part)

    def _next_batch(self) -> list[Rows]:
        if self._rows is None:
            raise StopIteration
        rows = self._rows.next_rows(self._batch.batch_size)
        if row_count(rows) < (self._batch.batch_size if self._batch.drop_remainder else 1):
            self.close()
            raise StopIteration
        chunks = chunk_slices(row_count(rows), self._num_replicas)
        return [_rows_at(rows, chunks[number]) for number in self._kept]

    def close(self) -> None:
        super().close()
        self._parts, self._part = [], 0

    def get_state(self) -> State:
        """Return the row numbers of the remaining parts, and the state of the row stream (None after its end)."""
        left = [row_numbers(part).copy() for part in self._parts[self._part :]]
        return {"left": left, **super().get_state()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._parts = [np.array(part, np.int64) for part in state["left"]]


def _rows_at(rows: Rows, places: slice) -> Rows:
    return slice(rows.start + places.start, rows.start + places.stop) if isinstance(rows, slice) else rows[places]
