"""CsvDataset: records of CSV files as tuples of values (``tf.data.experimental.CsvDataset``)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, IterationContext, OneToOneStream, Stream
from ringlet.data.readers.byte_stream import check_compression
from ringlet.data.readers.csv_records import CsvRecords, Dialect, Record
from ringlet.data.readers.file_blocks import buffer_bytes
from ringlet.data.readers.file_dataset import FileDataset
from ringlet.data.readers.file_names import FileNames, names_node
from ringlet.data.readers.file_reader import parallel_reads
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError

_INTEGER = re.compile(rb"[+-]?[0-9]+")
_DTYPES = ("float32", "float64", "int32", "int64")


class Column(NamedTuple):
    """The dtype and default of one column; a `dtype` of None means text."""

    dtype: np.dtype[Any] | None
    default: Any
    is_required: bool


class CsvDataset(FileDataset):
    r"""The records of CSV files, as tuples of one value for each column (``tf.data.experimental.CsvDataset``).

    Parameters
    ----------
    filenames : str, path, sequence of these, or Dataset of names
    record_defaults : sequence
        One item for each column that is read. A dtype (float32, float64, int32, int64, or ``str`` or ``bytes`` for
        text) defines a column whose fields must not be empty. A value, or a list of one value, is the default for empty
        fields and determines the dtype of the column.
    compression_type : str, optional
        ``"GZIP"`` or ``"ZLIB"``; None or empty for uncompressed files.
    buffer_size : int, optional
        Number of bytes to read at a time; None means 256 KiB. Longer records extend the buffer.
    header : bool, default False
        Whether the first record of each file is skipped.
    field_delim : str, default ","
        The separator between fields.
    use_quote_delim : bool, default True
        Whether quotation marks may enclose a field. Otherwise they are ordinary characters.
    na_value : str, default ""
        Text that is treated as an empty field.
    select_cols : sequence of int, optional
        The columns to read, in ascending order; None reads all columns.
    exclude_cols : sequence of int, optional
        The columns to skip, in ascending order; cannot be combined with `select_cols`.

    Raises
    ------
    InvalidArgumentError
        If arguments are inconsistent. During iteration, if a record has the wrong number of fields, or a field is not a
        number of its dtype, or is empty and has no default; the iterator continues with the next record.
    NotFoundError
        During iteration, if a file does not exist.

    See Also
    --------
    make_csv_dataset : shuffled batches of columns by name.
    Dataset.from_csv : rows as dictionaries, read by Arrow.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("rows.csv").write_text("a,4.25,5.5,12\nb,-5.25,,2\n")
    >>> for row in CsvDataset("rows.csv", [np.float32, [0.0], np.int32], select_cols=[1, 2, 3]):
    ...     print(*row)
    4.25 5.5 12
    -5.25 0.0 2
    """

    __slots__ = ()

    def __init__(  # noqa: PLR0917 - the arguments are TensorFlow's
        self,
        filenames: FileNames,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        selected, excluded = _positions(select_cols, "select_cols"), _positions(exclude_cols, "exclude_cols")
        columns = csv_columns(record_defaults)
        if selected and excluded:
            raise InvalidArgumentError(
                f"select_cols={list(selected)} and exclude_cols={list(excluded)}: one of them must be empty"
            )
        if selected and len(selected) != len(columns):
            raise InvalidArgumentError(
                f"select_cols must have the same length as record_defaults, got {len(selected)} columns and "
                f"{len(columns)} defaults"
            )
        node = csv_node(
            filenames,
            columns,
            dialect(field_delim, use_quote_delim, header),
            na_value=na_value,
            compression_type=compression_type,
            buffer_size=buffer_size,
            selected=selected,
            excluded=excluded,
        )
        super().__init__(node)


def csv_node(
    filenames: FileNames,
    columns: tuple[Column, ...],
    how: Dialect,
    *,
    na_value: str = "",
    compression_type: str | None = None,
    buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    selected: tuple[int, ...] = (),
    excluded: tuple[int, ...] = (),
    make: Callable[[tuple[Any, ...]], Nest] = tuple,
) -> CsvFields:
    """Return the node of the records of CSV files, each converted to an element by `make`."""
    compression = check_compression(compression_type)
    reads = parallel_reads(num_parallel_reads)
    records = CsvRecords(names_node(filenames), reads, how, compression, buffer_bytes(buffer_size))
    return CsvFields(records, columns, _text(na_value), selected, excluded, make)


def dialect(field_delim: str, use_quote_delim: bool, header: bool) -> Dialect:
    """Return the dialect; raise InvalidArgumentError if `field_delim` is invalid."""
    delimiter = _text(field_delim)
    if len(delimiter) != 1 or delimiter in b'"\r\n':
        raise InvalidArgumentError(
            "field_delim should be only 1 char, an ASCII character other than a quotation mark or a line end, got "
            f"{field_delim!r}"
        )
    return Dialect(delimiter, bool(use_quote_delim), bool(header))


def csv_columns(record_defaults: Any) -> tuple[Column, ...]:
    """Return the columns for a user's `record_defaults`."""
    columns = tuple(_column(number, given) for number, given in enumerate(record_defaults))
    if not columns:
        raise InvalidArgumentError("record_defaults must have at least one item, one for each column")
    return columns


def _column(number: int, given: Any) -> Column:
    if given in (str, bytes) if isinstance(given, type) else isinstance(given, np.dtype) and given.kind in "OSU":
        return Column(None, None, is_required=True)
    if isinstance(given, (type, np.dtype)):
        return Column(_number_dtype(number, given, np.dtype(given)), None, is_required=True)
    value = np.asarray(given)
    if value.size > 1:
        raise InvalidArgumentError(
            f"There should only be 1 default per field but record_defaults[{number}] has {value.size}: {given!r}"
        )
    is_text = value.dtype.kind in "OSU"
    default = value.ravel()[0] if value.size else None
    if is_text:
        return Column(None, _text(default) if value.size else None, is_required=not value.size)
    return Column(_number_dtype(number, given, value.dtype), default, is_required=not value.size)


def _number_dtype(number: int, given: Any, dtype: np.dtype[Any]) -> np.dtype[Any]:
    if dtype.name not in _DTYPES:
        raise InvalidArgumentError(
            f"record_defaults[{number}] is {given!r}, but the dtype of a column must be {', '.join(_DTYPES)} or text "
            "(str or bytes)"
        )
    return dtype


def _text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _positions(given: Any, name: str) -> tuple[int, ...]:
    positions = () if given is None else tuple(int(position) for position in given)
    if any(position < 0 for position in positions):
        raise InvalidArgumentError(f"{name} should be non-negative indices, got {given!r}")
    if any(one >= other for one, other in pairwise(positions)):
        raise InvalidArgumentError(f"{name} should be strictly increasing indices, got {given!r}")
    return positions


@dataclass(frozen=True, eq=False)
class CsvFields(ElementTransform):
    """Node that converts records to elements."""

    columns: tuple[Column, ...] = field(repr=False)
    na_value: bytes
    selected: tuple[int, ...]
    excluded: tuple[int, ...]
    make: Callable[[tuple[Any, ...]], Nest] = field(repr=False)

    cardinality = UNKNOWN_CARDINALITY

    @cached_property
    def element_spec(self) -> Nest:
        return self.make(tuple(TensorSpec((), object if c.dtype is None else c.dtype) for c in self.columns))

    @cached_property
    def example(self) -> Nest:
        return self.make(tuple(b"" if c.dtype is None else c.dtype.type(c.default or 0) for c in self.columns))

    def open_elements(self, context: IterationContext) -> Stream:
        return FieldElements(self.input.open(context), self)

    def values(self, record: Record) -> tuple[Any, ...]:
        """Return the value of each column that is read."""
        fields, count = record.fields, len(self.columns)
        if record.error:
            raise _wrong(record, record.error)
        if self.selected:
            fields = [fields[position] for position in self.selected if position < len(fields)]
        elif self.excluded:
            fields = [text for position, text in enumerate(fields) if position not in self.excluded]
        if len(fields) != count:
            found = "more" if len(fields) > count else len(fields)
            # An empty line is one empty field; the error about an empty field takes precedence.
            if fields != [b""] or not self.columns[0].is_required:
                raise _wrong(record, f"Expect {count} fields but have {found} in record")
        return tuple(self._value(record, number, text) for number, text in enumerate(fields))

    def _value(self, record: Record, number: int, text: bytes) -> Any:
        column = self.columns[number]
        if not text or text == self.na_value:
            if column.is_required:
                raise _wrong(record, f"Field {number} is required but missing in record! Pass a default for the column")
            return column.default
        if column.dtype is None:
            return text
        value = _number(text, column.dtype)
        if value is not None:
            return value
        raise _wrong(record, f"Field {number} in record is not a valid {column.dtype}: {text.decode(errors='replace')}")


def _number(text: bytes, dtype: np.dtype[Any]) -> Any:
    """Parse text as a number of a dtype; return None if it is not a number, or an integer that does not fit."""
    if b"_" in text:  # a digit separator in Python, but not in CSV files
        return None
    if dtype.kind == "f":
        try:
            with np.errstate(over="ignore"):  # on overflow, the number is infinite
                return dtype.type(float(text))
        except ValueError:
            return None
    if not _INTEGER.fullmatch(text.strip(b" ")):
        return None
    number, limits = int(text), np.iinfo(dtype)
    return dtype.type(number) if limits.min <= number <= limits.max else None


def _wrong(record: Record, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{record.file}, line {record.line}: {what}")


class FieldElements(OneToOneStream):
    """Stream of elements converted from the records of its input."""

    def __init__(self, source: Stream, node: CsvFields) -> None:
        super().__init__(source)
        self._node = node

    def __next__(self) -> Nest:
        node = self._node
        return node.make(node.values(next(self._input)))
