"""Functions of users, called on elements: what they raise says for which element, and what they give is checked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.exception_notes import add_note
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.errors import InvalidArgumentError

__all__ = ["UserFunction", "as_bool", "check_callable", "node_of", "spread"]


def check_callable(function: Any, operation: str, what: str = "a function of an element") -> None:
    """Refuse what cannot be called.

    Raises
    ------
    TypeError

    Examples
    --------
    >>> check_callable(len, "filter")
    """
    if not callable(function):
        raise TypeError(f"{operation} needs {what}, got {function!r}")


def spread(element: Nest) -> tuple[Nest, ...]:
    """Give the arguments that a function of an element takes: a plain tuple is several of them.

    Examples
    --------
    >>> spread((1, 2)), spread({"a": 1})
    ((1, 2), ({'a': 1},))
    """
    return element if type(element) is tuple else (element,)


class UserFunction:
    """A function of the user's whose errors say for which element it was called.

    Parameters
    ----------
    function : callable
    name : str
        The parameter that it was given as.
    step : callable, optional
        Calls the function and looks at what it gives: ``step(function, *arguments)``. Its errors get the number, too.

    Examples
    --------
    >>> UserFunction(lambda x: x + 1, "map_func")(0, 41)
    42
    """

    __slots__ = ("_function", "_name", "_step")

    def __init__(self, function: Callable[..., Any], name: str, step: Callable[..., Any] | None = None) -> None:
        self._function = function
        self._name = name
        self._step = function if step is None else partial(step, function)

    def __call__(self, number: int, *arguments: Any) -> Any:
        """Call the function for the element with this number."""
        try:
            return self._step(*arguments)
        except StopIteration as error:
            # Let through, it would look like the end of the dataset.
            raise InvalidArgumentError(self.where("raised StopIteration", number)) from error
        except Exception as error:
            add_note(error, self.where("raised this", number))
            raise

    def where(self, what: str, number: int) -> str:
        """Say what happened for which element."""
        name = getattr(self._function, "__qualname__", repr(self._function))
        return f"{self._name} {name} {what} for element {number} of this iteration"


def as_bool(answer: Any, where: str) -> bool:
    """Read the answer of a predicate: True or False of Python or an array, and nothing that only counts as such.

    Raises
    ------
    InvalidArgumentError
        For anything else.

    Examples
    --------
    >>> as_bool(np.bool_(True), "")
    True
    """
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, np.ndarray) or kind_of(answer) is not None:
        array = as_ndarray(answer, "the answer of a predicate")
        if array.dtype == np.bool_ and array.ndim == 0:
            return bool(array)
    raise InvalidArgumentError(
        f"{where} {answer!r}. A predicate must give one bool: compare (x != 0), or reduce an array with np.all or "
        "np.any."
    )


def node_of(value: Any) -> Node | None:
    """Give the last node of a dataset; None for anything else.

    Examples
    --------
    >>> node_of(3)
    """
    node = getattr(value, "node", None)
    return node if isinstance(node, Node) else None
