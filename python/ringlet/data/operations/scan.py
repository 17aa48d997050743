"""Dataset.scan: elements computed from every element and a running state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.graph.sources import Elements
from ringlet.data.graph.spec_inference import spec_of, spec_of_answers
from ringlet.data.operations.common.carried_state import CarriedState
from ringlet.data.operations.common.user_function import UserFunction, check_callable
from ringlet.data.state.saved_elements import load_element, save_element
from ringlet.nest import map_structure


def scan(
    self: Dataset, initial_state: Nest, scan_func: Callable[[Any, Any], tuple[Nest, Nest]], name: str | None = None
) -> Dataset:
    """Transform every element with a state that is passed from element to element.

    Parameters
    ----------
    initial_state : array, or nest of arrays
    scan_func : callable
        Takes the state and an element (a tuple is one argument); returns a pair: the next state, with the same
        structure and dtypes, and an element.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If `scan_func` is not callable; during iteration, if `scan_func` does not return a pair, or returns a state of
        different dtypes.
    InvalidArgumentError
        During iteration, if `scan_func` returns a state of a different structure.

    Notes
    -----
    An exception of `scan_func` is raised when its element is requested, with the element number in a note. Iteration
    can continue after the exception, with the previous state.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(1, 5).scan(0, lambda total, x: (total + x, total + x))]
    [1, 3, 6, 10]
    """
    check_callable(scan_func, "scan", "a function of a state and an element")
    return type(self)(Scan(self.node, detached(as_element(initial_state)), scan_func))


@dataclass(frozen=True, eq=False)
class Scan(ElementTransform):
    """Node that yields the second result of ``function(state, element)``; the first result is the next state."""

    initial_state: Nest
    function: Callable[[Any, Any], tuple[Nest, Nest]]

    @property
    def settings(self) -> dict[str, Any]:
        return {"state": str(map_structure(spec_of, self.initial_state))}

    runs_user_code = True

    @cached_property
    def example(self) -> Nest:
        return self._answer(self.input.example)

    def _answer(self, example: Nest) -> Nest:
        return as_element(pair(self.function(self.initial_state, example))[1])

    @cached_property
    def element_spec(self) -> Nest:
        """The specs of the examples; sizes that depend on the state or on unknown sizes are unknown."""
        return spec_of_answers(self._answers, self.input, self._answer)

    @property
    def _answers(self) -> list[Nest]:
        """Results for the input's example; two, if the first call changes the shapes of the state."""
        state, first = map(as_element, pair(self.function(self.initial_state, self.input.example)))
        if map_structure(np.shape, state) == map_structure(np.shape, self.initial_state):
            return [first]
        return [first, as_element(pair(self.function(state, self.input.example))[1])]

    def open_elements(self, context: IterationContext) -> Stream:
        return ScanElements(self, context)


def pair(answer: Any) -> tuple[Nest, Nest]:
    """Return the result of a user function, which must be a pair."""
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise TypeError(f"scan_func must return a pair of the next state and an element, but returned {answer!r}")
    return answer[0], answer[1]


class ScanElements(InputStream):
    """Stream of the elements that the function returns; holds the current state."""

    SAVED = ("count",)
    _count = 0

    def __init__(self, node: Scan, context: IterationContext) -> None:
        super().__init__(node, context)
        self._function = UserFunction(node.function, "scan_func", self._step)
        self._state = CarriedState(node.initial_state, "scan_func")

    def __next__(self) -> Nest:
        element = next(self._input)
        self._count += 1
        return self._function(self._count - 1, self._state, element)

    @staticmethod
    def _step(function: Callable[[Any, Any], Any], state: CarriedState, element: Nest) -> Nest:
        new_state, result = pair(function(state.value, element))
        made = detached(as_element(result), (state.value, element))
        state.update(new_state)
        return made

    def get_state(self) -> State:
        return {**super().get_state(), "state": save_element(self._state.value)}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._state.value = load_element(state["state"], Elements((self._node.initial_state,)))
