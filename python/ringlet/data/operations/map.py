"""A function of every element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ringlet.data.node import Run, Stream, Transformation
from ringlet.data.operations.counts import check_parallel_calls
from ringlet.data.spec import TensorSpec
from ringlet.data.structure import Nest, as_element, detached
from ringlet.nest import flatten, map_structure

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
        Takes an element; one that is a tuple comes as several arguments. Gives an array, a number, text, a list, which
        is one array, or a nest of those. What it does to arrays it is given must not be in place: they are read-only.
        Arrays that it gives are copied, so that it may fill one buffer again and again; views of what it was given, and
        arrays that nobody can write to, are not.
    num_parallel_calls : int, optional
        A positive number or AUTOTUNE. Checked, and has no effect yet: elements are made one after another.
    deterministic : bool, optional
        Has no effect: results keep their order, which is right for True and for False.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Its `element_spec` is found by calling `map_func` on an example when it is asked for: the first row of the
        arrays in front of it, or a batch of copies of that; where sizes are unknown, on one of double size too.

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
    return type(self)(Map(self.node, map_func))


def call(function: Callable[..., Nest], element: Nest) -> Nest:
    """Call a user's function on an element: a plain tuple is several arguments."""
    return function(*element) if type(element) is tuple else function(element)


@dataclass(frozen=True, eq=False)
class Map(Transformation):
    """``function(element)`` for every element."""

    function: Callable[..., Nest]

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
        return as_element(call(self.function, self.input.example))

    @cached_property
    def element_spec(self) -> Nest:
        """The specs of the example; sizes that change with unknown sizes of the input are unknown."""
        specs = map_structure(TensorSpec.from_array, self.example)
        inputs = self.input.element_spec
        if all(spec.is_fully_defined for spec in flatten(inputs)[0]):
            return specs
        try:
            larger = as_element(call(self.function, map_structure(_doubled, self.input.example, inputs)))
            return map_structure(_common, specs, map_structure(TensorSpec.from_array, larger))
        except Exception:
            # A function that takes no other size tells nothing about which of its sizes depend on it.
            return map_structure(lambda spec: TensorSpec([None] * len(spec.shape), spec.dtype), specs)

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return MapElements(self.input.open(run), self.function)


def _doubled(leaf: Any, spec: TensorSpec) -> Any:
    for axis, size in enumerate(spec.shape or ()):
        if size is None:
            leaf = np.concatenate([leaf, leaf], axis)
    return leaf


def _common(one: TensorSpec, other: TensorSpec) -> TensorSpec:
    if one.shape is None or other.shape is None or len(one.shape) != len(other.shape):
        return TensorSpec(None, one.dtype)
    sizes = [a if a == b else None for a, b in zip(one.shape, other.shape, strict=True)]
    return TensorSpec(sizes, one.dtype)


class MapElements(Stream):
    """The function's results for the elements of another stream."""

    __slots__ = ("_count", "_function", "_input")

    def __init__(self, source: Stream, function: Callable[..., Nest]) -> None:
        self._input = source
        self._function = function
        self._count = 0

    def __next__(self) -> Nest:
        element = next(self._input)
        self._count += 1
        try:
            result = self._function(*element) if type(element) is tuple else self._function(element)
            return detached(as_element(result), element)
        except StopIteration as error:
            # Let through, it would look like the end of the dataset.
            raise RuntimeError(self._where("raised StopIteration")) from error
        except Exception as error:
            _add_note(error, self._where("raised this"))
            raise

    def _where(self, what: str) -> str:
        name = getattr(self._function, "__qualname__", repr(self._function))
        return f"map_func {name} {what} for element {self._count - 1} of this iteration"

    def close(self) -> None:
        """Close the input."""
        self._input.close()


def _add_note(error: BaseException, note: str) -> None:
    # BaseException.add_note came with Python 3.11; before, the list is there for who looks.
    notes = [*getattr(error, "__notes__", ()), note]
    error.__notes__ = notes  # type: ignore[attr-defined,unused-ignore]
