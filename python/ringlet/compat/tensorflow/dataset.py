"""Dataset of ``tf.data``: ringlet's Dataset with TensorFlow's dtypes and with tensors as elements."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import data
from ringlet.compat.tensorflow.absent import ALTERNATIVES, absent_error
from ringlet.compat.tensorflow.elements import TensorElements, as_arrays, as_plain, as_tensors, with_tensors
from ringlet.compat.tensorflow.tensor import Tensor, tensor_of


class DatasetIterator(TensorElements, data.DatasetIterator):
    """Iterator over the elements of a dataset as tensors; created by ``iter(dataset)``."""

    __slots__ = ()


class _DatasetType(type):
    """Metaclass of Dataset: errors about unsupported names of TensorFlow state a replacement."""

    def __getattr__(cls, name: str) -> Any:
        path = f"tf.data.Dataset.{name}"
        if path in ALTERNATIVES:
            raise absent_error(path)
        raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}", name=name, obj=cls)


class Dataset(data.Dataset, metaclass=_DatasetType):
    """A lazily evaluated sequence of elements, described by operations (``tf.data.Dataset``).

    Every operation of :class:`ringlet.data.Dataset` is available, with the same arguments. Numbers and lists have
    TensorFlow's dtypes. Elements, and the arguments of functions, are tensors; ``as_numpy_iterator()`` yields plain
    arrays. Create a dataset with ``tf.data.Dataset.from_tensor_slices`` or a similar function.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> for x in tf.data.Dataset.from_tensor_slices([1, 2]).map(lambda x: x * 2):
    ...     print(x)
    tf.Tensor(2, shape=(), dtype=int32)
    tf.Tensor(4, shape=(), dtype=int32)
    """

    __slots__ = ()

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(type(self), name)

    def cardinality(self) -> Any:
        """Return the number of elements, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY, as a tensor of int64."""
        return tensor_of(np.int64(super().cardinality()))


def as_dataset(dataset: data.Dataset) -> Dataset:
    """Return a dataset of tensors with the elements of another dataset."""
    return dataset if isinstance(dataset, Dataset) else Dataset(dataset.node)


def _plain(dataset: data.Dataset) -> data.Dataset:
    return data.Dataset(dataset.node) if isinstance(dataset, Dataset) else dataset


def _argument(value: Any) -> Any:
    """Convert an argument for ringlet's operation, wrapping functions so that they receive tensors."""
    if isinstance(value, data.Dataset):
        return _plain(value)
    if isinstance(value, Tensor):
        return value.view(np.ndarray)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(_argument, value))
    if type(value) is dict:
        return {key: _argument(item) for key, item in value.items()}
    is_type = isinstance(value, type) and not issubclass(value, data.Dataset)
    if callable(value) and not is_type and not isinstance(value, np.dtype):
        return with_tensors(value)
    return value


def _result(value: Any) -> Any:
    """Convert the elements in an operation's result to tensors, and datasets to datasets of tensors."""
    return value if isinstance(value, data.DatasetIterator) else as_tensors(value)


def _operation(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def operation(self: Dataset, *args: Any, **kwargs: Any) -> Any:
        if name in _FROM_A_STATE:
            args, kwargs = _with_tensor_state(*args, **kwargs)
        bound = getattr(_plain(self), name)
        return _result(bound(*map(_argument, args), **{key: _argument(value) for key, value in kwargs.items()}))

    return operation


def _with_tensor_state(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of `reduce` and `scan` with an initial state of TensorFlow's dtypes."""
    if args:
        return (as_arrays(args[0]), *args[1:]), kwargs
    return args, {key: as_arrays(value) if key == "initial_state" else value for key, value in kwargs.items()}


def dataset_maker(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that creates ringlet's datasets in a function that creates datasets of tensors."""

    @functools.wraps(original, updated=())
    def make(*args: Any, **kwargs: Any) -> Any:
        return _result(original(*map(_argument, args), **{key: _argument(value) for key, value in kwargs.items()}))

    return make


def _of_components(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        return _result(original(as_arrays(tensors), *args, **kwargs))

    return make


def _of_list(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(elements: Any, *args: Any, **kwargs: Any) -> Any:
        arrays = list(map(as_arrays, elements)) if isinstance(elements, list) else elements
        return _result(original(arrays, *args, **kwargs))

    return make


def _of_generator(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def make(generator: Any, *args: Any, **kwargs: Any) -> Any:
        def plain_elements(*given: Any) -> Any:
            return map(as_plain, generator(*given))

        return _result(original(plain_elements if callable(generator) else generator, *args, **kwargs))

    return make


# Dataset constructors whose arguments need a special conversion.
_MAKERS = {
    "from_generator": _of_generator,
    "from_list": _of_list,
    "from_tensor_slices": _of_components,
    "from_tensors": _of_components,
}
_AS_THEY_ARE = {"as_numpy_iterator", "options"}
_FROM_A_STATE = {"reduce", "scan"}


def _add_operations() -> None:
    for name in list(vars(data.Dataset)):
        getattr(data.Dataset, name)  # loads the method
        member = vars(data.Dataset)[name]
        if name.startswith("_") or isinstance(member, property) or name in _AS_THEY_ARE or name in vars(Dataset):
            continue
        if isinstance(member, types.FunctionType):
            setattr(Dataset, name, _operation(name, member))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(Dataset, name, staticmethod(_MAKERS.get(name, dataset_maker)(getattr(data.Dataset, name))))


_add_operations()
