"""Elements of datasets: nests of arrays, and how the values of users become such nests.

A *nest* is a tuple, a named tuple, a dictionary or any other node that `ringlet.nest` knows, at any depth; its leaves
are arrays, NumPy scalars, ``str`` and ``bytes``. As in ``tf.data``, a **list is not a node**: it is one array, written
out. dtypes follow NumPy: a Python float becomes float64 and an int int64, where TensorFlow makes float32 and int32 of
them.

``bytes`` stay Python objects, and a batch of them is an array of objects, because NumPy's own dtype for bytes drops
zeros at their end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.errors import InvalidArgumentError
from ringlet.nest import NAMESPACE, map_until

__all__ = ["Array", "Nest", "as_element", "as_leaf", "detached", "is_dataset", "paths", "read_only"]

Array = np.ndarray[Any, Any]

# Leaves that are no arrays; they cannot be changed.
LEAF_TYPES = (np.generic, str, bytes)

Nest = Any
"""A nest: what its leaves are depends on where it stands (arrays, specs, components)."""


def read_only(array: Array) -> Array:
    """Give the array itself where it refuses to be written to, and else a view that does.

    Examples
    --------
    >>> read_only(np.zeros(2)).flags.writeable
    False
    """
    if not array.flags.writeable:
        return array
    view: Array = array.view()
    view.setflags(write=False)
    return view


def paths(nest: Nest) -> list[str]:
    """Name every leaf as an index expression, for messages; a bare leaf has the empty name.

    Examples
    --------
    >>> paths((1, {"a": 2}))
    ['[0]', "[1]['a']"]
    """
    accessors = optree.tree_accessors(nest, none_is_leaf=True, namespace=NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


def as_element(value: Nest) -> Nest:
    """Make a dataset's element of what a user's function gave: a nest of read-only arrays and scalars.

    Raises
    ------
    TypeError
        If NumPy can make no numbers or text of a leaf.
    InvalidArgumentError
        If a list has rows of different lengths.

    Examples
    --------
    >>> as_element((2.5, {"a": [1, 2]}))[1]
    {'a': array([1, 2])}
    """
    kind = type(value)
    if kind is np.ndarray:
        return read_only(value) if value.dtype.kind != "O" else as_leaf(value)
    if issubclass(kind, LEAF_TYPES):
        return value
    if kind is tuple:
        return tuple(map(as_element, value))
    if kind is dict:
        return {key: as_element(child) for key, child in value.items()}
    return map_until(as_leaf, value, _is_list)


def detached(element: Nest, given: Nest = ()) -> Nest:
    """Copy the arrays of an element whose memory a user could still write to, as a function does that reuses a buffer.

    Parameters
    ----------
    element : nest
        Made by `as_element`.
    given : nest, optional
        The element that a function was given: views of its arrays stay views.

    Examples
    --------
    >>> buffer = np.zeros(2)
    >>> element = detached(as_element(buffer))
    >>> buffer[:] = 1
    >>> element
    array([0., 0.])
    """
    kind = type(element)
    if kind is np.ndarray:
        return _detached_array(element, given)
    if issubclass(kind, LEAF_TYPES):
        return element
    if kind is tuple:
        return tuple([detached(child, given) for child in element])
    if kind is dict:
        return {key: detached(child, given) for key, child in element.items()}

    def leaf(value: Any) -> Any:
        return _detached_array(value, given) if isinstance(value, np.ndarray) else value

    return optree.tree_map(leaf, element, none_is_leaf=True, namespace=NAMESPACE)


def _detached_array(array: Array, given: Nest) -> Array:
    owner = _owner(array)
    if not owner.flags.writeable or _holds_memory_of(given, owner):
        return array
    copy: Array = array.copy(order="K")
    copy.setflags(write=False)
    return copy


def _owner(array: Array) -> Array:
    """The array at the bottom of views: itself where it has memory of its own, or of something that is no array."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def _holds_memory_of(nest: Nest, owner: Array) -> bool:
    if type(nest) is np.ndarray:
        return _owner(nest) is owner
    if isinstance(nest, LEAF_TYPES):
        return False
    leaves = optree.tree_leaves(nest, none_is_leaf=True, namespace=NAMESPACE)
    return any(isinstance(leaf, np.ndarray) and _owner(leaf) is owner for leaf in leaves)


def as_leaf(value: Any) -> Any:
    """Make one leaf: a read-only array, a NumPy scalar, or the text or array of another library itself.

    Raises
    ------
    TypeError
        If NumPy can make nothing but objects of the value, or if it is a masked array, whose mask would be lost.
    InvalidArgumentError
        If a list has rows of different lengths.

    Examples
    --------
    >>> as_leaf(3), as_leaf([b"ends in zero ", b""])
    (np.int64(3), array([b'ends in zero ', b''], dtype=object))
    """
    if isinstance(value, LEAF_TYPES):
        return value
    kind = kind_of(value)
    if kind is not None:
        kind.as_ndarray(value)  # refuses what nobody could batch or send
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("a dataset cannot hold a masked array: its mask would be lost. Pass the pair (x.data, x.mask).")
    array = _from_list(value) if isinstance(value, list) else np.asarray(value)
    if array.dtype == object and not all(isinstance(item, (str, bytes)) for item in array.flat):
        if is_dataset(value):
            return value
        raise TypeError(
            f"a dataset holds arrays of numbers, text and bytes, and nests of them (tuples, dictionaries), and "
            f"{value!r} is of type {type(value).__name__}"
        )
    return read_only(array) if array.ndim else array[()]


def is_dataset(value: Any) -> bool:
    """Tell whether a leaf is a dataset, as windows are.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> is_dataset(Dataset.range(3)), is_dataset(3)
    (True, False)
    """
    return hasattr(value, "node") and hasattr(value, "element_spec")


def _from_list(value: list[Any]) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"a list is one array in a dataset, and this one cannot be ({error}) Use a tuple for several components."
        ) from error
    # NumPy's dtype for bytes would drop the zeros at the end of each.
    return np.array(value, dtype=object) if array.dtype.kind == "S" else array


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
