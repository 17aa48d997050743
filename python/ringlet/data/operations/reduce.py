"""All elements of a dataset as one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.element_structure import Nest
from ringlet.data.operations.carried_state import FoldedState
from ringlet.data.operations.user_function import UserFunction, check_callable

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["reduce"]


def reduce(
    self: Dataset, initial_state: Nest, reduce_func: Callable[[Any, Any], Nest], name: str | None = None
) -> Nest:
    """Go through the dataset, and hand a state from element to element.

    Parameters
    ----------
    initial_state : array, or nest of arrays
    reduce_func : callable
        Takes the state and an element, a tuple as one argument; gives the next state, of the same structure and dtypes.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    nest of arrays
        The last state; the initial one, if there are no elements. Arrays are read-only.

    Raises
    ------
    TypeError
        If `reduce_func` cannot be called, or gives a state of other dtypes.
    InvalidArgumentError
        If it gives a state of another structure.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(5).reduce(0, lambda total, x: total + x)
    np.int64(10)
    """
    check_callable(reduce_func, "reduce", "a function of a state and an element")
    function = UserFunction(reduce_func, "reduce_func", _step)
    state = FoldedState(initial_state, "reduce_func")
    with iter(self) as elements:
        for number, element in enumerate(elements):
            function(number, state, element)
    return state.value


def _step(function: Callable[[Any, Any], Nest], state: FoldedState, element: Nest) -> None:
    state.update(function(state.value, element))
