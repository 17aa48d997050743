"""Arrays of other libraries: how they are seen as NumPy's, and how results become arrays of their kind.

A collective is given arrays of NumPy, and gives such. Where a caller's array is of another kind, the core reads it as
NumPy sees it, without a copy, and writes the result once, into memory that becomes an array of that kind, without a
copy either. Neither library is imported here: whoever has such an array has imported it.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.errors import InvalidArgumentError

__all__ = [
    "ArrayKind",
    "common_kind",
    "in_kind_of",
    "in_memory",
    "kind_of",
    "own_copy",
    "register_kind",
    "result_memory",
]

Array = np.ndarray[Any, np.dtype[Any]]


class ArrayKind(ABC):
    """What is known of the arrays of one library.

    Attributes
    ----------
    name : str
        What messages call such an array, such as ``"torch.Tensor"``.
    is_mutable : bool
        Whether users may write to such arrays: each result then has memory of its own. Others may share theirs.

    Examples
    --------
    >>> class Reversed(np.ndarray): pass
    >>> class ReversedKind(ArrayKind):
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
        """Give an array as NumPy sees it, in the same memory.

        Parameters
        ----------
        value : object
            An array of this kind.
        name : str
            What messages call it.

        Raises
        ------
        InvalidArgumentError
            If it cannot be seen so: it is on another device, or needs gradients; the message says what to call first.
        """

    @abstractmethod
    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Give an array of this kind in the memory of NumPy's.

        Parameters
        ----------
        array : ndarray
            C-contiguous, in native byte order, aligned to a cache line where :func:`result_memory` gave it. Nobody else
            writes to it any more. Writeable if `is_mutable`; otherwise it may be read by others.
        like : object
            An array of this kind that the result belongs with: for example, it is to be on the same device.
        """

    def reader(self, value: Any) -> Callable[[Array], Any] | None:
        """Tell what a variable that begins with an array of this kind makes of its value for those who read it.

        Parameters
        ----------
        value : object
            An array of this kind.

        Returns
        -------
        callable or None
            Takes the read-only ndarray; holds no memory of `value`. None, unless overridden: they get the ndarray.
        """
        return None

    def note_write(self, value: Any) -> None:  # noqa: B027 - most have nobody to tell
        """Tell the library that the memory of an array was written to without it.

        Parameters
        ----------
        value : object
            An array of this kind.
        """


# --- which kind -------------------------------------------------------------------------------------------------------

# Classes whose kinds are known, and None for those that are of none; looked at first, because it is cheap.
_kinds: dict[type[Any], ArrayKind | None] = {np.ndarray: None}
_registered: dict[type[Any], ArrayKind] = {}
_MOST_KNOWN = 4096
_lock = threading.RLock()  # a finalizer may ask in the middle


def _load_torch() -> ArrayKind:
    from ringlet.collectives.adapters.torch_arrays import TorchKind  # loaded where such an array was seen

    return TorchKind()


def _load_jax() -> ArrayKind:
    from ringlet.collectives.adapters.jax_arrays import JaxKind  # loaded where such an array was seen

    return JaxKind()


# Package and name of a class: what gives its kind, and that of its subclasses. Packages move their classes between
# modules.
_LIBRARIES: dict[tuple[str, str], Callable[[], ArrayKind]] = {
    ("torch", "Tensor"): _load_torch,
    ("jaxlib", "ArrayImpl"): _load_jax,
    ("jax", "ArrayImpl"): _load_jax,
    ("jax", "Array"): _load_jax,
    ("jax", "PRNGKeyArray"): _load_jax,
    ("jax", "Tracer"): _load_jax,
}


def register_kind(array_type: type[Any], kind: ArrayKind) -> None:
    """Make a class, and its subclasses, one whose arrays collectives take and give.

    Parameters
    ----------
    array_type : type
    kind : ArrayKind

    Examples
    --------
    See :class:`ArrayKind`.
    """
    with _lock:
        _registered[array_type] = kind
        _forget()


def kind_of(value: Any) -> ArrayKind | None:
    """Give the kind of an array of another library.

    Parameters
    ----------
    value : object

    Returns
    -------
    ArrayKind or None
        None for arrays of NumPy, and for everything that is no array.

    Examples
    --------
    >>> kind_of(np.ones(2)) is None
    True
    """
    try:
        return _kinds[type(value)]
    except KeyError:
        return _learn(type(value))


def _learn(array_type: type[Any]) -> ArrayKind | None:
    with _lock:
        if len(_kinds) > _MOST_KNOWN:
            _forget()
        _kinds[array_type] = kind = _found(array_type)
        return kind


def _forget() -> None:
    _kinds.clear()
    _kinds[np.ndarray] = None


def _package_of(given: type[Any]) -> str:
    return str(given.__module__).partition(".")[0]  # the module of classes that ctypes makes is None


def _found(array_type: type[Any]) -> ArrayKind | None:
    for base in array_type.__mro__:
        if base in _registered:
            return _registered[base]
        load = _LIBRARIES.get((_package_of(base), base.__name__))
        if load is not None:
            return _registered.setdefault(base, load())
    return None


# --- arrays of one call -----------------------------------------------------------------------------------------------


def common_kind(values: Sequence[Any], whose: str = "replica") -> ArrayKind | None:
    """Give the kind of arrays that are combined with each other.

    Parameters
    ----------
    values : sequence
        One array for each replica.
    whose : str
        What messages count them by.

    Returns
    -------
    ArrayKind or None
        None where all are NumPy's, or what NumPy makes arrays of.

    Raises
    ------
    InvalidArgumentError
        If they are of several kinds; names them.

    Examples
    --------
    >>> common_kind([np.ones(2), [1.0, 2.0]]) is None
    True
    """
    kinds = [kind_of(value) for value in values]
    for number, kind in enumerate(kinds):
        if kind is not kinds[0]:
            raise InvalidArgumentError(
                f"{whose} 0 gives {_named(values[0], kinds[0])}, {whose} {number} {_named(values[number], kind)}: "
                "arrays of different libraries are not combined with each other. Convert them to one kind first"
            )
    return kinds[0] if kinds else None


def _named(value: Any, kind: ArrayKind | None) -> str:
    given = type(value)
    package = _package_of(given)
    name = kind.name if kind is not None else given.__name__ if package == "builtins" else f"{package}.{given.__name__}"
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def in_kind_of(value: Any, result: Array, *, is_own: bool = False) -> Any:
    """Give a result as an array of the kind of the value that it came from.

    Parameters
    ----------
    value : object
        What a call was given.
    result : ndarray
        Read-only, or :func:`result_memory` that is written to no more.
    is_own : bool
        Whether nobody else has the memory of the result. Otherwise a kind that may be written to gets a copy.

    Returns
    -------
    object

    Examples
    --------
    >>> in_kind_of([1, 2], np.array([1, 2]))
    array([1, 2])
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
    return kind.from_ndarray(result if result.flags.writeable else _Lent.writeable(result), value)


class _Lent:
    """Gives memory to NumPy once more, as memory that may be written to. Made by :meth:`writeable`."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, array: Array) -> None:
        self._owner = array
        # As bytes: this protocol cannot name the dtypes of other packages.
        bytes_of_one = {"typestr": f"|V{array.dtype.itemsize}", "descr": [("", f"|V{array.dtype.itemsize}")]}
        self.__array_interface__ = {
            **array.__array_interface__,
            **bytes_of_one,
            "data": (array.ctypes.data, False),
        }

    @classmethod
    def writeable(cls, array: Array) -> Array:
        """Give the memory of an array that refuses to be written to, because it is most often shared."""
        return np.asarray(cls(array)).view(array.dtype)


def own_copy(value: Any) -> Any:
    """Give an array of another library anew: another object, in other memory where it may be written to.

    Parameters
    ----------
    value : object
        An array of a known kind.

    Returns
    -------
    object
        Of the same kind and dtype.

    Examples
    --------
    See :class:`ArrayKind`.
    """
    kind = kind_of(value)
    assert kind is not None
    return in_kind_of(value, kind.as_ndarray(value))


def result_memory(shape: Sequence[int], dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """Give memory for one result, as an array to write to and one that refuses to be written to.

    Parameters
    ----------
    shape : sequence of int
    dtype : dtype

    Returns
    -------
    writeable, readable : ndarray
        Over the same memory, which is aligned to a cache line, belongs to nobody else, and is used again when the last
        view of it dies.

    Examples
    --------
    >>> writeable, readable = result_memory((2,), np.dtype("int32"))
    >>> writeable[:] = 5
    >>> readable, readable.flags.writeable
    (array([5, 5], dtype=int32), False)
    """
    return _core.allocate(shape, dtype)


def in_memory(value: Any, memory: tuple[Array, Array]) -> Any:
    """Give a result of :func:`result_memory` that is written as an array of the kind of a value.

    Parameters
    ----------
    value : object
        What a call was given.
    memory : tuple of ndarray
        Both arrays.

    Returns
    -------
    object
        Read-only if it is NumPy's.

    Examples
    --------
    >>> memory = result_memory((1,), np.dtype("int32"))
    >>> memory[0].fill(5)
    >>> in_memory([1], memory)
    array([5], dtype=int32)
    """
    kind = kind_of(value)
    if kind is None:
        return memory[1]
    return kind.from_ndarray(memory[0 if kind.is_mutable else 1], value)
