"""What makes a variable stand for its value in NumPy's functions and in comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet.values.operator_proxy import StandIn

__all__ = ["Operand", "converted"]

Array = NDArray[Any]


def _in_place(sign: str, remedy: str) -> Callable[[Any, Any], Any]:
    def method(_: Operand, __: Any) -> NoReturn:
        # A NotImplementedError is a RuntimeError: TensorFlow raises one or the other, depending on the variable.
        raise NotImplementedError(
            f"`variable {sign}= value` is not supported: it could mean a change of the variable or a new array. Use "
            f"variable.{remedy} for the first, `variable = variable {sign} value` for the second"
        )

    return method


def converted(value: Any, dtype: DTypeLike | None, copy: bool | None) -> Array:
    """Give what NumPy asks an ``__array__`` for: a value with a dtype, copied if asked for or needed.

    Raises
    ------
    ValueError
        If a copy is needed, and `copy` is False.

    Examples
    --------
    >>> converted(np.arange(2), np.float64, None)
    array([0., 1.])
    """
    plain_value = np.asarray(value)
    array = np.asarray(plain_value, dtype=dtype)
    if array is not plain_value:
        if copy is False:
            raise ValueError(f"{plain_value.dtype} cannot become {array.dtype} without a copy: leave out copy=False")
        return array
    return array.copy() if copy else array


def _read(value: Any) -> Any:
    """What NumPy's functions are given, with values in the places of variables, at any depth.

    Arrays are plain ones, as ``np.asarray`` gives them; others are as they are.
    """
    kind = type(value)
    if kind is tuple or kind is list:
        return kind(map(_read, value))
    if kind is dict:
        return {key: _read(item) for key, item in value.items()}
    if not isinstance(value, Operand):
        return value
    array = value._as_operand()
    return np.asarray(array) if isinstance(array, np.ndarray) else array


class Operand(StandIn):
    """Base of what behaves as an array in expressions; results are plain arrays.

    Examples
    --------
    >>> class Two(Operand):
    ...     def _as_operand(self):
    ...         return np.array([2.0, 2.0])
    >>> np.ones(2) + Two() * 3
    array([7., 7.])
    """

    def _as_operand(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say what it stands for")

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return converted(self._as_operand(), dtype, copy)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        if out is not None:
            if any(isinstance(place, Operand) for place in out):
                raise TypeError(
                    f"np.{ufunc.__name__} cannot write to a variable: give its result to variable.assign, without out="
                )
            kwargs["out"] = out
        if method == "at" and isinstance(inputs[0], Operand):
            # NumPy's own check does not see that the array is read-only.
            raise TypeError(
                f"np.{ufunc.__name__}.at cannot write to a variable: use variable.scatter_add(IndexedSlices(values, "
                "indices)) or another scatter, or change a copy (array = variable.numpy()) and assign that"
            )
        arrays = [value._as_operand() if isinstance(value, Operand) else value for value in inputs]
        return getattr(ufunc, method)(*arrays, **kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return function(*_read(args), **_read(kwargs))

    def __eq__(self, other: object) -> Any:
        try:
            return False if other is None else self._as_operand() == other
        except ValueError:  # shapes that do not go together
            return False

    def __ne__(self, other: object) -> Any:
        try:
            return True if other is None else self._as_operand() != other
        except ValueError:
            return True

    def __hash__(self) -> int:
        raise TypeError(
            "Variable is unhashable, because == compares its elements. Use variable.ref() as the key, and key.deref() "
            "to get the variable back"
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a variable does not support item assignment: use scatter_update(IndexedSlices(values, indices)) for rows, "
            "or change a copy (array = variable.numpy(); array[...] = ...) and assign that"
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
