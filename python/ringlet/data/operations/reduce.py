"""Dataset.reduce: all elements combined into one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.data.operations.common.carried_state import CarriedState
from ringlet.data.operations.common.user_function import UserFunction, check_callable


def reduce(
    self: Dataset, initial_state: Nest, reduce_func: Callable[[Any, Any], Nest], name: str | None = None
) -> Nest:
    """Combine all elements into one state.

    Parameters
    ----------
    initial_state : array, or nest of arrays
    reduce_func : callable
        Takes the state and an element (a tuple is one argument); returns the next state, with the same structure and
        dtypes.
    name : str, unused

    Returns
    -------
    nest of arrays
        The last state, or the initial state if the dataset has no elements. Arrays are read-only.

    Raises
    ------
    TypeError
        If `reduce_func` is not callable, or returns a state of different dtypes.
    InvalidArgumentError
        If `reduce_func` returns a state of a different structure.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(5).reduce(0, lambda total, x: total + x)
    np.int64(10)
    """
    check_callable(reduce_func, "reduce", "a function of a state and an element")
    function = UserFunction(reduce_func, "reduce_func", _step)
    state = CarriedState(initial_state, "reduce_func")
    with iter(self) as elements:
        for number, element in enumerate(elements):
            function(number, state, element)
    return state.value


def _step(function: Callable[[Any, Any], Nest], state: CarriedState, element: Nest) -> None:
    answer = function(state.value, element)
    # As in TensorFlow, a returned list is a tuple of components.
    state.update(tuple(answer) if isinstance(answer, list) and type(state.value) is tuple else answer)
