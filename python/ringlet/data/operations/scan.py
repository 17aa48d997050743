"""A function of every element and of a state that it hands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.node import Downstream, Run, State, Stream
from ringlet.data.operations.carried_state import FoldedState
from ringlet.data.operations.common_specs import spec_of_answers
from ringlet.data.operations.element_transform import Rowless
from ringlet.data.operations.elements import Elements
from ringlet.data.operations.user_function import UserFunction, check_callable
from ringlet.data.state.saved_elements import load_element, save_element
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import map_structure

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Scan", "scan"]


def scan(
    self: Dataset, initial_state: Nest, scan_func: Callable[[Any, Any], tuple[Nest, Nest]], name: str | None = None
) -> Dataset:
    """Give an element for every element, and hand a state from one to the next.

    Parameters
    ----------
    initial_state : array, or nest of arrays
    scan_func : callable
        Takes the state and an element, a tuple as one argument; gives a pair, the next state, of the same structure and
        dtypes, and an element.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If `scan_func` cannot be called; during iteration, if it gives no pair, or a state of other dtypes.
    InvalidArgumentError
        During iteration, if it gives a state of another structure.

    Notes
    -----
    An exception of `scan_func` surfaces where its element is asked for, with the number of the element in a note. The
    iterator can go on behind it, with the state in front of it.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(1, 5).scan(0, lambda total, x: (total + x, total + x))]
    [1, 3, 6, 10]
    """
    check_callable(scan_func, "scan", "a function of a state and an element")
    return type(self)(Scan(self.node, detached(as_element(initial_state)), scan_func))


@dataclass(frozen=True, eq=False)
class Scan(Rowless):
    """The second of what ``function(state, element)`` gives; the first is the next state."""

    initial_state: Nest
    function: Callable[[Any, Any], tuple[Nest, Nest]]

    @property
    def settings(self) -> dict[str, Any]:
        """The specs of the state."""
        return {"state": str(map_structure(TensorSpec.from_array, self.initial_state))}

    @property
    def runs_user_code(self) -> bool:
        """Always."""
        return True

    @cached_property
    def example(self) -> Nest:
        """What the function makes of the initial state and the input's example."""
        return self._answer(self.input.example)

    def _answer(self, example: Nest) -> Nest:
        return as_element(pair(self.function(self.initial_state, example))[1])

    @cached_property
    def element_spec(self) -> Nest:
        """The specs of the examples; sizes that change with the state or with unknown sizes are unknown."""
        return spec_of_answers(self._answers, self.input, self._answer)

    @property
    def _answers(self) -> list[Nest]:
        """The first element, and the second where its state has other shapes than the first."""
        state, first = map(as_element, pair(self.function(self.initial_state, self.input.example)))
        if map_structure(np.shape, state) == map_structure(np.shape, self.initial_state):
            return [first]
        return [first, as_element(pair(self.function(state, self.input.example))[1])]

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return ScanElements(self.input.open(run), self)


def pair(answer: Any) -> tuple[Nest, Nest]:
    """Read what a function of the user's gave as a pair.

    Raises
    ------
    TypeError
        If it is none.

    Examples
    --------
    >>> pair((1, 2))
    (1, 2)
    """
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise TypeError(f"scan_func must give a pair, the next state and an element, and gave {answer!r}")
    return answer[0], answer[1]


class ScanElements(Downstream):
    """The elements that the function makes, and the state between two of them."""

    __slots__ = ("_count", "_function", "_node", "_state")

    def __init__(self, source: Stream, node: Scan) -> None:
        super().__init__(source)
        self._node = node
        self._function = UserFunction(node.function, "scan_func", self._step)
        self._state = FoldedState(node.initial_state, "scan_func")
        self._count = 0

    def __next__(self) -> Nest:
        element = next(self._input)
        self._count += 1
        return self._function(self._count - 1, self._state, element)

    @staticmethod
    def _step(function: Callable[[Any, Any], Any], state: FoldedState, element: Nest) -> Nest:
        new_state, result = pair(function(state.value, element))
        made = detached(as_element(result), (state.value, element))
        state.update(new_state)
        return made

    def get_state(self) -> State:
        """Give the state between elements, and how many elements were read."""
        return {**super().get_state(), "state": save_element(self._state.value), "count": self._count}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        self._state.value = load_element(state["state"], Elements((self._node.initial_state,)))
        self._count = state["count"]
