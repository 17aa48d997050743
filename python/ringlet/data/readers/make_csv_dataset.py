"""make_csv_dataset: shuffled batches of CSV columns (``tf.data.experimental.make_csv_dataset``)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from ringlet.data.dataset import Dataset
from ringlet.data.graph.count_arguments import AUTOTUNE
from ringlet.data.graph.element_structure import Nest
from ringlet.data.operations.list_files import matching_files
from ringlet.data.readers.byte_stream import check_compression
from ringlet.data.readers.csv_dataset import csv_columns, csv_node, dialect
from ringlet.data.readers.csv_records import Dialect, Record, RecordBlocks
from ringlet.errors import InvalidArgumentError

_PROBE_BYTES = 64 * 1024


def make_csv_dataset(  # noqa: PLR0917 - the arguments are TensorFlow's
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[str | int] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    r"""Read CSV files into batches: dictionaries of columns, or pairs of a dictionary and labels.

    Parameters
    ----------
    file_pattern : str, path, or sequence of these
        Names of files, or patterns as in `Dataset.list_files`.
    batch_size : int
        Number of rows in a batch.
    column_names : sequence of str, optional
        The names of all columns. By default, the fields of the header record.
    column_defaults : sequence, optional
        One item for each selected column, as in `CsvDataset`. By default, each dtype is the narrowest of
        int32, int64, float32, float64 and text that holds the first rows; empty fields are zero or empty text.
    label_name : str, optional
        The column that becomes the second part of each element.
    select_columns : sequence of str or int, optional
        Names or positions of the columns to read, in the order of the file; None reads all columns.
    field_delim, use_quote_delim, na_value, compression_type
        As in `CsvDataset`.
    header : bool, default True
        Whether the files begin with a header record.
    num_epochs : int, optional
        Number of times to read the files; None repeats them infinitely, with full batches only.
    shuffle : bool, default True
        Whether to shuffle files and rows.
    shuffle_buffer_size : int, default 10000
        Number of rows to draw from, as in `Dataset.shuffle`.
    shuffle_seed : int, optional
    prefetch_buffer_size : int, optional
        As in `Dataset.prefetch`.
    num_parallel_reads : int, optional
        Number of files read concurrently, with interleaved rows. None reads one file after another.
    sloppy : bool, default False
        Accepted for compatibility with TensorFlow; unused: the order never depends on threads.
    num_rows_for_inference : int, optional
        Number of rows for the inference of dtypes; None uses all rows of all files.
    ignore_errors : bool, default False
        Whether invalid records are skipped.
    encoding : str, default "utf-8"
        Encoding of the header. Text in columns is not decoded: it has the type ``bytes``.

    Returns
    -------
    Dataset

    Raises
    ------
    ValueError
        If no file matches, column names are missing, differ or repeat, a requested column does not exist, or dtypes
        cannot be inferred.
    InvalidArgumentError
        For some other invalid arguments; during iteration, if a record is invalid and `ignore_errors` is False.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("rows.csv").write_text("x,label\n1,a\n2,b\n3,c\n")
    >>> dataset = make_csv_dataset("rows.csv", 2, label_name="label", num_epochs=1, shuffle=False)
    >>> list(dataset)
    [({'x': array([1, 2], dtype=int32)}, array([b'a', b'b'], dtype=object)), ({'x': array([3], dtype=int32)}, ...)]
    """
    files = _files(file_pattern)
    how = dialect(field_delim, use_quote_delim, header)

    def records(file: str, has_header: bool) -> Iterator[Record]:
        return _records(file, how._replace(has_header=has_header), compression_type)

    names = _names(files, column_names, header, records, encoding)
    positions = _selected(select_columns, names)
    if column_defaults is None:
        rows = _good_rows(files, len(names), records, header)
        looked_at = list(islice(rows, num_rows_for_inference))
        column_defaults = [_default([row[at] for row in looked_at], na_value) for at in positions]
    elif len(column_defaults) != len(positions) and select_columns is not None:
        raise ValueError(
            f"column_defaults and select_columns must have the same length, got {len(column_defaults)} defaults and "
            f"{len(positions)} columns"
        )
    chosen = [names[at] for at in positions]
    if label_name is not None and label_name not in chosen:
        raise ValueError(f"label_name must be one of the columns {chosen}, got {label_name!r}")
    filenames = Dataset.from_tensor_slices(np.array(files, object))
    if shuffle:
        filenames = filenames.shuffle(len(files), shuffle_seed)
    node = csv_node(
        filenames,
        csv_columns(column_defaults),
        how,
        na_value=na_value,
        compression_type=compression_type,
        num_parallel_reads=num_parallel_reads,
        selected=() if select_columns is None else tuple(positions),
        make=_by_name(chosen, label_name),
    )
    rows_of_files = Dataset(node)
    if ignore_errors:
        rows_of_files = rows_of_files.ignore_errors()
    if shuffle:
        rows_of_files = rows_of_files.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        rows_of_files = rows_of_files.repeat(num_epochs)
    batches = rows_of_files.batch(batch_size, drop_remainder=num_epochs is None)
    return batches.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _files(file_pattern: Any) -> list[str]:
    is_one = isinstance(file_pattern, (str, bytes, os.PathLike))
    patterns = [os.fsdecode(pattern) for pattern in ([file_pattern] if is_one else file_pattern)]
    files = []
    for pattern in patterns:
        found = matching_files(pattern)
        if not found:
            raise ValueError(
                f"No files match `file_pattern` {pattern}. Pass a file name, or a pattern such as 'data/*.csv'."
            )
        files += found
    if not files:
        raise ValueError(f"`file_pattern` must name at least one file, got {file_pattern!r}")
    return sorted(files)


def _records(file: str, how: Dialect, compression_type: str | None) -> Iterator[Record]:
    blocks = RecordBlocks(file, how, check_compression(compression_type), _PROBE_BYTES)
    try:
        while block := blocks.next_block():
            yield from block
    finally:
        blocks.close()


def _names(
    files: list[str],
    given: Sequence[str] | None,
    header: bool,
    records: Callable[[str, bool], Iterator[Record]],
    encoding: str,
) -> list[str]:
    if given is not None:
        names = list(given)
    elif not header:
        raise ValueError("header=False requires column_names, because the files have no column names")
    else:
        headers = [_header(file, records, encoding) for file in files]
        names = headers[0]
        for file, other in zip(files, headers, strict=True):
            if other != names:
                raise ValueError(f"all files must have the same header: {files[0]} has {names}, but {file} has {other}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"column names must be unique, got duplicates {twice}. Pass column_names=[...]")
    return names


def _header(file: str, records: Callable[[str, bool], Iterator[Record]], encoding: str) -> list[str]:
    first = next(records(file, False), None)
    if first is None:
        raise ValueError(f"{file} is empty, so it has no header line")
    if first.error:
        raise InvalidArgumentError(f"{file}, line 1: {first.error}")
    try:
        return [text.decode(encoding) for text in first.fields]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}, line 1: the header is not {encoding} text ({error}). Pass encoding=...") from error


def _selected(given: Sequence[str | int] | None, names: list[str]) -> list[int]:
    if given is None:
        return list(range(len(names)))
    positions = []
    for column in given:
        is_position = isinstance(column, int)
        if (is_position and not 0 <= column < len(names)) or (not is_position and column not in names):  # type: ignore[operator]
            raise ValueError(
                f"select_columns has {column!r}, which is not a column: pass names from {names}, or positions "
                f"from 0 to {len(names) - 1}"
            )
        positions.append(column if isinstance(column, int) else names.index(column))
    if len(set(positions)) < len(positions):
        raise ValueError(f"select_columns must not contain duplicates, got {list(given)}")
    return sorted(positions)


def _good_rows(
    files: list[str], count: int, records: Callable[[str, bool], Iterator[Record]], header: bool
) -> Iterator[list[bytes]]:
    for file in files:
        for record in records(file, header):
            if record.error or len(record.fields) != count:
                what = record.error or f"{len(record.fields)} fields found, {count} columns expected"
                raise ValueError(
                    f"{file}, line {record.line}, while inferring dtypes: {what}. Pass column_defaults=[...]"
                )
            yield record.fields


def _default(values: list[bytes], na_value: str) -> Any:
    """Return the default of a column: a zero of the narrowest dtype that holds all nonempty values, or empty text."""
    texts = [value for value in values if value not in (b"", na_value.encode())]
    for dtype, holds in _INFERRED if texts else []:
        if all(holds(value) for value in texts):
            return np.zeros(1, dtype)
    return [""]


def _is_integer(value: bytes, dtype: Any) -> bool:
    try:
        return np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max and b"_" not in value
    except ValueError:
        return False


def _is_float(value: bytes, dtype: Any) -> bool:
    try:
        number = float(value)
    except ValueError:
        return False
    return b"_" not in value and number <= float(np.finfo(dtype).max)


_INFERRED: list[tuple[Any, Callable[[bytes], bool]]] = [
    (np.int32, lambda value: _is_integer(value, np.int32)),
    (np.int64, lambda value: _is_integer(value, np.int64)),
    (np.float32, lambda value: _is_float(value, np.float32)),
    (np.float64, lambda value: _is_float(value, np.float64)),
]


def _by_name(names: list[str], label: str | None) -> Callable[[tuple[Any, ...]], Nest]:
    def make(values: tuple[Any, ...]) -> Nest:
        row = dict(zip(names, values, strict=True))
        return row if label is None else ({name: value for name, value in row.items() if name != label}, row[label])

    return make
