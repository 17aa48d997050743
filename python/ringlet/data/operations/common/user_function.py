"""UserFunction: calls of user functions with the element number in errors, and checks of results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.errors import InvalidArgumentError
from ringlet.errors.exception_notes import add_note


def check_callable(function: Any, operation: str, what: str = "a function of an element") -> None:
    """Raise TypeError if an argument of an operation is not callable."""
    if not callable(function):
        raise TypeError(f"{operation} requires {what}, got {function!r}")


def spread(element: Nest) -> tuple[Nest, ...]:
    """Return the arguments for a function of an element; a plain tuple is unpacked."""
    return element if type(element) is tuple else (element,)


class UserFunction:
    """A user function; a note with the element number is added to its errors.

    `step(function, *arguments)` calls the function and checks its result; errors of `step` get the note too.
    """

    def __init__(self, function: Callable[..., Any], name: str, step: Callable[..., Any] | None = None) -> None:
        self._function = function
        self._name = name
        self._step = function if step is None else partial(step, function)

    def __call__(self, number: int, *arguments: Any) -> Any:
        """Call the function for the element with this number."""
        try:
            return self._step(*arguments)
        except StopIteration as error:
            # StopIteration would end the dataset.
            raise InvalidArgumentError(self.where("raised StopIteration", number)) from error
        except Exception as error:
            add_note(error, self.where("raised this", number))
            raise

    def where(self, what: str, number: int) -> str:
        """Return a string that states what happened, and for which element."""
        name = getattr(self._function, "__qualname__", repr(self._function))
        return f"{self._name} {name} {what} for element {number} of this iteration"


def as_bool(answer: Any, where: str) -> bool:
    """Convert the result of a predicate to a bool; raise an error unless it is a bool or a 0-d bool array."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, np.ndarray) or kind_of(answer) is not None:
        array = as_ndarray(answer, "the result of a predicate")
        if array.dtype == np.bool_ and array.ndim == 0:
            return bool(array)
    raise InvalidArgumentError(
        f"{where} {answer!r}. A predicate must return one bool. Compare values (x != 0), or reduce an array with "
        "np.all or np.any."
    )


def node_of(value: Any) -> Node | None:
    """Return the last node of a dataset; None if the value is not a dataset."""
    node = getattr(value, "node", None)
    return node if isinstance(node, Node) else None
