"""NumPy protocols of variables: array conversion, ufuncs, functions and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.operator_proxy import OperatorProxy

Array = NDArray[Any]


def _in_place(sign: str, remedy: str) -> Callable[[Any, Any], Any]:
    def method(_: NDArrayProtocol, __: Any) -> NoReturn:
        # TensorFlow raises NotImplementedError or its base class RuntimeError, depending on the variable.
        raise NotImplementedError(
            f"`variable {sign}= value` is not supported, because it is ambiguous: use variable.{remedy} to update the "
            f"variable, or `variable = variable {sign} value` to compute a new array"
        )

    return method


def converted(value: Any, dtype: DTypeLike | None, copy: bool | None) -> Array:
    """Convert a value to an array, with the semantics of ``__array__(dtype, copy)``."""
    plain_value = np.asarray(value)
    array = np.asarray(plain_value, dtype=dtype)
    if array is not plain_value:
        if copy is False:
            raise ValueError(
                f"{plain_value.dtype} cannot be converted to {array.dtype} without a copy: omit copy=False"
            )
        return array
    return array.copy() if copy else array


def _read(value: Any) -> Any:
    """Return the arguments of a NumPy function with variables replaced by plain arrays, at any depth."""
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(_read, value))
    if kind is dict:
        return {key: _read(item) for key, item in value.items()}
    if not isinstance(value, NDArrayProtocol):
        return value
    array = value._as_operand()
    return np.asarray(array) if isinstance(array, np.ndarray) else array


class NDArrayProtocol(OperatorProxy):
    """Base class of objects that behave like an array in expressions; results are plain arrays.

    Examples
    --------
    >>> class Two(NDArrayProtocol):
    ...     def _as_operand(self):
    ...         return np.array([2.0, 2.0])
    >>> np.ones(2) + Two() * 3
    array([7., 7.])
    """

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return converted(self._as_operand(), dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None:
            if any(isinstance(place, NDArrayProtocol) for place in out):
                raise TypeError(
                    f"np.{ufunc.__name__} cannot write to a variable: pass the result to variable.assign, without out="
                )
            kwargs["out"] = out
        if method == "at" and isinstance(inputs[0], NDArrayProtocol):
            # ufunc.at does not check that the array is writeable.
            raise TypeError(
                f"np.{ufunc.__name__}.at cannot write to a variable: use variable.scatter_add(IndexedSlices(values, "
                "indices)) or another scatter method, or modify a copy (array = variable.numpy()) and assign it"
            )
        arrays = [value._as_operand() if isinstance(value, NDArrayProtocol) else value for value in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_read(args), **_read(kwargs))

    def __eq__(self, other: object) -> Any:
        try:
            return False if other is None else self._as_operand() == other
        except ValueError:  # raised for shapes that do not broadcast
            return False

    def __ne__(self, other: object) -> Any:
        try:
            return True if other is None else self._as_operand() != other
        except ValueError:
            return True

    def __hash__(self) -> int:
        raise TypeError(
            "Variable is unhashable, because == compares its elements. Use variable.ref() as the key, and key.deref() "
            "to retrieve the variable"
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a variable does not support item assignment: use scatter_update(IndexedSlices(values, indices)) for rows, "
            "or modify a copy (array = variable.numpy(); array[...] = ...) and assign it"
        )

    def __round__(self, digits: int | None = None) -> Any:
        value: Any = self._as_operand()
        return round(value[()] if value.ndim == 0 else value, digits)

    def __format__(self, specification: str) -> str:
        return format(self._as_operand()[()], specification) if specification else str(self)

    __iadd__ = _in_place("+", "assign_add(value)")
    __isub__ = _in_place("-", "assign_sub(value)")
    __imul__ = _in_place("*", "assign(variable * value)")
    __imatmul__ = _in_place("@", "assign(variable @ value)")
    __itruediv__ = _in_place("/", "assign(variable / value)")
    __ifloordiv__ = _in_place("//", "assign(variable // value)")
    __imod__ = _in_place("%", "assign(variable % value)")
    __ipow__ = _in_place("**", "assign(variable ** value)")
