"""Dataset.from_npy: the rows of memory-mapped .npy files."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Array, Nest, paths
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import ArrayColumn, Column, Rows, Table
from ringlet.data.readers.byte_stream import open_bytes
from ringlet.data.readers.file_names import name_list
from ringlet.errors import DataLossError, InvalidArgumentError
from ringlet.nest import flatten, map_until, unflatten

_MAGIC = b"\x93NUMPY"
_ZIP_MAGIC = b"PK\x03\x04"


def from_npy(cls: type[Dataset], filenames: Nest) -> Dataset:
    """Create a dataset of the rows of arrays in memory-mapped .npy files.

    Parameters
    ----------
    filenames : str or path, list of these, or nest of these
        A list of files holds consecutive parts of one array. Tuples and dictionaries are the structure of the elements,
        as in `from_tensor_slices`: ``{"x": ["x0.npy", "x1.npy"], "y": "y.npy"}``.

    Returns
    -------
    Dataset
        Its elements are slices along the first dimension. Files are memory-mapped: an element is a read-only view of
        its file, whose pages the system reads on access and may evict. All operations on rows work as for arrays:
        shuffling and batching copy each row once, and batches of consecutive rows of one file copy nothing.
        Auto-sharding treats the dataset as an array, not as files: each worker reads its share of the rows.

    Raises
    ------
    NotFoundError
        If a file does not exist.
    InvalidArgumentError
        If a file is not an .npy file, holds Python objects or a scalar, or differs in dtype or row shape from other
        files of its list; if arrays differ in length.
    DataLossError
        If a file is damaged, or shorter than its array.

    Notes
    -----
    Files must not be truncated while they are used: the system kills a program that accesses missing pages.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> np.save("x.npy", np.arange(6).reshape(3, 2))
    >>> [row.tolist() for row in Dataset.from_npy("x.npy")]
    [[0, 1], [2, 3], [4, 5]]
    >>> Dataset.from_npy({"x": ["x.npy", "x.npy"]}).batch(4).element_spec
    {'x': TensorSpec(shape=(None, 2), dtype=int64)}
    """
    leaves, shape = flatten(map_until(_column, filenames, lambda value: isinstance(value, list)))
    if not leaves:
        raise InvalidArgumentError(f"from_npy requires at least one file, got {filenames!r}.")
    lengths = [len(column) for column in leaves]
    if len(set(lengths)) > 1:
        names = paths(unflatten(shape, lengths))
        found = ", ".join(f"filenames{path}: {length}" for path, length in zip(names, lengths, strict=True))
        raise InvalidArgumentError(f"from_npy requires arrays with equal numbers of rows, got ({found}).")
    return cls(TableSource(Table(tuple(leaves), shape, lengths[0])))


def map_npy(name: str) -> Array:
    """Return the array of an .npy file, memory-mapped and read-only."""
    stream = open_bytes(name, "")
    try:
        begin = bytearray(len(_MAGIC))
        stream.read_into(memoryview(begin))
    finally:
        stream.close()
    if begin.startswith(_ZIP_MAGIC):
        raise InvalidArgumentError(
            f"{name} is an .npz file, whose arrays cannot be memory-mapped. Save each array with np.save, or load the "
            f"arrays: Dataset.from_tensor_slices(dict(np.load({name!r})))."
        )
    if begin != _MAGIC:
        raise InvalidArgumentError(f"{name} is not an .npy file. Write the array with np.save.")
    try:
        array = np.load(name, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        if "objects" in str(error):
            raise InvalidArgumentError(
                f"{name} holds Python objects, which are not loaded because they could run arbitrary code. Save an "
                "array of numbers or text, such as x.astype(str)."
            ) from error
        raise DataLossError(f"{name} is damaged or truncated: {error}", name) from error
    except Exception as error:  # the header is a Python literal, so damage raises errors of many classes
        raise DataLossError(f"{name} is damaged or truncated: {error}", name) from error
    return np.asarray(array)


def _column(names: Any) -> Column:
    files = name_list(names)
    arrays = [map_npy(name) for name in files]
    if not arrays:
        raise InvalidArgumentError("a list of files must not be empty: it holds the parts of one array")
    for name, array in zip(files, arrays, strict=True):
        if array.ndim == 0:
            raise InvalidArgumentError(
                f"the array in {name} is a scalar: save one or more rows, as in np.atleast_1d(x)"
            )
        if (array.dtype, array.shape[1:]) != (arrays[0].dtype, arrays[0].shape[1:]):
            raise InvalidArgumentError(
                f"the files of {names!r} must be parts of one array, but they differ: {arrays[0].dtype} rows of shape "
                f"{list(arrays[0].shape[1:])}, then {array.dtype} rows of shape {list(array.shape[1:])}"
            )
    return ArrayColumn(arrays[0]) if len(arrays) == 1 else FilesColumn(arrays)


class FilesColumn:
    """Column of the rows of several arrays in sequence; shares the memory of the arrays."""

    def __init__(self, arrays: list[Array]) -> None:
        self._arrays = arrays
        self._columns = [ArrayColumn(array) for array in arrays]
        self._ends = list(accumulate(map(len, arrays)))
        self.spec = self._columns[0].spec
        self.row_bytes = self._columns[0].row_bytes
        self.is_memory = True  # except slices that span several files, which are copied

    def __len__(self) -> int:
        return self._ends[-1]

    def _begin(self, file: int) -> int:
        return self._ends[file - 1] if file else 0

    def row(self, number: int) -> Any:
        file = bisect_right(self._ends, number)
        return self._columns[file].row(number - self._begin(file))

    def rows(self, rows: Rows) -> Array:
        """Return rows as one read-only array: a view for a slice of one file, otherwise a copy."""
        gathered = self._slice(rows.start, rows.stop) if isinstance(rows, slice) else self._gather(rows)
        gathered.setflags(write=False)
        return gathered

    def _slice(self, start: int, stop: int) -> Array:
        pieces = []
        for file, array in enumerate(self._arrays):
            begin = self._begin(file)
            if start < self._ends[file] and begin < stop:
                pieces.append(array[max(start - begin, 0) : stop - begin])
        if not pieces:
            return self._arrays[0][:0]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def _gather(self, rows: Array) -> Array:
        gathered = np.empty((len(rows), *self._arrays[0].shape[1:]), self._arrays[0].dtype)
        files = np.searchsorted(self._ends, rows, side="right")
        for file in np.unique(files).tolist():
            at = np.flatnonzero(files == file)
            gathered[at] = self._arrays[file].take(rows[at] - self._begin(file), axis=0)
        return gathered
