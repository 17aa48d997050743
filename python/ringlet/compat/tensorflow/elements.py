"""Elements of datasets as tensors, on their way to users, and as plain arrays, on their way back."""

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
from ringlet.nest import map_until
from ringlet.values import Mirrored, PerReplica

__all__ = ["TensorElements", "as_arrays", "as_plain", "as_tensors", "with_tensors"]

# What becomes a tensor on its way to users.
_VALUES = (np.ndarray, np.generic, bool, int, float, complex, str, bytes)


def as_tensors(element: Any) -> Any:
    """Give a nest with its arrays, numbers and texts as tensors, without copies; those in distributed values, too.

    Datasets in it, such as those of ``window``, become datasets of tensors.

    Examples
    --------
    >>> as_tensors({"x": np.arange(2)})
    {'x': <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>}
    """
    return _tensor(element) if isinstance(element, _VALUES) else map_until(_tensor, element, _is_written_out)


def _tensor(leaf: Any) -> Any:
    kind = type(leaf)
    if kind is np.ndarray and not leaf.flags.writeable and leaf.dtype.kind not in "OSU":
        return leaf.view(Tensor)
    if kind is PerReplica or kind is Mirrored:
        return kind([as_tensors(component) for component in leaf.values])
    if isinstance(leaf, Dataset):
        from ringlet.compat.tensorflow.dataset import as_dataset  # which makes its elements here

        return as_dataset(leaf)
    if isinstance(leaf, (list, *_VALUES)):
        return tensor_of(leaf) if isinstance(leaf, np.number) else as_tensor(leaf)
    return leaf


def _is_written_out(value: Any) -> bool:
    return isinstance(value, list) and not any(hasattr(leaf, "shape") for leaf in value)


def as_arrays(element: Any) -> Any:
    """Give a nest with everything that TensorFlow would make tensors of as plain arrays of the same dtypes.

    Lists are arrays that are written out, as everywhere in datasets.

    Examples
    --------
    >>> as_arrays((3.0, [1, 2]))
    (array(3., dtype=float32), array([1, 2], dtype=int32))
    """
    return map_until(_array, element, lambda value: isinstance(value, list))


def _array(leaf: Any) -> Any:
    if isinstance(leaf, Tensor):
        return leaf.view(np.ndarray)
    if isinstance(leaf, Dataset):
        return Dataset(leaf.node)
    if isinstance(leaf, (np.ndarray, np.number)) and leaf.dtype.kind not in "OSU":
        return leaf
    is_value = isinstance(leaf, (list, *_VALUES)) or hasattr(leaf, "_as_operand")
    return as_array(leaf) if is_value and kind_of(leaf) is None else leaf


def as_plain(value: Any) -> Any:
    """Give a nest with its tensors as plain arrays, and everything else in it as it is.

    Examples
    --------
    >>> as_plain([as_tensor(3), 3.0])
    [array(3, dtype=int32), 3.0]
    """
    return map_until(lambda leaf: leaf.view(np.ndarray) if isinstance(leaf, Tensor) else leaf, value, lambda _: False)


def with_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of arrays that calls a user's function of tensors.

    Parameters
    ----------
    function : callable
        The user's.

    Examples
    --------
    >>> with_tensors(lambda x: x * 2.5)(np.float32(2))
    array(5., dtype=float32)
    """

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*map(as_tensors, args), **as_tensors(kwargs))
        return as_arrays(tuple(result) if type(result) is list else result)  # a list is several components

    return call


class Optional(data.Optional[Any]):
    """An element of tensors, or nothing (``tf.experimental.Optional``)."""

    __slots__ = ()

    @classmethod
    def from_value(cls, value: Any) -> Optional:
        """Return an Optional that holds the tensors of a value."""
        return cls(as_tensors(as_arrays(value)))


class TensorElements:
    """What makes an iterator one over tensors; in front of the class of the iterator."""

    __slots__ = ()

    def __next__(self) -> Any:
        return as_tensors(super().__next__())  # type: ignore[misc]

    def get_next(self) -> Any:
        """Give the next element, or raise OutOfRangeError."""
        return as_tensors(super().get_next())  # type: ignore[misc]

    def get_next_as_optional(self) -> Optional:
        """Give the next element, or an empty Optional at the end."""
        found: data.Optional[Any] = super().get_next_as_optional()  # type: ignore[misc]
        return Optional(as_tensors(found.get_value())) if found.has_value() else Optional()
