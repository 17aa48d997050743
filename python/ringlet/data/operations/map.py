"""Dataset.map: a function applied to every element."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import check_parallel_calls
from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.mapped_stream import MappedStream
from ringlet.data.graph.node import ElementTransform, IterationContext, Node, State, Stream
from ringlet.data.graph.spec_inference import spec_of_answers
from ringlet.data.graph.thread_map import count_calls
from ringlet.data.operations.common.user_function import UserFunction
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError
from ringlet.errors.exception_notes import add_note


def map(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    map_func: Callable[..., Nest],
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    synchronous: bool | None = None,
    use_unbounded_threadpool: bool = False,
    name: str | None = None,
) -> Dataset:
    """Apply `map_func` to every element, in order.

    Parameters
    ----------
    map_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns an array, a number, text, or a nest of
        these. A returned list is a tuple of components, as in TensorFlow; a list inside a nest is one array. The
        arguments are read-only. Returned arrays are copied, so that the function may reuse a buffer; views of the
        arguments and read-only arrays are not copied.
    num_parallel_calls : int, optional
        Number of concurrent calls, in threads; AUTOTUNE (-1) means the number of cores. Threads reduce the time if the
        function mostly waits, or releases the GIL as NumPy does. With None, the default, or 1, the function is called
        when the element is requested.
    deterministic : bool, optional
        False yields the results of concurrent calls in the order of completion. Otherwise, the order is kept.
    synchronous : bool, optional
        True forbids `num_parallel_calls`. Without `num_parallel_calls`, every call is synchronous.
    use_unbounded_threadpool : bool, default False
        Accepted for compatibility with TensorFlow; unused: `num_parallel_calls` is the number of threads.
    name : str, unused

    Returns
    -------
    Dataset
        Its `element_spec` is inferred on demand by calling `map_func` on examples: the first, the middle and the last
        row of the source arrays, or batches of copies of these rows; if sizes are unknown, also on an example of double
        size, or with one more dimension if their number is unknown. Sizes that differ are unknown.

    Raises
    ------
    InvalidArgumentError
        If `num_parallel_calls` is neither positive nor AUTOTUNE.
    ValueError
        If `synchronous` and `num_parallel_calls` are given together.
    TypeError
        If `map_func` is not callable; during iteration, if NumPy cannot convert a result to an array.

    Notes
    -----
    An exception of `map_func` is raised when the element is requested, with the element number in a note. Iteration can
    continue after the exception.

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
        raise TypeError(f"map requires a function of an element, got {map_func!r}")
    check_parallel_calls(num_parallel_calls)
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            f"synchronous=True cannot be combined with num_parallel_calls={num_parallel_calls!r}. Omit one of them."
        )
    return type(self)(Map(self.node, map_func, num_parallel_calls, deterministic))


def call(function: Callable[..., Nest], element: Nest) -> Nest:
    """Call a user function with an element: a plain tuple is unpacked, and a returned list becomes a tuple."""
    result = function(*element) if type(element) is tuple else function(element)
    return tuple(result) if type(result) is list else result


@dataclass(frozen=True, eq=False)
class Map(ElementTransform):
    """Node that yields ``function(element)`` for every element."""

    function: Callable[..., Nest]
    num_parallel_calls: int | None = None
    deterministic: bool | None = None

    runs_user_code = True

    @cached_property
    def example(self) -> Nest:
        return self._answer(self.input.example)

    @cached_property
    def examples(self) -> tuple[Nest, ...]:
        """The function's results for the input's examples; failures after the first example are skipped."""
        found = [self.example]
        for example in self.input.examples[1:]:
            with suppress(Exception):  # the error occurs again when the element is computed
                found.append(self._answer(example))
        return tuple(found)

    @cached_property
    def element_spec(self) -> Nest:
        """The common specs of the examples; sizes that depend on unknown sizes of the input are unknown."""
        return spec_of_answers(self.examples, self.input, self._answer)

    def _answer(self, example: Nest) -> Nest:
        return as_element(call(self.function, example))

    def result(self, element: Nest, number: int) -> Nest:
        """Return the function's result for an element; `number` is for error notes."""
        return _Numbered(self.function)((number, element))

    def open_elements(self, context: IterationContext) -> Stream:
        calls = count_calls(self.num_parallel_calls)
        return MapElements(self.input, context, self.function, calls, self.deterministic is not False)


class MapElements(MappedStream[tuple[int, Nest]]):
    """Stream of the function's results for the elements of its input."""

    def __init__(
        self,
        node: Node,
        context: IterationContext,
        function: Callable[..., Nest],
        num_calls: int,
        is_ordered: bool = True,
    ) -> None:
        super().__init__(node.open(context), _Numbered(function), num_calls, is_ordered, "ringlet-map")
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
    """Wrapper of a user function that takes pairs: the number of an element, for errors, and the element."""

    def __init__(self, function: Callable[..., Nest]) -> None:
        self._function = function
        self._where = UserFunction(function, "map_func").where

    def __call__(self, item: tuple[int, Nest]) -> Nest:
        element = item[1]
        try:
            return detached(as_element(call(self._function, element)), element)
        except StopIteration as error:
            # StopIteration would end the dataset.
            raise InvalidArgumentError(self._where("raised StopIteration", item[0])) from error
        except Exception as error:
            add_note(error, self._where("raised this", item[0]))
            raise
