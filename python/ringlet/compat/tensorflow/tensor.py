"""Tensor: an immutable array with the interface of TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.adapters.array_adapters import ArrayAdapter, kind_of, register_kind
from ringlet.compat.tensorflow.conversion import as_array
from ringlet.compat.tensorflow.dtypes import as_dtype, dtype_name
from ringlet.compat.tensorflow.operators import BINARY, REFLECTED, UNARY, DtypeError, compute
from ringlet.devices import canonicalize
from ringlet.errors import InvalidArgumentError
from ringlet.errors.documented_names import shown_as
from ringlet.sharding import ShardedArray
from ringlet.values import DistributedValues
from ringlet.values.ndarray_protocol import NDArrayProtocol
from ringlet.values.operator_proxy import plain
from ringlet.values.variables.variable_handle import VariableReference

Array = NDArray[Any]


def _plain(value: Any) -> Any:
    """Convert the tensors in arguments of a NumPy function, at any depth of containers, to plain arrays."""
    kind = type(value)
    if kind is Tensor:
        return value.view(np.ndarray)
    if kind is tuple or kind is list:
        return kind(map(_plain, value))
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    return value


def wrapped(result: Any) -> Any:
    """Convert the arrays in a NumPy function's result to tensors."""
    if isinstance(result, (np.ndarray, np.generic)):
        return tensor_of(result)
    if isinstance(result, tuple):
        parts = map(wrapped, result)
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return list(map(wrapped, result)) if type(result) is list else result


def as_operand(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert an operand to an array of `dtype`; NotImplemented for distributed values and other libraries' arrays."""
    value = plain(value)
    if isinstance(value, Tensor):
        if value.dtype != dtype:
            raise DtypeError(
                f"a tensor of {dtype_name(dtype)} and a tensor of {dtype_name(value.dtype)} cannot be combined. "
                f"Convert one of them, as in tf.cast(x, tf.{dtype_name(dtype)})"
            )
        return value.view(np.ndarray)
    if isinstance(value, DistributedValues) or kind_of(value) is not None:
        return NotImplemented
    array = as_array(value, None if isinstance(value, (np.ndarray, np.generic)) else dtype)
    if array.dtype != dtype and (
        (array.dtype.kind in "fc" and dtype.kind in "iub") or "O" in array.dtype.kind + dtype.kind
    ):
        remedy = f"Convert the tensor, as in tf.cast(tensor, tf.{dtype_name(array.dtype)})"
        if "O" in array.dtype.kind + dtype.kind:
            remedy = "Convert text to numbers first, or numbers to text"
        raise DtypeError(
            f"Cannot convert {value!r} to EagerTensor of dtype {dtype_name(dtype)}, which cannot represent it. {remedy}"
        )
    return array.astype(dtype, copy=False)


# Kinds of dtypes by rank: a scalar is converted to a dtype of the same or a later kind.
_KINDS = "biufVc"


def _weak(value: Any, dtype: np.dtype[Any]) -> Any:
    """Convert a scalar to a tensor's dtype if it fits, as NumPy 2 does; return other values unchanged."""
    if not isinstance(value, (bool, int, float, complex, np.number)):
        return value
    array = np.asarray(value)
    fits = _KINDS.find(array.dtype.kind) <= _KINDS.find(dtype.kind)
    return array.astype(dtype) if fits else value


def _binary(name: str) -> Any:
    rule = BINARY[name]

    def method(self: Tensor, other: Any) -> Any:
        operand = as_operand(other, self.dtype)
        return operand if operand is NotImplemented else tensor_of(compute(*rule, self.view(np.ndarray), operand))

    return method


def _reflected(name: str) -> Any:
    rule = BINARY[name]

    def method(self: Tensor, other: Any) -> Any:
        operand = as_operand(other, self.dtype)
        return operand if operand is NotImplemented else tensor_of(compute(*rule, operand, self.view(np.ndarray)))

    return method


def _unary(name: str) -> Any:
    rule = UNARY[name]
    return lambda self: tensor_of(compute(*rule, self.view(np.ndarray)))


def _equal(self: Tensor, other: Any) -> Any:
    if other is None:
        return False
    operand = as_operand(other, self.dtype)
    try:
        return operand if operand is NotImplemented else tensor_of(np.equal(self.view(np.ndarray), operand))
    except ValueError:  # the shapes are incompatible
        return tensor_of(np.False_)


def _not_equal(self: Tensor, other: Any) -> Any:
    result = _equal(self, other)
    if result is NotImplemented or result is False:
        return result if result is NotImplemented else True
    return tensor_of(np.logical_not(result.view(np.ndarray)))


@shown_as(InvalidArgumentError)
class _OutOfRange(InvalidArgumentError, IndexError, TypeError):
    """Raised for an index out of range; derived from the errors that TensorFlow and NumPy raise."""


class Tensor(np.ndarray[Any, Any]):
    """An immutable array with a method ``.numpy()`` (``tf.Tensor``). Created by ``tf.constant``.

    A tensor is a NumPy array: NumPy's functions accept and return tensors, and ``np.asarray(tensor)`` returns the plain
    array without a copy. As in TensorFlow, operators convert numbers, lists and arrays to the dtype of the tensor, but
    do not combine tensors of different dtypes.

    Examples
    --------
    >>> from ringlet.compat import tf
    >>> tf.constant(3.0) * 2
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    >>> np.max(tf.constant([1, 2])).numpy()
    np.int32(2)
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """Raise TypeError, as in TensorFlow: tensors are created by ``tf.constant``."""
        raise TypeError("tf.Tensor cannot be instantiated. Use tf.constant(value).")

    def numpy(self) -> Any:
        """Return the value as a writable NumPy array, or as a NumPy scalar if it is 0-d."""
        array = self.view(np.ndarray).copy()
        return array if array.ndim else array[()]

    @property
    def device(self) -> str:  # type: ignore[override,unused-ignore]  # NumPy returns "cpu"
        """Full name of the device: always the CPU of the host."""
        return canonicalize("CPU:0")

    def get_shape(self) -> tuple[int, ...]:
        """Return the shape, a tuple."""
        shape: tuple[int, ...] = self.shape
        return shape

    def ref(self) -> VariableReference:
        """Return a hashable reference to this tensor, for dictionaries and sets."""
        return VariableReference(self)

    def __repr__(self) -> str:
        array = self.view(np.ndarray)
        text = repr(array if array.ndim else array.item())
        return f"<tf.Tensor: shape={self.shape}, dtype={dtype_name(self.dtype)}, numpy={_block(text)}>"

    def __str__(self) -> str:
        array = self.view(np.ndarray)
        text = str(array if array.ndim else array[()])
        return f"tf.Tensor({_block(text)}, shape={self.shape}, dtype={dtype_name(self.dtype)})"

    def __format__(self, specification: str) -> str:
        return format(self.view(np.ndarray)[()], specification)

    def __hash__(self) -> int:  # type: ignore[override]  # raises
        raise TypeError("Tensor is unhashable. Instead, use tensor.ref() as the key.")

    def __getitem__(self, key: Any) -> Any:
        try:
            return tensor_of(self.view(np.ndarray)[_plain(key)])
        except IndexError as error:
            raise _OutOfRange(f"{error}, in tensor[{key!r}] of shape {self.shape}") from error

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a tf.Tensor does not support item assignment. Change a copy, as in array = tensor.numpy(), or use a "
            "tf.Variable."
        )

    def __iter__(self) -> Iterator[Any]:
        return map(tensor_of, iter(self.view(np.ndarray)))

    def __contains__(self, item: Any) -> bool:
        return any(bool(element == item) for element in self)

    def __bool__(self) -> bool:
        return bool(self.size) and bool(self.view(np.ndarray))

    # NumPy's functions, and methods of arrays that would write to a read-only result

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Call a NumPy ufunc on the plain arrays; scalars that fit the dtype of the tensor are converted to it.

        This method also implements operators with a NumPy scalar on the left.
        """
        if isinstance(inputs[0], np.generic) and method == "__call__" and ufunc in REFLECTED and not kwargs:
            return getattr(self, REFLECTED[ufunc])(inputs[0])
        arrays = [_plain(plain(value)) for value in inputs]
        if method == "__call__":
            arrays = [_weak(array, self.dtype) for array in arrays]
        return wrapped(getattr(ufunc, method)(*arrays, **_plain(kwargs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Call a NumPy function on the plain arrays."""
        return wrapped(function(*_plain(args), **_plain(kwargs)))

    def mean(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of ``ndarray.mean``."""
        return wrapped(self.view(np.ndarray).mean(*args, **kwargs))

    def std(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of ``ndarray.std``."""
        return wrapped(self.view(np.ndarray).std(*args, **kwargs))

    def var(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of ``ndarray.var``."""
        return wrapped(self.view(np.ndarray).var(*args, **kwargs))

    def astype(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of ``ndarray.astype``."""
        return wrapped(self.view(np.ndarray).astype(*args, **kwargs))

    def copy(self, order: Any = "C") -> Any:
        """Return a plain writable array."""
        return self.view(np.ndarray).copy(order)

    # Operators. In-place operators return new tensors, because tensors are immutable.

    __add__, __radd__ = _binary("add"), _reflected("add")
    __sub__, __rsub__ = _binary("sub"), _reflected("sub")
    __mul__, __rmul__ = _binary("mul"), _reflected("mul")
    __matmul__, __rmatmul__ = _binary("matmul"), _reflected("matmul")
    __truediv__, __rtruediv__ = _binary("truediv"), _reflected("truediv")
    __floordiv__, __rfloordiv__ = _binary("floordiv"), _reflected("floordiv")
    __mod__, __rmod__ = _binary("mod"), _reflected("mod")
    __pow__, __rpow__ = _binary("pow"), _reflected("pow")
    __and__, __rand__ = _binary("and"), _reflected("and")
    __or__, __ror__ = _binary("or"), _reflected("or")
    __xor__, __rxor__ = _binary("xor"), _reflected("xor")
    __iadd__, __isub__, __imul__, __imatmul__ = __add__, __sub__, __mul__, __matmul__
    __itruediv__, __ifloordiv__, __imod__, __ipow__ = __truediv__, __floordiv__, __mod__, __pow__
    __iand__, __ior__, __ixor__ = __and__, __or__, __xor__

    __lt__, __le__, __gt__, __ge__ = _binary("lt"), _binary("le"), _binary("gt"), _binary("ge")
    __eq__, __ne__ = _equal, _not_equal
    __neg__, __abs__, __invert__ = _unary("neg"), _unary("abs"), _unary("invert")


def _block(text: str) -> str:
    """Put a line break before a string of several lines."""
    return f"\n{text}" if "\n" in text else text


def tensor_of(result: Any) -> Tensor:
    """Return a tensor that shares the memory of an array; the array must not be modified later."""
    # Text is stored as objects, because NumPy's text dtypes drop trailing null bytes.
    tensor: Tensor = np.asarray(result, object if isinstance(result, (bytes, str)) else None).view(Tensor)
    tensor.setflags(write=False)
    return tensor


def as_tensor(value: Any, dtype: Any = None) -> Tensor:
    """Convert a value to a tensor with TensorFlow's dtypes; copy a writable array, return a sharded array unchanged."""
    if isinstance(value, (Tensor, ShardedArray)) and dtype in (None, value.dtype):
        return cast("Tensor", value)
    array = as_array(value, dtype)
    is_shared = isinstance(value, np.ndarray) and array.flags.writeable and np.may_share_memory(array, value)
    return tensor_of(array.copy() if is_shared else array)


def check_dtype(value: Any, dtype: Any) -> None:
    """Raise ValueError if the dtype of a tensor or a variable differs from `dtype`; None accepts any dtype."""
    if dtype is None or not isinstance(value, (Tensor, ShardedArray, NDArrayProtocol)):
        return
    given, wanted = dtype_name(value.dtype), dtype_name(as_dtype(dtype))  # type: ignore[union-attr]  # operands have one
    if given != wanted:
        raise ValueError(
            f"Tensor conversion requested dtype {wanted} for Tensor with dtype {given}: {value!r}. Use "
            f"tf.cast(value, tf.{wanted})"
        )


class _TensorKind(ArrayAdapter):
    """Adapter for tensors: they are immutable, so replicas share the memory of results."""

    name = "tf.Tensor"
    is_mutable = False

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        array: Array = value.view(np.ndarray)
        return array

    def from_ndarray(self, array: Array, like: Any) -> Any:
        return tensor_of(array)


register_kind(Tensor, _TensorKind())
