"""A function of every element."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ringlet.data.exception_notes import add_note
from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.mapped_stream import Called
from ringlet.data.graph.node import Node, Run, State, Stream, Transformation
from ringlet.data.graph.thread_map import count_calls
from ringlet.data.operations.common_specs import spec_of_answers
from ringlet.data.operations.counts import check_parallel_calls
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Map", "map"]


def map(
    self: Dataset,
    map_func: Callable[..., Nest],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Give ``map_func(element)`` for every element, in their order.

    Parameters
    ----------
    map_func : callable
        Takes an element; one that is a tuple comes as several arguments. Returns an array, a number, text, or a nest of
        those. A list is a tuple of components, as in TensorFlow; inside of a nest it is one array. The arrays that it
        is given are read-only. Arrays that it returns are copied, so that it may fill one buffer again and again; views
        of what it was given, and read-only arrays, are not.
    num_parallel_calls : int, optional
        How many calls may run at once, each in a thread; AUTOTUNE (-1) takes the number of cores. Threads pay where the
        function spends its time outside of the interpreter: in NumPy, or waiting. None, the default, and 1 call it
        where the element is asked for.
    deterministic : bool, optional
        False lets results of calls that run at once come as they are done. Otherwise they keep their order.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Its `element_spec` is found by calling `map_func` on examples when it is asked for: the first, the middle and
        the last row of the arrays in front of it, or batches of copies of those; where sizes are unknown, on one of
        double size too. Sizes that differ are unknown.

    Raises
    ------
    InvalidArgumentError
        If `num_parallel_calls` is neither positive nor AUTOTUNE.
    TypeError
        If `map_func` cannot be called; during iteration, if NumPy can make no array of what it gives.

    Notes
    -----
    An exception of `map_func` surfaces where the element is asked for, with the number of the element in a note. The
    iterator can go on behind it.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_tensor_slices(([1, 2], [10, 20])).map(lambda x, y: {"sum": x + y})
    >>> list(dataset)
    [{'sum': np.int64(11)}, {'sum': np.int64(22)}]
    >>> dataset.element_spec
    {'sum': TensorSpec(shape=(), dtype=int64)}
    """
    if not callable(map_func):
        raise TypeError(f"map needs a function of an element, got {map_func!r}")
    check_parallel_calls(num_parallel_calls)
    return type(self)(Map(self.node, map_func, num_parallel_calls, deterministic))


def call(function: Callable[..., Nest], element: Nest) -> Nest:
    """Call a user's function on an element: a plain tuple is several arguments; a list that it returns is a tuple."""
    result = function(*element) if type(element) is tuple else function(element)
    return tuple(result) if type(result) is list else result


@dataclass(frozen=True, eq=False)
class Map(Transformation):
    """``function(element)`` for every element."""

    function: Callable[..., Nest]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    @property
    def table(self) -> None:
        """None: a function's results are no rows."""
        return

    @property
    def in_order(self) -> bool:
        """Means nothing without a table."""
        return False

    @property
    def runs_user_code(self) -> bool:
        """Always."""
        return True

    @cached_property
    def example(self) -> Nest:
        """The function of the input's example."""
        return self._answer(self.input.example)

    @cached_property
    def examples(self) -> tuple[Nest, ...]:
        """The function of the input's examples; of those behind the first only where it does not raise."""
        found = [self.example]
        for example in self.input.examples[1:]:
            with suppress(Exception):  # who makes that element tells what is wrong with it
                found.append(self._answer(example))
        return tuple(found)

    @cached_property
    def element_spec(self) -> Nest:
        """What the examples have in common; sizes that change with unknown sizes of the input are unknown."""
        return spec_of_answers(self.examples, self.input, self._answer)

    def _answer(self, example: Nest) -> Nest:
        return as_element(call(self.function, example))

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        calls = count_calls(self.num_parallel_calls)
        return MapElements(self.input, run, self.function, calls, self.deterministic is not False)


class MapElements(Called[tuple[int, Nest]]):
    """The function's results for the elements of another stream."""

    __slots__ = ("_count", "_node")

    def __init__(
        self, node: Node, run: Run, function: Callable[..., Nest], num_calls: int, is_ordered: bool = True
    ) -> None:
        super().__init__(node.open(run), _Numbered(function), num_calls, is_ordered, "ringlet-map")
        self._node = node
        self._count = 0

    def _next_item(self) -> tuple[int, Nest]:
        element = next(self._input)
        self._count += 1
        return self._count - 1, element

    def _save_items(self, items: list[tuple[int, Nest]]) -> State:
        elements = save_elements([element for _, element in items])
        return {"count": self._count, "numbers": [number for number, _ in items], "elements": elements}

    def _load_items(self, state: State) -> list[tuple[int, Nest]]:
        self._count = state["count"]
        return list(zip(state["numbers"], load_elements(state["elements"], self._node), strict=True))


class _Numbered:
    """The function of an element that comes with its number."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Nest]) -> None:
        self._function = function

    def __call__(self, item: tuple[int, Nest]) -> Nest:
        element = item[1]
        try:
            return detached(as_element(call(self._function, element)), element)
        except StopIteration as error:
            # Let through, it would look like the end of the dataset.
            raise InvalidArgumentError(self._where("raised StopIteration", item[0])) from error
        except Exception as error:
            add_note(error, self._where("raised this", item[0]))
            raise

    def _where(self, what: str, number: int) -> str:
        name = getattr(self._function, "__qualname__", repr(self._function))
        return f"map_func {name} {what} for element {number} of this iteration"
