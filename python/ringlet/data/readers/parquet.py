"""Dataset.from_parquet: the rows of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.readers.arrow_columns import import_arrow
from ringlet.data.readers.byte_stream import open_bytes
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import parallel_reads
from ringlet.data.readers.table_reader import ArrowBlocks, TableReader, column_names
from ringlet.errors import DataLossError, InvalidArgumentError

# Maximum bytes and number of rows per batch, and bytes of stored data buffered for each column.
_BLOCK_BYTES = 1024 * 1024
_MOST_ROWS = 65536
_BUFFER_BYTES = 256 * 1024


def from_parquet(
    cls: type[Dataset],
    filenames: FileNames,
    columns: Sequence[str] | str | None = None,
    *,
    fill_null: Any = None,
    num_parallel_reads: int | None = None,
) -> Dataset:
    """Create a dataset of the rows of Parquet files, read on demand.

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
        Files that all have the columns in `columns`, or the same columns if `columns` is None.
    columns : sequence of str, optional
        The columns to read; None reads all columns.
    fill_null : object or dict, optional
        The substitute for missing values: one value for all columns, or a dictionary for some columns. By default, a
        missing value is an error.
    num_parallel_reads : int, optional
        Number of files read concurrently, in threads, with interleaved rows. None reads one file after
        another; AUTOTUNE (-1) means 4.

    Returns
    -------
    Dataset
        Elements are dictionaries of one value for each column: numbers, dates and times as NumPy scalars (times with a
        time zone in UTC), text as ``str``, bytes as ``bytes``, lists as vectors. A ``batch`` directly after this
        dataset slices the columns, without a loop over rows; a `shuffle` before the batch adds that loop.

    Raises
    ------
    ImportError
        If pyarrow is not installed: ``pip install 'ringlet[data]'``.
    InvalidArgumentError
        During iteration, if a column does not exist, a value is missing without a `fill_null`, or the type of a column
        is not supported.
    NotFoundError
        During iteration, if a file does not exist.
    DataLossError
        During iteration, if a file is damaged or not a Parquet file.

    Notes
    -----
    For files and row groups of any size, memory holds about a megabyte of rows, and 256 KiB of stored data for each
    column. The state of an iterator is the row number; on restoring, row groups before this row are not
    read again.

    Examples
    --------
    >>> import pyarrow.parquet
    >>> from ringlet.data import Dataset
    >>> table = pyarrow.table({"x": [1, 2, 3], "name": ["a", "b", None]})
    >>> pyarrow.parquet.write_table(table, "rows.parquet")
    >>> for batch in Dataset.from_parquet("rows.parquet", fill_null={"name": ""}).batch(2):
    ...     print(batch)
    {'x': array([1, 2]), 'name': array(['a', 'b'], dtype=object)}
    {'x': array([3]), 'name': array([''], dtype=object)}
    """
    import_arrow("from_parquet")
    reads = parallel_reads(num_parallel_reads)
    return cls(ParquetReader(names_node(filenames), reads, column_names(columns), fill_null))


@dataclass(frozen=True, eq=False)
class ParquetReader(TableReader):
    """The node of `Dataset.from_parquet`."""

    def open_file(self, name: str) -> ArrowBlocks:
        return ParquetBlocks(name, self.columns, self.fill_null)


class ParquetBlocks(ArrowBlocks):
    """Reader of the rows of one Parquet file."""

    def __init__(self, name: str, columns: tuple[str, ...] | None, fill_null: Any) -> None:
        import pyarrow.parquet

        super().__init__(name, fill_null)
        open_bytes(name, "").close()  # raises the same errors as other readers
        self._columns = list(columns) if columns is not None else None
        try:
            self._file = pyarrow.parquet.ParquetFile(name, buffer_size=_BUFFER_BYTES, pre_buffer=False)
            known = self._file.schema_arrow.names
        except (ValueError, OSError, pyarrow.ArrowException) as error:
            raise DataLossError(f"{name} is not a Parquet file, or is damaged: {error}", name) from error
        if missing := [column for column in self._columns or () if column not in known]:
            self._file.close()
            raise InvalidArgumentError(
                f"{name} has no column {missing[0]!r}. The columns are {', '.join(map(repr, known))}."
            )

    def _start(self, row: int) -> tuple[Any, int]:
        metadata = self._file.metadata
        first = size = 0
        groups: list[int] = []
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not groups and first + group.num_rows <= row:
                first += group.num_rows
                continue
            groups.append(number)
            size = max(size, group.total_byte_size // max(group.num_rows, 1))
        rows = max(1, min(_BLOCK_BYTES // max(size, 1), _MOST_ROWS))
        return self._file.iter_batches(rows, row_groups=groups, columns=self._columns, use_threads=False), first

    def _next_batch(self) -> Any:
        return next(self._batches, None)

    def _error(self, error: Exception) -> DataLossError:
        return DataLossError(f"{self.name} is damaged in or after row {self._row}: {error}", self.name, self._row)

    def _empty_batch(self) -> Any:
        import pyarrow

        schema = self._file.schema_arrow
        names = self._columns if self._columns is not None else schema.names
        fields = pyarrow.schema([schema.field(name) for name in names])
        return pyarrow.RecordBatch.from_pylist([], schema=fields)

    def close(self) -> None:
        self._batches = iter(())
        self._file.close()
