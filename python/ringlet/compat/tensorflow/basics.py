"""Top-level functions that create, convert and print tensors."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from typing import cast as cast_type

import numpy as np

from ringlet.compat.tensorflow.conversion import as_array, no_tensor
from ringlet.compat.tensorflow.dtypes import as_dtype, dtype_name
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor, check_dtype, tensor_of
from ringlet.devices import Device
from ringlet.errors import InvalidArgumentError
from ringlet.sharding import ShardedArray
from ringlet.values import IndexedSlices, Variable

_write = builtins.print


def constant(value: Any, dtype: Any = None, shape: Sequence[int] | None = None, name: str = "Const") -> Tensor:
    """Create a tensor.

    Parameters
    ----------
    value : array-like
        Python floats become float32, ints become int32 (int64 if too large), and text becomes bytes; arrays keep their
        dtype.
    dtype : dtype-like, optional
    shape : sequence of int, optional
        Shape of the tensor: a single number is repeated, other values are reshaped.
    name : str, unused

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        If a number does not fit `dtype`, a tensor has a different dtype, or `shape` a different number of elements.
    ValueError
        If the value cannot be converted, or `shape` has a negative size.

    Examples
    --------
    >>> constant(3.0)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    >>> constant(0, shape=[2, 2]).numpy().tolist()
    [[0, 0], [0, 0]]
    """
    if isinstance(value, (Tensor, ShardedArray)) and dtype is not None and value.dtype != as_dtype(dtype):
        raise TypeError(
            f"Expected a tensor with dtype {as_dtype(dtype).name}, but got dtype {value.dtype.name}: {value!r}. Use "
            "tf.cast(value, dtype)"
        )
    if isinstance(value, IndexedSlices):
        raise no_tensor(value)
    tensor = as_tensor(value, dtype)
    if shape is None or tensor.shape == (sizes := shape_of(shape)):
        return tensor
    if any(size < 0 for size in sizes):
        raise ValueError(f"sizes of a shape must be >= 0, got {sizes}. Use tf.reshape for a size of -1.")
    if tensor.size == 1:
        return _tensor(np.broadcast_to(np.reshape(tensor, ()), sizes))
    if tensor.size != int(np.prod(sizes)):
        raise TypeError(
            f"Eager execution of tf.constant with unsupported shape. Tensor {value} has {tensor.size} elements, but "
            f"got `shape` {sizes} with {int(np.prod(sizes))} elements"
        )
    return _tensor(np.reshape(tensor, sizes))


def _tensor(result: Any) -> Tensor:
    """Convert the result of a NumPy function to a tensor; return a sharded array unchanged."""
    return cast_type("Tensor", result) if isinstance(result, ShardedArray) else tensor_of(result)


def shape_of(shape: Any) -> tuple[int, ...]:
    """Convert a shape to a tuple; a number is a shape of one dimension."""
    sizes = np.atleast_1d(np.asarray(shape))
    if sizes.size and sizes.dtype.kind not in "iu":
        raise InvalidArgumentError(f"a shape must consist of integers, got {shape!r}")
    return tuple(map(int, sizes))


def convert_to_tensor(value: Any, dtype: Any = None, dtype_hint: Any = None, name: str | None = None) -> Tensor:
    """Convert a value to a tensor; return a tensor unchanged.

    Parameters
    ----------
    value : array-like
        As for :func:`constant`. A variable is read, and an IndexedSlices becomes a dense array.
    dtype : dtype-like, optional
    dtype_hint : dtype-like, optional
        Used if `dtype` is not given and the value can be converted to it.
    name : str, unused

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If a tensor or a variable has a different dtype, or the value cannot be converted.
    TypeError
        If a number does not fit the dtype.

    Examples
    --------
    >>> convert_to_tensor([1, 2], dtype_hint="float32").dtype
    dtype('float32')
    """
    check_dtype(value, dtype)
    if dtype is None and dtype_hint is not None and not (hasattr(value, "dtype") or isinstance(value, IndexedSlices)):
        try:
            return as_tensor(value, dtype_hint)
        except TypeError:
            pass
    return as_tensor(value, dtype)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Return a value converted to another dtype, as by ``ndarray.astype``; negative floats wrap in unsigned integers.

    Parameters
    ----------
    x : array-like
    dtype : dtype-like
    name : str, unused

    Returns
    -------
    Tensor

    Raises
    ------
    NotImplementedError
        If one of the dtypes is text and the other is not.

    Examples
    --------
    >>> cast(2.7, "int32")
    <tf.Tensor: shape=(), dtype=int32, numpy=2>
    """
    if isinstance(x, IndexedSlices):
        return cast_type("Tensor", IndexedSlices(cast(x.values, dtype), x.indices, x.dense_shape))
    array, wanted = x if isinstance(x, ShardedArray) else as_array(x), as_dtype(dtype)
    if array.dtype != wanted and "O" in array.dtype.kind + wanted.kind:
        raise NotImplementedError(
            f"Cast {dtype_name(array.dtype)} to {dtype_name(wanted)} is not supported. Convert text through x.numpy()."
        )
    # Negative floats are converted through signed integers, because the direct conversion is undefined.
    if wanted.kind == "u" and array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            signed = array.astype(np.int64)
            array = signed if wanted.itemsize < 8 else np.where(array < 0, signed.astype(wanted), array.astype(wanted))
    return _tensor(array.astype(wanted))


def identity(input: Any, name: str | None = None) -> Tensor:
    """Return a new tensor with the same value.

    Parameters
    ----------
    input : array-like
    name : str, unused

    Returns
    -------
    Tensor

    Examples
    --------
    >>> identity(3)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    return _tensor(input.copy() if isinstance(input, ShardedArray) else as_tensor(input).view(np.ndarray))


def is_tensor(x: Any) -> bool:
    """Return whether a value is a tensor, a sharded array or a variable.

    Parameters
    ----------
    x : object

    Returns
    -------
    bool

    Examples
    --------
    >>> is_tensor(constant(1)), is_tensor(1)
    (True, False)
    """
    return isinstance(x, (Tensor, ShardedArray, Variable))


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str | None = "range") -> Tensor:
    """Return a tensor of evenly spaced numbers.

    Parameters
    ----------
    start : number
        The first number. Without `limit`, the exclusive end of a range that starts at zero.
    limit, delta : number, optional
    dtype : dtype-like, optional
    name : str, unused

    Returns
    -------
    Tensor

    Examples
    --------
    >>> range(3), range(1.0, 2.0, 0.5).numpy().tolist()
    (<tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 1, 2], dtype=int32)>, [1.0, 1.5])
    """
    first, last = (0, start) if limit is None else (start, limit)
    numbers = [as_array(number) for number in (first, last, delta)]
    wanted = np.result_type(*numbers) if dtype is None else as_dtype(dtype)
    wanted = np.dtype(np.float32) if wanted.kind == "f" and not _any_wide(numbers) and dtype is None else wanted
    begin, end, step = (number.item() for number in numbers)
    if step == 0 or (end - begin) * step < 0:
        raise InvalidArgumentError(f"a range from {begin} with delta {step} never reaches {end}. Pass another delta.")
    return tensor_of(np.arange(begin, end, step, dtype=wanted))


def _any_wide(numbers: Sequence[Any]) -> bool:
    return any(number.dtype == np.float64 for number in numbers)


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Select a device in a ``with`` block; without effect, because all devices share the host's memory.

    Parameters
    ----------
    device_name : str, LogicalDevice or None

    Raises
    ------
    ValueError
        If the device string is invalid.

    Examples
    --------
    >>> with device("/cpu:0"):
    ...     one = constant(1)
    """
    if device_name is not None:
        Device.parse(getattr(device_name, "name", device_name))
    yield


def executing_eagerly() -> bool:
    """Return whether programs run eagerly: always True.

    Returns
    -------
    bool

    Examples
    --------
    >>> executing_eagerly()
    True
    """
    return True


def print(
    *inputs: Any, output_stream: Any = None, summarize: int = 3, sep: str = " ", end: str = "\n", name: Any = None
) -> None:
    """Print values; tensors are printed as numbers in NumPy's format.

    Parameters
    ----------
    *inputs : object
        Nested structures of tensors, variables and other values.
    output_stream : file, optional
        By default, ``sys.stderr``, as in TensorFlow.
    summarize : int, optional
        Number of elements shown at each end of each dimension, at least 1; -1 shows all.
    sep, end : str, optional
    name : str, unused

    Raises
    ------
    ValueError
        If `output_stream` is not writable.

    Examples
    --------
    >>> import sys
    >>> print("sum", constant([1, 2]), output_stream=sys.stdout)
    sum [1 2]
    """
    stream = sys.stderr if output_stream is None else output_stream
    if not hasattr(stream, "write"):
        raise ValueError(
            f"output_stream must be a file open for writing, got {output_stream!r}. Pass sys.stdout, for example."
        )
    shown = np.iinfo(np.int64).max if summarize < 0 else 2 * summarize
    with np.printoptions(edgeitems=max(summarize, 1), threshold=shown):
        texts = [_text(value) for value in inputs]
    _write(*texts, sep=sep, end=end, file=stream)


def _text(value: Any) -> str:
    """Return the printed form of a value: containers in Python's format, with tensors as numbers."""
    if is_tensor(value):
        return str(value if isinstance(value, ShardedArray) else np.asarray(value)[()])
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        text = ", ".join(map(_text, value))
        return f"[{text}]" if isinstance(value, list) else f"({text})"
    return str(value)
