"""Conversion of dataset elements to tensors and back to plain arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import data
from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor, tensor_of
from ringlet.data import Dataset
from ringlet.data.graph.element_structure import has_datasets, read_only
from ringlet.nest import map_until
from ringlet.values import Mirrored, PerReplica

# Types that are converted to tensors.
_VALUES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)


def as_tensors(element: Any) -> Any:
    """Convert the arrays, numbers and strings in a nest and in its distributed values to tensors.

    Read-only arrays of numbers are not copied. Datasets in the nest, such as windows, become datasets of tensors.
    """
    return _tensor(element) if isinstance(element, _VALUES) else map_until(_tensor, element, _is_written_out)


def _tensor(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is np.ndarray and not leaf.flags.writeable and leaf.dtype.kind not in "OSU":
        return leaf.view(Tensor)
    if kind is PerReplica or kind is Mirrored:
        return kind([as_tensors(component) for component in leaf.values])
    if isinstance(leaf, Dataset) or (kind is np.ndarray and has_datasets(leaf)):
        from ringlet.compat.tensorflow.dataset import as_dataset  # circular import at module level

        return _each_dataset(as_dataset, leaf)
    if isinstance(leaf, data.Optional) and kind is not Optional:
        return Optional(as_tensors(leaf.get_value())) if leaf.has_value() else Optional.at_end(leaf)
    if isinstance(leaf, (list, *_VALUES)):
        return tensor_of(leaf) if isinstance(leaf, np.number) else as_tensor(leaf)
    return leaf


def _each_dataset(function: Callable[[Any], Any], leaf: Any) -> Any:
    """Call a function on a dataset and return the result; for an array or list of datasets, an array of results."""
    if isinstance(leaf, Dataset):
        return function(leaf)
    array = np.empty(len(leaf), object)
    array[:] = [_each_dataset(function, item) for item in leaf]
    return read_only(array)


def _is_written_out(value: Any) -> bool:
    return isinstance(value, list) and not any(hasattr(leaf, "shape") for leaf in value)


def as_arrays(element: Any) -> Any:
    """Convert the values in a nest to plain arrays, with the dtypes of TensorFlow's tensors.

    A list becomes one array, as in all datasets.
    """
    return map_until(_array, element, lambda value: isinstance(value, list))


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.view(np.ndarray)
    if _holds_datasets(leaf):
        return _each_dataset(lambda dataset: Dataset(dataset.node), leaf)
    if isinstance(leaf, data.Optional):
        return data.Optional(as_arrays(leaf.get_value())) if leaf.has_value() else data.Optional.at_end(leaf)
    if isinstance(leaf, (np.ndarray, np.number)) and leaf.dtype.kind not in "OSU":
        return leaf
    is_value = isinstance(leaf, (list, *_VALUES)) or hasattr(leaf, "_as_operand")
    return as_array(leaf) if is_value and kind_of(leaf) is None else leaf


def _holds_datasets(leaf: Any) -> bool:
    if isinstance(leaf, list):
        return bool(leaf) and all(isinstance(item, Dataset) for item in leaf)
    return isinstance(leaf, Dataset) or (type(leaf) is np.ndarray and has_datasets(leaf))


def as_plain(value: Any) -> Any:
    """Convert the tensors in a nest to plain arrays."""
    return map_until(lambda leaf: leaf.view(np.ndarray) if isinstance(leaf, Tensor) else leaf, value, lambda _: False)


def with_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of tensors in a function that takes and returns arrays."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(as_tensors, args), **as_tensors(kwargs))
        return as_arrays(tuple(result) if type(result) is list else result)  # TensorFlow treats a list as a tuple

    return call


class Optional(data.Optional[Any]):
    """An optional element of tensors (``tf.experimental.Optional``)."""

    __slots__ = ()

    @classmethod
    def from_value(cls, value: Any) -> Optional:
        """Return an Optional that holds the tensors of a value."""
        return cls(as_tensors(as_arrays(value)))


class TensorElements:
    """Mixin that makes an iterator yield tensors; must precede the iterator class in the list of bases."""

    __slots__ = ()

    def __next__(self) -> Any:
        return as_tensors(super().__next__())  # type: ignore[misc]

    def get_next(self) -> Any:
        """Return the next element; at the end, raise OutOfRangeError."""
        return as_tensors(super().get_next())  # type: ignore[misc]

    def get_next_as_optional(self) -> Optional:
        """Return the next element, or an empty Optional at the end."""
        found: Optional = as_tensors(super().get_next_as_optional())  # type: ignore[misc]
        return found
