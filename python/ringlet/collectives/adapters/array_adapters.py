"""Adapters between NumPy and the arrays of other libraries.

Collectives work on NumPy arrays. An array of another library is read through a NumPy view of its memory, and the result
is written once, into memory that becomes an array of that library, without a copy. No library is imported here: a
program with an array of a library has already imported the library.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.errors import InvalidArgumentError

Array = np.ndarray[Any, np.dtype[Any]]


class ArrayAdapter(ABC):
    """Base class of adapters; an adapter converts the arrays of one library.

    Attributes
    ----------
    name : str
        Name of the array type in messages, such as ``"torch.Tensor"``.
    is_mutable : bool
        Whether users may write to such arrays. A mutable result has separate memory; other results may share memory.

    Examples
    --------
    >>> class Reversed(np.ndarray): pass
    >>> class ReversedKind(ArrayAdapter):
    ...     name, is_mutable = "Reversed", False
    ...     def as_ndarray(self, value, name="the array"):
    ...         return value.view(np.ndarray)[::-1]
    ...     def from_ndarray(self, array, like):
    ...         return array[::-1].view(Reversed)
    >>> register_kind(Reversed, ReversedKind())
    >>> kind_of(np.arange(3).view(Reversed)).name
    'Reversed'
    """

    name: str
    is_mutable: bool

    @abstractmethod
    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Return a NumPy view of an array, called `name` in messages.

        Raises InvalidArgumentError if no view is possible, for example because the array is on another device.
        """

    @abstractmethod
    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Return an array of this kind on the memory of a NumPy array, with properties of `like`, such as its device.

        The array is in native byte order, aligned to a cache line if :func:`result_memory` allocated it, and has no
        other writers. It is writeable if `is_mutable`; otherwise readers may share it.
        """

    def reader(self, value: Any) -> Callable[[Array], Any] | None:
        """Return a function that converts a variable's read-only ndarray for reads; None if reads return the ndarray.

        `value` is the initial value of the variable; the function does not keep `value` alive.
        """
        return None

    def note_write(self, value: Any) -> None:  # noqa: B027 - most libraries keep no record
        """Notify the library that the memory of an array was modified from outside."""


# --- lookup of adapters -----------------------------------------------------------------------------------------------

# Cache of adapters by class; None for classes without an adapter.
_kinds: dict[type[Any], ArrayAdapter | None] = {np.ndarray: None}
_registered: dict[type[Any], ArrayAdapter] = {}
_MOST_KNOWN = 4096
_lock = threading.RLock()  # a finalizer may call kind_of while the lock is held


def _load_torch() -> ArrayAdapter:
    from ringlet.collectives.adapters.torch_arrays import TorchAdapter

    return TorchAdapter()


def _load_jax() -> ArrayAdapter:
    from ringlet.collectives.adapters.jax_arrays import JaxAdapter

    return JaxAdapter()


# Loaders of the adapters of a class and its subclasses. Keys are (package, class name), without the module, because
# packages move classes between modules.
_LIBRARIES: dict[tuple[str, str], Callable[[], ArrayAdapter]] = {
    ("torch", "Tensor"): _load_torch,
    ("jaxlib", "ArrayImpl"): _load_jax,
    ("jax", "ArrayImpl"): _load_jax,
    ("jax", "Array"): _load_jax,
    ("jax", "PRNGKeyArray"): _load_jax,
    ("jax", "Tracer"): _load_jax,
}


def register_kind(array_type: type[Any], kind: ArrayAdapter) -> None:
    """Register the adapter of a class and its subclasses, so that collectives accept and return its arrays."""
    with _lock:
        _registered[array_type] = kind
        _clear_cache()


def kind_of(value: Any) -> ArrayAdapter | None:
    """Return the adapter of an array of another library; None for ndarrays, and for objects without an adapter."""
    try:
        return _kinds[type(value)]
    except KeyError:
        return _cache_adapter(type(value))


def _cache_adapter(array_type: type[Any]) -> ArrayAdapter | None:
    with _lock:
        if len(_kinds) > _MOST_KNOWN:
            _clear_cache()
        _kinds[array_type] = kind = _find_adapter(array_type)
        return kind


def _clear_cache() -> None:
    _kinds.clear()
    _kinds[np.ndarray] = None


def _package_of(given: type[Any]) -> str:
    return str(given.__module__).partition(".")[0]  # classes created by ctypes have no module


def _find_adapter(array_type: type[Any]) -> ArrayAdapter | None:
    for base in array_type.__mro__:
        if base in _registered:
            return _registered[base]
        load = _LIBRARIES.get((_package_of(base), base.__name__))
        if load is not None:
            return _registered.setdefault(base, load())
    return None


# --- conversions ------------------------------------------------------------------------------------------------------


def common_kind(values: Sequence[Any], whose: str = "replica") -> ArrayAdapter | None:
    """Return the adapter that all arrays of one reduction have in common; None if they are NumPy arrays or array-likes.

    `whose` names a contributor, such as "rank", in the error about arrays of different libraries.
    """
    kinds = [kind_of(value) for value in values]
    for number, kind in enumerate(kinds):
        if kind is not kinds[0]:
            raise InvalidArgumentError(
                f"{whose} 0 has {_named(values[0], kinds[0])}, but {whose} {number} has {_named(values[number], kind)}"
                ": arrays of different libraries cannot be combined. Convert them to one type first"
            )
    return kinds[0] if kinds else None


def _named(value: Any, kind: ArrayAdapter | None) -> str:
    given = type(value)
    package = _package_of(given)
    name = kind.name if kind is not None else given.__name__ if package == "builtins" else f"{package}.{given.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def in_kind_of(value: Any, result: Array, *, is_own: bool = False) -> Any:
    """Convert a result to the array library of the corresponding input `value`.

    Unless `is_own`, other ranks share the memory of `result`, so a mutable array is created from a copy.
    """
    kind = kind_of(value)
    if kind is None:
        return result
    if not kind.is_mutable:
        return kind.from_ndarray(result, value)
    if not is_own:
        memory = result_memory(result.shape, result.dtype)
        memory[0][...] = result
        return in_memory(value, memory)
    return kind.from_ndarray(result if result.flags.writeable else _WriteableView.writeable(result), value)


def in_kinds_of(values: Sequence[Any] | None, results: list[Array]) -> list[Any]:
    """Convert shared results to arrays of the inputs' libraries; without inputs, return the results unchanged."""
    if values is None:
        return results
    return [in_kind_of(value, result) for value, result in zip(values, results, strict=True)]


class _WriteableView:
    """Array-interface object that exposes the memory of a read-only array as writeable."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, array: Array) -> None:
        self._owner = array
        # The dtype is raw bytes, because the array interface cannot express dtypes of other packages.
        bytes_of_one = {"typestr": f"|V{array.dtype.itemsize}", "descr": [("", f"|V{array.dtype.itemsize}")]}
        self.__array_interface__ = {**array.__array_interface__, **bytes_of_one, "data": (array.ctypes.data, False)}

    @classmethod
    def writeable(cls, array: Array) -> Array:
        return np.asarray(cls(array)).view(array.dtype)


def own_copy(value: Any) -> Any:
    """Copy an array of another library; an immutable array may share memory with its copy."""
    kind = kind_of(value)
    assert kind is not None
    return in_kind_of(value, kind.as_ndarray(value))


def result_memory(shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Allocate memory for one result; return a writeable and a read-only array on it.

    The memory is aligned to a cache line, shared with no other array, and reused once its last view is freed.
    """
    return _core.allocate(shape, dtype)


def in_memory(value: Any, memory: tuple[Array, Array]) -> Any:
    """Convert a result in :func:`result_memory` to an array of the input's library; a NumPy array is read-only."""
    kind = kind_of(value)
    if kind is None:
        return memory[1]
    return kind.from_ndarray(memory[0 if kind.is_mutable else 1], value)
