"""RowBlock: rows stored in columns, read one by one or as slices of the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Array
from ringlet.errors import InvalidArgumentError

Columns = dict[str, Array]


class RowBlock(Sequence[Any]):
    """Rows stored in columns; a row is a dictionary of one value from each column.

    Columns are read-only arrays of equal length. A column of lists of variable length is an array of arrays, with dtype
    object.
    """

    def __init__(self, columns: Columns, length: int) -> None:
        self.columns = columns
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, number: Any) -> Any:
        return {name: column[number] for name, column in self.columns.items()}

    def __iter__(self) -> RowIterator:
        return RowIterator(self)


class RowIterator(Iterator[Any]):
    """Iterator over the rows of a block."""

    def __init__(self, block: RowBlock) -> None:
        self._block = block
        self._names = tuple(block.columns)
        self._left = block.length
        self._rows = self._from(0)

    def _from(self, start: int) -> Iterator[tuple[Any, ...]]:
        return zip(*(column[start:] for column in self._block.columns.values()), strict=True)

    def __next__(self) -> dict[str, Any]:
        values = next(self._rows)
        self._left -= 1
        return dict(zip(self._names, values, strict=True))

    def __length_hint__(self) -> int:
        return self._left

    def take(self, count: int) -> Columns:
        """Return the next rows as slices of the columns; `count` is at most the number of remaining rows."""
        start = self._block.length - self._left
        self._left -= count
        self._rows = self._from(start + count)
        taken: Columns = self._block[start : start + count]
        return taken


def join_rows(pieces: list[Columns]) -> Columns:
    """Concatenate rows in read-only arrays; lists become matrix rows. Other columns of one piece are not copied."""
    names = pieces[0].keys()
    for piece in pieces:
        if piece.keys() != names:
            raise InvalidArgumentError(
                f"cannot batch rows with different columns: {sorted(names)} and {sorted(piece)}. Select the columns "
                "that all files have with columns=[...]."
            )
    return {name: _join(name, [piece[name] for piece in pieces]) for name in names}


def _join(name: str, arrays: list[Array]) -> Array:
    kinds = {(array.dtype, array.shape[1:]) for array in arrays if len(array)}
    if len(kinds) > 1:
        raise InvalidArgumentError(
            f"cannot batch rows: the type or shape of column {name!r} differs between files or blocks: "
            + ", ".join(sorted(f"{dtype}{list(shape)}" for dtype, shape in kinds))
            + ". Use one type and shape when writing or reading the column."
        )
    joined = arrays[0] if len(arrays) == 1 else np.concatenate([array for array in arrays if len(array)])
    if joined.dtype == object and len(joined) and isinstance(joined[0], np.ndarray):
        joined = _stack_lists(name, joined)
    joined.setflags(write=False)
    return joined


def _stack_lists(name: str, lists: Array) -> Array:
    sizes = sorted({len(item) for item in lists})
    if len(sizes) > 1:
        raise InvalidArgumentError(
            f"cannot batch the lists of column {name!r}: they have {sizes[0]} to {sizes[-1]} values. Use padded_batch, "
            "convert them to one length in a map before the batch, or omit the column."
        )
    stacked: Array = np.stack(list(lists))
    return stacked
