"""Elements of datasets: nests of arrays, and the conversion of user values to such nests.

A *nest* is a tuple, a named tuple, a dictionary or any other node type of `ringlet.nest`, at any depth; its leaves are
arrays, NumPy scalars, ``str``, ``bytes``, datasets, arrays of datasets, Optionals, and None. As in ``tf.data``, a
**list is not a node**: it is converted to one array. dtypes follow NumPy: a Python float becomes float64 and an int
becomes int64, while TensorFlow uses float32 and int32.

``bytes`` stay Python objects, and a batch of them is an array of objects, because NumPy's dtype for bytes drops
trailing null bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import optree

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.errors import InvalidArgumentError
from ringlet.nest import NAMESPACE, map_until

Array = np.ndarray[Any, Any]

# Immutable leaves other than arrays. None stands for a component that is absent from every element.
LEAF_TYPES = (np.generic, str, bytes, type(None))

Nest = Any
"""A nest; its leaves depend on the context (arrays, specs, components)."""


def read_only(array: Array) -> Array:
    """Return the array itself if it is read-only, else a read-only view."""
    if not array.flags.writeable:
        return array
    view: Array = array.view()
    view.setflags(write=False)
    return view


def paths(nest: Nest) -> list[str]:
    """Return an index expression for every leaf, for messages; empty for a bare leaf."""
    accessors = optree.tree_accessors(nest, none_is_leaf=True, namespace=NAMESPACE)
    return [accessor.codify("") for accessor in accessors]


def as_element(value: Nest) -> Nest:
    """Convert the result of a user function to an element: a nest of read-only arrays and scalars.

    Raises InvalidArgumentError for None or a list whose rows differ in length, and TypeError for other Python objects.
    """
    if value is None:
        raise InvalidArgumentError(
            "an element of a dataset must have at least one array, got None. Return a value from the function that "
            "computes the element. Only components may be None, as in (x, None)."
        )
    return _as_nest(value)


def _as_nest(value: Nest) -> Nest:
    kind = type(value)
    if kind is np.ndarray:
        return read_only(value) if value.dtype.kind != "O" else as_leaf(value)
    if issubclass(kind, LEAF_TYPES):
        return value
    if kind is tuple:
        return tuple(map(_as_nest, value))
    if kind is dict:
        return {key: _as_nest(child) for key, child in value.items()}
    return map_until(as_leaf, value, lambda part: isinstance(part, list))


def detached(element: Nest, given: Nest = ()) -> Nest:
    """Copy the NumPy arrays of an element that user code can still write to, such as a reused buffer.

    `given` is the argument of the user function; views of its arrays are not copied.
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
    """Return the base array of a view; an array that is not a view of another array is its own base."""
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
    """Convert a leaf to a read-only array or a scalar; text, None, datasets and other libraries' arrays stay as is."""
    if isinstance(value, LEAF_TYPES):
        return value
    kind = kind_of(value)
    if kind is not None:
        kind.as_ndarray(value)  # raises an error for arrays that cannot be converted
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("a dataset cannot hold a masked array: its mask would be lost. Pass the pair (x.data, x.mask).")
    array = _from_list(value) if isinstance(value, list) else np.asarray(value)
    if array.dtype == object and not _is_text(array):
        if is_dataset(value):
            return value
        if is_optional(value):
            return value.of_arrays()
        if has_datasets(array):
            return read_only(array)
        raise TypeError(
            "an element of a dataset must be an array of numbers, text or bytes, or a nest of such arrays (tuples, "
            f"dictionaries), but {value!r} is of type {type(value).__name__}"
        )
    return read_only(array) if array.ndim else array[()]


def is_dataset(value: Any) -> bool:
    """Return whether a leaf is a dataset, such as a window."""
    return hasattr(type(value), "node") and hasattr(type(value), "element_spec")


def is_optional(value: Any) -> bool:
    """Return whether a leaf is an Optional."""
    return hasattr(type(value), "get_value") and hasattr(type(value), "has_value")


def has_datasets(array: Array) -> bool:
    """Return whether an array holds datasets, such as a batch of windows."""
    return array.dtype == object and array.size > 0 and all(map(is_dataset, array.flat))


def _is_text(array: Array) -> bool:
    return all(isinstance(item, (str, bytes)) for item in array.flat)


def _from_list(value: list[Any]) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InvalidArgumentError(
            f"a list must be convertible to one array. Use a tuple for several components. NumPy's error is: {error}"
        ) from error
    # NumPy's dtype for bytes would drop trailing null bytes.
    return np.array(value, dtype=object) if array.dtype.kind == "S" else array
