"""What one replica holds, to be compared with what others hold: leaves by name, and digests of them."""

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

__all__ = ["Leaf", "Snapshot"]

Array = NDArray[Any]

_DIGEST_BYTES = 16
# How many pieces a large array is looked at in, so that only one of them travels to where they differ.
_MOST_PIECES = 1024
_FEWEST_ELEMENTS = 1024
# How much of an array is looked at while it is in the cache.
_BLOCK_ELEMENTS = 1 << 18


class Leaf:
    """One value of a structure: an array, or what is compared as text.

    Parameters
    ----------
    path : str
        Where it stands, as an index expression.
    value : object

    Raises
    ------
    TypeError
        If it is neither an array, a number, text, bytes, None, nor a member of an enumeration.

    Examples
    --------
    >>> leaf = Leaf("['w']", [1.5, 2.5])
    Traceback (most recent call last):
    TypeError: ['w'] is [1.5, 2.5] of type list, which cannot be compared: ...
    >>> Leaf("['w']", np.ones((3, 5), np.float32)).form
    'float32[3, 5]'
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
        if array is not None and array.dtype.hasobject and isinstance(value, int):  # one of more than 64 bits
            self.form, self._text = "int", repr(value)
        elif array is None or array.dtype.hasobject:
            shown = repr(value)
            raise TypeError(
                f"{self.path or 'the value'} is {shown[:100]} of type {type(value).__name__}, which cannot be "
                "compared: give arrays, numbers, text, bytes, None, and structures of these"
            )
        else:
            self.array = array if array.flags.c_contiguous else array.copy(order="C")
            self.form = f"{array.dtype}{list(array.shape) if array.shape else ''}"

    def digest(self) -> str:
        """Give what is the same for equal leaves, and for no others."""
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

    # Pieces of arrays

    @property
    def _piece_size(self) -> int:
        assert self.array is not None
        return max(_FEWEST_ELEMENTS, -(-self.array.size // _MOST_PIECES))

    def piece(self, number: int) -> bytes:
        """Give the bytes of one piece of an array."""
        assert self.array is not None
        size = self._piece_size
        return _bytes_of(self.array.reshape(-1)[number * size : (number + 1) * size]).tobytes()

    def piece_digests(self) -> list[str]:
        """Give a digest of each piece of an array."""
        assert self.array is not None
        count = max(1, -(-self.array.size // self._piece_size))
        return [hashlib.blake2b(self.piece(number), digest_size=8).hexdigest() for number in range(count)]

    def first_difference(self, number: int, pieces: list[bytes]) -> tuple[tuple[int, ...], list[Any]]:
        """Give the index of the first element that the pieces with a number do not agree on, and what each has."""
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
        """What it is, for messages, and no other text is shown alike; arrays are shown by their elements."""
        if len(self._text) <= 80:
            return self._text
        return f"{self._text[:50]}... of {len(self._text):,} characters, digest {self.digest()[:8]}"


def _bytes_of(block: Array) -> Array:
    """The bytes of elements, those of all NaNs alike."""
    if block.dtype.kind in "fcV" and block.dtype.names is None:
        try:
            is_nan = np.isnan(block)
        except TypeError:  # bytes without a meaning
            is_nan = np.zeros(block.shape, bool)
        if is_nan.any():
            block = block.copy()
            block[is_nan] = np.nan
    return np.frombuffer(block.tobytes(), np.uint8) if block.dtype.kind in "mMV" else block.view(np.uint8)


class Snapshot:
    """The leaves of a structure, as one replica has it.

    Parameters
    ----------
    structure : nested structure

    Attributes
    ----------
    leaves : dict of str to Leaf
        By path.
    table : list of [str, str, str]
        Path, form and digest of each leaf.
    digest : bytes
        Of the table, in whatever order a dictionary has its names.
    refusal : Exception or None
        Why it cannot be compared.

    Examples
    --------
    >>> list(Snapshot({"a": (1, None)}).leaves), Snapshot(object()).refusal is None
    (["['a'][0]", "['a'][1]"], False)
    """

    def __init__(self, structure: Any) -> None:
        self.leaves: dict[str, Leaf] = {}
        self.table: list[list[str]] = []
        self.refusal: Exception | None = None
        try:
            for path, value in _named_leaves(structure):
                self.leaves[path] = leaf = Leaf(path, value)
                self.table.append([path, leaf.form, leaf.digest()])
        except Exception as error:  # others wait for an answer, and are told
            self.refusal = error
        self.digest = hashlib.blake2b(repr(sorted(self.table)).encode(), digest_size=_DIGEST_BYTES).digest()


def _named_leaves(structure: Any) -> Iterator[tuple[str, Any]]:
    leaves, _ = nest.flatten(structure)  # makes nodes of classes that were not seen before
    accessors = optree.tree_accessors(structure, none_is_leaf=True, namespace=NAMESPACE)
    for accessor, leaf in zip(accessors, leaves, strict=True):
        path = accessor.codify("")
        if isinstance(leaf, IndexedSlices):
            yield f"{path}.values", leaf.values
            yield f"{path}.indices", leaf.indices
        else:
            yield path, leaf
