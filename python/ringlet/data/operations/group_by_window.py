"""Dataset.group_by_window: windows of elements with equal keys, reduced by a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_spec import DatasetSpec
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.graph.sources import Elements
from ringlet.data.operations.common.user_function import UserFunction, check_callable, spread
from ringlet.data.operations.flat_map import FlatMap
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError


def group_by_window(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    key_func: Callable[..., Any],
    reduce_func: Callable[[Any, Dataset], Dataset],
    window_size: int | None = None,
    window_size_func: Callable[[Any], Any] | None = None,
    name: str | None = None,
) -> Dataset:
    """Group elements by key into windows, and concatenate the datasets ``reduce_func(key, window)``.

    Parameters
    ----------
    key_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns an integer.
    reduce_func : callable
        Takes a key (int64) and a window: a dataset of consecutive elements with this key. Returns a Dataset.
    window_size : int, optional
        Number of elements in a window.
    window_size_func : callable, optional
        Takes a key and returns the size of its windows; called once for each key. Pass `window_size` or
        `window_size_func`.
    name : str, unused

    Returns
    -------
    Dataset
        A window is reduced when it is full; short windows follow at the end, in the order of their keys.

    Raises
    ------
    InvalidArgumentError
        If both `window_size` and `window_size_func` are given, or neither; during iteration, if a size is not positive
        or a key is not one integer.
    TypeError
        If a function is not callable; during iteration, if `reduce_func` does not return a dataset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.range(7).group_by_window(lambda x: x % 2, lambda key, window: window.batch(3), 3)
    >>> [batch.tolist() for batch in dataset]
    [[0, 2, 4], [1, 3, 5], [6]]
    """
    if (window_size is None) == (window_size_func is None):
        raise InvalidArgumentError(
            f"group_by_window requires either window_size or window_size_func, got {window_size!r} and "
            f"{window_size_func!r}."
        )
    for function in (key_func, reduce_func, *([] if window_size_func is None else [window_size_func])):
        check_callable(function, "group_by_window")
    grouped = WindowGroups(
        self.node, key_func, window_size if window_size_func is None else window_size_func, type(self)
    )
    return type(self)(GroupByWindow(grouped, reduce_func))


@dataclass(frozen=True, eq=False)
class GroupByWindow(FlatMap):
    """Node that concatenates the datasets ``function(key, window)``."""

    parameter: ClassVar[str] = "reduce_func"


@dataclass(frozen=True, eq=False)
class WindowGroups(ElementTransform):
    """Node that yields pairs of a key and a window, a dataset of elements with this key."""

    key_func: Callable[..., Any]
    size: int | Callable[[Any], Any] | None
    dataset_type: type[Dataset]
    # Keys of the examples, for reductions that depend on the key; by default, the key of the input's example.
    keys: tuple[int, ...] = ()

    cardinality = UNKNOWN_CARDINALITY
    runs_user_code = True

    @property
    def element_spec(self) -> Nest:
        return TensorSpec((), np.int64), DatasetSpec(self.input.element_spec)

    @property
    def example(self) -> Nest:
        return self.examples[0]

    @cached_property
    def examples(self) -> tuple[Nest, ...]:
        example = self.input.example
        keys = self.keys or (integer(self.key_func(*spread(example)), "key_func"),)
        window = self.dataset_type(Elements((example,), self.input.element_spec))
        return tuple((np.int64(key), window) for key in keys)

    def size_of(self, key: int) -> int:
        size = self.size(np.int64(key)) if callable(self.size) else self.size
        return positive(integer(size, "window_size"), "window_size")

    def open_elements(self, context: IterationContext) -> Stream:
        return GroupedElements(self, context)


def integer(answer: Any, name: str) -> int:
    """Convert the result of a user function to a Python integer; raise an error unless it is one integer."""
    array = np.asarray(answer) if kind_of(answer) is None else as_ndarray(answer)
    if array.ndim or array.dtype.kind not in "iu":
        raise InvalidArgumentError(f"{name} must return one integer, such as np.int64(0), got {answer!r}.")
    return int(array)


class GroupedElements(InputStream):
    """Stream of full windows, followed by short windows after the end of the input."""

    SAVED = ("count", "is_input_over")
    _count = 0
    _is_input_over = False

    def __init__(self, node: WindowGroups, context: IterationContext) -> None:
        super().__init__(node, context)
        self._key_of = UserFunction(node.key_func, "key_func", lambda function, *a: integer(function(*a), "key_func"))
        self._groups: dict[int, list[Nest]] = {}
        self._sizes: dict[int, int] = {}

    def __next__(self) -> Nest:
        for element in self._elements():
            number, self._count = self._count, self._count + 1
            key = self._key_of(number, *spread(element))
            if key not in self._sizes:
                self._sizes[key] = self._node.size_of(key)
            group = self._groups.setdefault(key, [])
            group.append(element)
            if len(group) == self._sizes[key]:
                return self._window(key)
        if self._groups:
            return self._window(min(self._groups))
        self.close()
        raise StopIteration

    def _elements(self) -> Iterator[Nest]:
        while not self._is_input_over:
            try:
                element = next(self._input)
            except StopIteration:
                self._is_input_over = True
            else:
                yield element

    def _window(self, key: int) -> Nest:
        return np.int64(key), self._node.dataset_type(Elements(tuple(self._groups.pop(key))))

    def close(self) -> None:
        self._groups = {}
        self._is_input_over = True
        super().close()

    def get_state(self) -> State:
        groups = [[key, self._sizes[key], save_elements(group)] for key, group in self._groups.items()]
        return {**super().get_state(), "groups": groups}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._groups = {key: load_elements(group, self._node.input) for key, _, group in state["groups"]}
        self._sizes = {key: size for key, size, _ in state["groups"]}
