"""Dataset.from_csv: the rows of CSV files, read with Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.readers.arrow_columns import import_arrow
from ringlet.data.readers.byte_stream import open_bytes
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import parallel_reads
from ringlet.data.readers.table_reader import ArrowBlocks, TableReader, column_names
from ringlet.errors import InvalidArgumentError

_BLOCK_BYTES = 1024 * 1024


def from_csv(
    cls: type[Dataset],
    filenames: FileNames,
    columns: Sequence[str] | str | None = None,
    *,
    header: Sequence[str] | None = None,
    delimiter: str = ",",
    column_types: Mapping[str, Any] | None = None,
    fill_null: Any = None,
    num_parallel_reads: int | None = None,
    encoding: str = "utf8",
) -> Dataset:
    r"""Create a dataset of the rows of CSV files, read on demand.

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
        Files whose names end with the suffix of a compression format, such as ``.gz``, are decompressed.
    columns : sequence of str, optional
        The columns to read; None reads all columns.
    header : sequence of str, optional
        Names of the columns in files without a header line. By default, the first line of each file is the header.
    delimiter : str, default ","
        The separator between values.
    column_types : dict, optional
        A dtype, ``str`` or ``bytes`` for some columns. The types of other columns are inferred from the first megabyte
        of each file: int64, float64, bool, dates and times, or text.
    fill_null : object or dict, optional
        The substitute for missing values: one value for all columns, or a dictionary for some columns. By default, a
        missing value is an error. Empty text is not a missing value.
    num_parallel_reads : int, optional
        Number of files read concurrently, in threads, with interleaved rows. None reads one file after
        another; AUTOTUNE (-1) means 4.
    encoding : str, default "utf8"
        Encoding of the text in the files: any encoding that Python supports, such as ``"latin-1"``.

    Returns
    -------
    Dataset
        Elements are dictionaries of one value for each column: numbers, dates and times as NumPy scalars, text as
        ``str``. A ``batch`` directly after this dataset slices the columns, without a loop over rows.

    Raises
    ------
    ImportError
        If pyarrow is not installed: ``pip install 'ringlet[data]'``.
    InvalidArgumentError
        If an argument is invalid; during iteration, if a column is missing, a line has the wrong number of fields, or a
        value does not have the type of its column, or is missing without a `fill_null`.
    NotFoundError
        During iteration, if a file does not exist.

    Notes
    -----
    The dataset uses a few megabytes of memory for files of any size. The state of an iterator is the row number;
    restoring reads the file again up to this row.

    Examples
    --------
    >>> from pathlib import Path
    >>> from ringlet.data import Dataset
    >>> _ = Path("rows.csv").write_text("x,name\n1,a\n2,b\n")
    >>> list(Dataset.from_csv("rows.csv", column_types={"x": np.float32}))
    [{'x': np.float32(1.0), 'name': 'a'}, {'x': np.float32(2.0), 'name': 'b'}]
    """
    import_arrow("from_csv")
    types = {name: _arrow_type(name, dtype) for name, dtype in (column_types or {}).items()}
    names = tuple(header) if header is not None else None
    reads = parallel_reads(num_parallel_reads)
    node = names_node(filenames)
    return cls(CsvReader(node, reads, column_names(columns), fill_null, names, delimiter, types, encoding))


def _arrow_type(name: str, dtype: Any) -> Any:
    import pyarrow

    if isinstance(dtype, pyarrow.DataType):
        return dtype
    if dtype in (str, bytes):
        return pyarrow.string() if dtype is str else pyarrow.binary()
    try:
        return pyarrow.from_numpy_dtype(np.dtype(dtype))
    except (TypeError, NotImplementedError) as error:
        raise InvalidArgumentError(f"column_types[{name!r}] must be a dtype, str or bytes, got {dtype!r}") from error


@dataclass(frozen=True, eq=False)
class CsvReader(TableReader):
    """The node of `Dataset.from_csv`."""

    header: tuple[str, ...] | None
    delimiter: str
    column_types: Mapping[str, Any] = field(repr=False)
    encoding: str = "utf8"

    def open_file(self, name: str) -> ArrowBlocks:
        return CsvBlocks(name, self)


class CsvBlocks(ArrowBlocks):
    """Reader of the rows of one CSV file."""

    def __init__(self, name: str, reader: CsvReader) -> None:
        from pyarrow import ArrowException, csv

        super().__init__(name, reader.fill_null)
        stream = open_bytes(name, "")  # raises the same errors as other readers
        is_empty = stream.bytes_left == 0
        stream.close()
        try:
            self._file = (
                None
                if is_empty
                else csv.open_csv(
                    name,
                    read_options=csv.ReadOptions(
                        use_threads=False, block_size=_BLOCK_BYTES, column_names=reader.header, encoding=reader.encoding
                    ),
                    parse_options=csv.ParseOptions(delimiter=reader.delimiter),
                    convert_options=csv.ConvertOptions(
                        column_types=dict(reader.column_types), include_columns=reader.columns
                    ),
                )
            )
            _ = self._file and self._file.schema.names  # decodes the header
        except (ValueError, KeyError, OSError, LookupError, ArrowException) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> InvalidArgumentError:
        if isinstance(error, UnicodeDecodeError):
            return InvalidArgumentError(
                f"{self.name}, line 1: the header is not {error.encoding} text: byte {error.object[error.start]:#x} in "
                f"{error.object!r}. Pass the encoding of the file, as in encoding='latin-1'."
            )
        reason = str(error.args[0] if error.args else error)
        hint = ". Pass the type of the column, as in column_types={'x': str}." if "conversion error" in reason else ""
        if "UTF8" in reason or "UTF-8" in reason:
            hint = ". Pass the encoding of the file, as in encoding='latin-1'."
        return InvalidArgumentError(f"{self.name}, in or after row {self._row}: {reason}{hint}")

    def _start(self, row: int) -> tuple[Any, int]:
        return self._file or iter(()), 0

    def _next_batch(self) -> Any:
        return next(iter(self._batches), None)

    def _empty_batch(self) -> Any:
        import pyarrow

        schema = self._file.schema if self._file is not None else pyarrow.schema([])
        return pyarrow.RecordBatch.from_pylist([], schema=schema)

    def close(self) -> None:
        self._batches = iter(())
        if self._file is not None:
            self._file.close()
