"""Digests of a replica's value, by leaf, for comparison with the digests of other replicas."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import optree
from numpy.typing import NDArray

from ringlet import nest
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.nest import NAMESPACE
from ringlet.values import IndexedSlices, Variable

Array = NDArray[Any]

_DIGEST_BYTES = 16
# Maximum number of pieces of a large array. Only pieces that differ are exchanged.
_MOST_PIECES = 1024
_FEWEST_ELEMENTS = 1024
# Size of the blocks that are prepared and hashed one at a time, so that they stay in the cache.
_BLOCK_ELEMENTS = 1 << 18


class Leaf:
    """An array, or a value that is compared as text; other values raise TypeError.

    `path` is an index expression. `form` is the dtype and shape of an array, or the type of another value.
    """

    def __init__(self, path: str, value: Any) -> None:
        self.path = path
        self.array: Array | None = None
        self._text = ""
        if isinstance(value, enum.Enum):
            self.form, self._text = type(value).__name__, value.name
        elif value is None or isinstance(value, (str, bytes)):
            self.form, self._text = "None" if value is None else type(value).__name__, repr(value)
        else:
            self._take_array(value)

    def _take_array(self, value: Any) -> None:
        if isinstance(value, Variable):
            value = value.read_value()
        is_array = isinstance(value, (np.ndarray, np.generic, bool, int, float, complex)) or kind_of(value) is not None
        array = as_ndarray(value.detach() if hasattr(value, "detach") else value, self.path) if is_array else None
        if array is not None and array.dtype.hasobject and isinstance(value, int):  # the integer has more than 64 bits
            self.form, self._text = "int", repr(value)
        elif array is None or array.dtype.hasobject:
            shown = repr(value)
            raise TypeError(
                f"{self.path or 'the value'} is {shown[:100]} of type {type(value).__name__}, which cannot be "
                "compared: use arrays, numbers, text, bytes, None, and structures of these"
            )
        else:
            self.array = array if array.flags.c_contiguous else array.copy(order="C")
            self.form = f"{array.dtype}{list(array.shape) if array.shape else ''}"

    def digest(self) -> str:
        """Return the digest of `form` and the content."""
        found = hashlib.blake2b(self.form.encode(), digest_size=_DIGEST_BYTES)
        for block in self._blocks():
            found.update(block)
        return found.hexdigest()

    def _blocks(self) -> Iterator[Any]:
        if self.array is None:
            yield self._text.encode("utf-8", "backslashreplace")
            return
        flat = self.array.reshape(-1)
        for begin in range(0, flat.size, _BLOCK_ELEMENTS):
            yield _bytes_of(flat[begin : begin + _BLOCK_ELEMENTS])

    @property
    def _piece_size(self) -> int:
        assert self.array is not None
        return max(_FEWEST_ELEMENTS, -(-self.array.size // _MOST_PIECES))

    def piece(self, number: int) -> bytes:
        """Return the bytes of one piece of an array."""
        assert self.array is not None
        size = self._piece_size
        return _bytes_of(self.array.reshape(-1)[number * size : (number + 1) * size]).tobytes()

    def piece_digests(self) -> list[str]:
        """Return a digest of each piece of an array."""
        assert self.array is not None
        count = max(1, -(-self.array.size // self._piece_size))
        return [hashlib.blake2b(self.piece(number), digest_size=8).hexdigest() for number in range(count)]

    def first_difference(self, number: int, pieces: list[bytes]) -> tuple[tuple[int, ...], list[Any]]:
        """Return the index of the first element that differs between `pieces`, one from each rank, and its values."""
        assert self.array is not None
        dtype = self.array.dtype
        rows = [np.frombuffer(each, np.uint8).reshape(-1, dtype.itemsize) for each in pieces]
        differs = np.any([(row != rows[0]).any(axis=1) for row in rows], axis=0)
        place = int(np.argmax(differs))
        index = np.unravel_index(number * self._piece_size + place, self.array.shape)
        values = [np.frombuffer(row[place].tobytes(), dtype)[0] for row in rows]
        return tuple([int(i) for i in index]), values

    @property
    def shown(self) -> str:
        """The content of a text leaf for messages, abbreviated but unambiguous."""
        if len(self._text) <= 80:
            return self._text
        return f"{self._text[:50]}... of {len(self._text):,} characters, digest {self.digest()[:8]}"


def _bytes_of(block: Array) -> Array:
    """Return the bytes of elements, with one bit pattern for all NaNs."""
    if block.dtype.kind in "fcV" and block.dtype.names is None:
        try:
            is_nan = np.isnan(block)
        except TypeError:  # the dtype has no NaN
            is_nan = np.zeros(block.shape, bool)
        if is_nan.any():
            block = block.copy()
            block[is_nan] = np.nan
    return np.frombuffer(block.tobytes(), np.uint8) if block.dtype.kind in "mMV" else block.view(np.uint8)


class ValueDigest:
    """The leaves of a replica's structure by path, and their digests.

    `table` has the `path`, `form` and digest of each leaf. `digest` is the digest of the table, and does not depend on
    the order of dictionaries. `error` is the reason why the value cannot be compared, or None.
    """

    def __init__(self, structure: Any) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.table: list[list[str]] = []
        self.error: Exception | None = None
        try:
            for path, value in _named_leaves(structure):
                self.leaves[path] = leaf = Leaf(path, value)
                self.table.append([path, leaf.form, leaf.digest()])
        except Exception as error:  # raised later, because other replicas wait for the exchange
            self.error = error
        self.digest = hashlib.blake2b(repr(sorted(self.table)).encode(), digest_size=_DIGEST_BYTES).digest()


def _named_leaves(structure: Any) -> Iterator[tuple[str, Any]]:
    leaves, _ = nest.flatten(structure)  # registers the node types of new classes
    accessors = optree.tree_accessors(structure, none_is_leaf=True, namespace=NAMESPACE)
    for accessor, leaf in zip(accessors, leaves, strict=True):
        path = accessor.codify("")
        if isinstance(leaf, IndexedSlices):
            yield f"{path}.values", leaf.values
            yield f"{path}.indices", leaf.indices
        else:
            yield path, leaf
