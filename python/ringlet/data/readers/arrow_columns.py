"""Conversion of Arrow columns to NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Array
from ringlet.errors import InvalidArgumentError


def import_arrow(caller: str) -> ModuleType:
    """Return pyarrow, an optional dependency; if it is not installed, raise an ImportError that names `caller`."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(f"{caller} requires pyarrow. Install it with: pip install 'ringlet[data]'") from error
    module: ModuleType = pyarrow
    return module


def column_array(column: Any, name: str, fill_null: Any, where: str) -> Array:
    """Convert a column to a read-only array with one entry, or row of entries, for each row.

    Numbers and times share the memory of the column where possible. Text and bytes are objects. Fixed-size lists become
    rows of a matrix; other lists become an array of arrays, with dtype object. `fill_null`, a value or a mapping from
    column names to values, replaces missing values; a column without a substitute must have none.
    """
    import pyarrow.types as kinds

    if not len(column) and kinds.is_null(column.type):
        return np.empty(0, object)  # a file without rows has untyped columns
    column = _without_nulls(column, name, fill_null, where)
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if kinds.is_fixed_size_list(kind):
        array = column_array(column.flatten(), name, fill_null, where).reshape(len(column), kind.list_size)
    elif kinds.is_list(kind) or kinds.is_large_list(kind):
        array = _lists(column, name, fill_null, where)
    elif _is_flat(kind, kinds):
        array = column.to_numpy(zero_copy_only=False)
    else:
        raise InvalidArgumentError(
            f"column {name!r} of {where} has the type {kind}, which is not supported. Omit the column with "
            "columns=[...], or write it as numbers, text or lists of numbers."
        )
    array.setflags(write=False)
    return array


def _is_flat(kind: Any, kinds: Any) -> bool:
    tests = (
        kinds.is_integer,
        kinds.is_floating,
        kinds.is_boolean,
        kinds.is_date,
        kinds.is_timestamp,
        kinds.is_duration,
        kinds.is_string,
        kinds.is_large_string,
        kinds.is_binary,
        kinds.is_large_binary,
        kinds.is_fixed_size_binary,
    )
    return any(test(kind) for test in tests)


def _lists(column: Any, name: str, fill_null: Any, where: str) -> Array:
    values = column_array(column.flatten(), name, fill_null, where)
    ends = np.cumsum(column.value_lengths().to_numpy(zero_copy_only=False), dtype=np.int64)
    lists = np.empty(len(column), object)
    start = 0
    for number, end in enumerate(ends.tolist()):
        lists[number] = values[start:end]
        start = end
    return lists


def _without_nulls(column: Any, name: str, fill_null: Any, where: str) -> Any:
    if not column.null_count:
        return column
    value = fill_null.get(name) if isinstance(fill_null, Mapping) else fill_null
    if value is None:
        number = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InvalidArgumentError(
            f"column {name!r} of {where} has no value in row {number} of the block of rows that was read (missing in "
            f"the block: {column.null_count}), but arrays cannot hold missing values. Pass a substitute, as in "
            f"fill_null={{{name!r}: 0}}, or omit the column with columns=[...]."
        )
    try:
        return column.fill_null(value)
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"fill_null={value!r} does not match column {name!r} of type {column.type}: {error}"
        ) from error
