"""Base classes of table readers: rows as dictionaries, batches as slices of columns."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Nest
from ringlet.data.readers.arrow_columns import column_array
from ringlet.data.readers.file_blocks import FileBlocks
from ringlet.data.readers.file_names import text_name
from ringlet.data.readers.file_reader import FileReader
from ringlet.data.readers.row_block import RowBlock, join_rows
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import DataLossError, InvalidArgumentError


def column_names(columns: Any) -> tuple[str, ...] | None:
    """Return the names of selected columns; None for all columns."""
    if columns is None:
        return None
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"columns must be a list of names, got {columns!r}")
    if not names:
        raise InvalidArgumentError("columns=[] selects nothing. Pass at least one name, or None for all columns.")
    return names


@dataclass(frozen=True, eq=False)
class TableReader(FileReader):
    """Base class of nodes over the rows of tables in files."""

    columns: tuple[str, ...] | None
    fill_null: Any = field(repr=False)

    @abstractmethod
    def open_file(self, name: str) -> ArrowBlocks:
        """Return the reader of a file."""

    @cached_property
    def _first_block(self) -> RowBlock:
        """The first block of the first nonempty file, of at most 16; else a block without rows of the first file."""
        first: RowBlock | None = None
        for name in self._first_names():
            blocks = self.open_file(text_name(name))
            try:
                block = blocks.next_block() or blocks.empty_block()
            finally:
                blocks.close()
            first = first if first is not None and not len(block) else block
            if len(block):
                break
        if first is None:
            raise InvalidArgumentError("the columns of the rows are unknown, because the list of files is empty")
        return first

    @cached_property
    def element_spec(self) -> Nest:
        """The specs of the columns in the first rows read; lists have unknown lengths, unless of fixed size."""
        return {name: _column_spec(column) for name, column in self._first_block.columns.items()}

    @cached_property
    def example(self) -> Nest:
        """The first row; zeros and empty text if the files have no rows."""
        for row in self._first_block:
            return row
        return {name: _zeros(spec) for name, spec in self.element_spec.items()}

    def join(self, pieces: list[Any]) -> Nest:
        return join_rows(pieces)


def _column_spec(column: Any) -> TensorSpec:
    if column.dtype == object and len(column) and isinstance(column[0], np.ndarray):
        return TensorSpec((None,), column[0].dtype)
    return TensorSpec(column.shape[1:], column.dtype)


def _zeros(spec: TensorSpec) -> Any:
    if spec.dtype == object:
        return ""
    return np.zeros([size or 0 for size in spec.shape or ()], spec.dtype)[()]


class ArrowBlocks(FileBlocks):
    """Base class of readers that read one file in Arrow batches."""

    def __init__(self, name: str, fill_null: Any) -> None:
        self.name = name
        self.offset = 0  # number of the first row of the current block
        self._fill_null = fill_null
        self._batches: Any = None  # None before the first read
        self._row = 0  # number of the first row of the next batch
        self._next = 0  # number of the next row

    @abstractmethod
    def _start(self, row: int) -> tuple[Any, int]:
        """Return an iterator over batches, from this row or an earlier row, and the number of their first row."""

    @abstractmethod
    def _next_batch(self) -> Any:
        """Return the next batch; None at the end."""

    @abstractmethod
    def _error(self, error: Exception) -> Exception:
        """Convert an error of Arrow to an error of this library."""

    @abstractmethod
    def _empty_batch(self) -> Any:
        """Return a batch without rows."""

    def next_block(self) -> RowBlock:
        from pyarrow import ArrowException

        try:
            return self._read_block()
        except (InvalidArgumentError, DataLossError):
            raise
        except (ValueError, LookupError, OSError, ArrowException) as error:
            raise self._error(error) from error

    def _read_block(self) -> RowBlock:
        if self._batches is None:
            self._batches, self._row = self._start(self._next)
        self.offset = self._next
        while (batch := self._next_batch()) is not None:
            begin, self._row = self._row, self._row + batch.num_rows
            if self._row > self._next:
                rows = batch.slice(self._next - begin)
                self._next = self._row
                return self._block(rows)
        return RowBlock({}, 0)

    def _block(self, batch: Any) -> RowBlock:
        where = f"{self.name} (rows from {self.offset})"
        names = batch.schema.names
        arrays = {name: column_array(batch.column(i), name, self._fill_null, where) for i, name in enumerate(names)}
        return RowBlock(arrays, batch.num_rows)

    def empty_block(self) -> RowBlock:
        """Return a block with all columns but no rows."""
        return self._block(self._empty_batch())

    def skip_to(self, offset: int) -> None:
        self.offset = self._next = offset
