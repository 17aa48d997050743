"""Dataset.fingerprint: a hash of the operations and data of a dataset."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import is_dataset
from ringlet.data.graph.node import Node
from ringlet.nest import PLAIN_TYPES, PyTreeSpec

# Fields that are not hashed: caches, counters of iterations, and settings that do not affect elements.
_NOT_COUNTED = frozenset({"name", "runs", "stores", "begun", "num_parallel_calls"})

# Unique values for datasets with parts that cannot be hashed.
_tokens: WeakKeyDictionary[Node, bytes] = WeakKeyDictionary()


def fingerprint(self: Dataset) -> np.uint64:
    """Return a hash that is equal only for datasets with equal elements (``tf.data.Dataset.fingerprint``).

    Returns
    -------
    numpy.uint64
        A hash of the operations, their arguments, the contents of arrays, the code of functions and the values that
        functions refer to. Equal numbers imply equal elements if functions are deterministic and files do not change.
        Different numbers do not imply different elements: if a function refers to an object of an unsupported class,
        for example, the number is unique to this dataset.

    Notes
    -----
    All bytes of arrays are read. The number differs from TensorFlow's and may change between releases.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> one, same, other = [Dataset.range(5).map(lambda x, n=n: x + n) for n in (1, 1, 2)]
    >>> one.fingerprint() == same.fingerprint(), one.fingerprint() == other.fingerprint()
    (np.True_, np.False_)
    """
    number: np.uint64 = np.uint64(_Digest(self.node).number())
    return number


class _Digest:
    """Hash of a node and of all values it refers to; each is hashed with its type and length."""

    def __init__(self, root: Node) -> None:
        self._root = root
        self._hash = hashlib.blake2b(digest_size=8)
        # Objects hashed so far, by identity; the references keep identities unique.
        self._seen: dict[int, tuple[int, Any]] = {}

    def number(self) -> int:
        self._add(self._root)
        return int.from_bytes(self._hash.digest(), "little")

    def _write(self, kind: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self._hash.update(f"{kind}:{len(data)}:".encode() + data)

    def _add(self, value: Any) -> None:
        kind = type(value)
        if kind in PLAIN_TYPES or kind is type(...):
            self._write(kind.__name__, repr(value))
        elif id(value) in self._seen:
            self._write("seen", str(self._seen[id(value)][0]))
        else:
            self._seen[id(value)] = len(self._seen), value
            self._add_object(value)

    def _add_object(self, value: Any) -> None:
        if isinstance(value, (np.ndarray, np.generic)):
            self._add_array(np.asarray(value))
        elif isinstance(value, (ModuleType, type, BuiltinFunctionType, np.ufunc, np.dtype, PyTreeSpec)):
            self._write(str(type(value).__name__), f"{getattr(value, '__module__', '')} {value!r}")
        else:
            parts = _parts(value)
            if parts is None:
                self._write("unknown", _tokens.setdefault(self._root, os.urandom(16)))
                return
            self._write(type(value).__qualname__, type(value).__module__)
            for part in parts:
                self._add(part)
            self._write("end", "")

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        self._write("array", f"{array.dtype} {array.shape}")
        if array.dtype.hasobject:
            for item in array.flat:
                self._add(item)
        else:
            self._write("bytes", np.ascontiguousarray(array).tobytes())


def _parts(value: Any) -> Iterable[Any] | None:
    """Return the parts that distinguish a value from other values of its type; None if the type is unsupported."""
    take = _PARTS.get(type(value))
    if take is not None:
        return take(value)
    if is_dataset(value):
        return [value.node]
    if isinstance(value, Node):
        fields = (field.name for field in dataclasses.fields(value))
        return [getattr(value, name) for name in fields if name not in _NOT_COUNTED]
    if type(value).__module__.startswith("ringlet.data."):
        return [*_slots(value), *getattr(value, "__dict__", {}).values()]
    return None


def _parts_of_function(function: FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    own = [function.__code__, function.__defaults__, function.__kwdefaults__, cells]
    if function.__globals__.get("__name__", "").startswith("ringlet."):
        return own  # the globals of this library's functions change only between releases
    names = dict.fromkeys(_names(function.__code__))
    return [*own, {name: function.__globals__[name] for name in names if name in function.__globals__}]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _slots(value: Any) -> Iterator[Any]:
    for owner in type(value).__mro__:
        for name in vars(owner).get("__slots__", ()):
            if name != "__weakref__" and hasattr(value, name):
                yield getattr(value, name)


_PARTS: dict[type[Any], Callable[[Any], Iterable[Any]]] = {
    tuple: iter,
    list: iter,
    dict: lambda value: [*value, *value.values()],
    FunctionType: _parts_of_function,
    CodeType: lambda value: [value.co_code, value.co_consts, value.co_names, value.co_varnames, value.co_freevars],
    MethodType: lambda value: [value.__func__, value.__self__],
    partial: lambda value: [value.func, value.args, value.keywords],
}
