"""Dataset.interleave: the elements of several inner datasets in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.count_arguments import AUTOTUNE, check_parallel_calls, positive
from ringlet.data.graph.node import IterationContext, Stream
from ringlet.data.graph.thread_map import count_calls
from ringlet.data.operations.common.nested_elements import DatasetFunction, NestedElements
from ringlet.data.operations.common.user_function import check_callable
from ringlet.data.operations.flat_map import FlatMap
from ringlet.errors import InvalidArgumentError

# A fixed number by default, so that the order is the same on every machine.
DEFAULT_CYCLE_LENGTH = 4


def interleave(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    map_func: Callable[..., Dataset],
    cycle_length: int | None = None,
    block_length: int | None = None,
    num_parallel_calls: int | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Interleave the elements of the datasets ``map_func(element)``.

    Parameters
    ----------
    map_func : callable
        Takes an element, unpacked into arguments if it is a tuple. Returns a Dataset.
    cycle_length : int, optional
        Number of datasets open at the same time; 4 by default and with AUTOTUNE.
    block_length : int, default 1
        Number of consecutive elements from each dataset.
    num_parallel_calls : int, optional
        Number of open datasets that are read concurrently, in threads: at most `cycle_length`, or AUTOTUNE.
    deterministic : bool, optional
        False yields elements of any open dataset that is ready. Otherwise, the order is the same as without threads.
    name : str, unused

    Returns
    -------
    Dataset
        When an open dataset ends, the next dataset takes its place in the cycle.

    Raises
    ------
    InvalidArgumentError
        If `block_length` is not positive, `cycle_length` or `num_parallel_calls` is neither positive nor AUTOTUNE, or
        `num_parallel_calls` is greater than `cycle_length`.
    TypeError
        If `map_func` is not callable; during iteration, if `map_func` does not return a dataset.

    Notes
    -----
    An exception of `map_func` or of an inner dataset is raised in order. Iteration can continue after the exception.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> threes = lambda x: Dataset.from_tensors(x).repeat(3)
    >>> [int(x) for x in Dataset.range(1, 4).interleave(threes, cycle_length=2, block_length=2)]
    [1, 1, 2, 2, 1, 2, 3, 3, 3]
    """
    check_callable(map_func, "interleave", "a function that returns a dataset for an element")
    check_parallel_calls(num_parallel_calls)
    is_automatic = cycle_length is None or cycle_length == AUTOTUNE
    cycle = DEFAULT_CYCLE_LENGTH if is_automatic or cycle_length is None else positive(cycle_length, "cycle_length")
    block = 1 if block_length is None else positive(block_length, "block_length")
    if num_parallel_calls is not None and num_parallel_calls > cycle and not is_automatic:
        raise InvalidArgumentError(
            f"num_parallel_calls must be at most cycle_length, got {num_parallel_calls} calls for {cycle} open "
            f"datasets. Increase cycle_length, or pass AUTOTUNE ({AUTOTUNE})."
        )
    return type(self)(Interleave(self.node, map_func, cycle, block, num_parallel_calls, deterministic))


@dataclass(frozen=True, eq=False)
class Interleave(FlatMap):
    """Node that reads `cycle_length` inner datasets at a time and yields `block_length` elements of each in turn."""

    cycle_length: int
    block_length: int
    num_parallel_calls: int | None
    deterministic: bool | None

    @property
    def cardinality(self) -> int:
        """INFINITE_CARDINALITY for an infinite input read in threads, else UNKNOWN_CARDINALITY, as in TensorFlow."""
        is_endless = self.input.cardinality == INFINITE_CARDINALITY
        return INFINITE_CARDINALITY if is_endless and self.num_parallel_calls is not None else UNKNOWN_CARDINALITY

    def open_elements(self, context: IterationContext) -> Stream:
        calls = min(count_calls(self.num_parallel_calls), self.cycle_length)
        is_ordered = self.deterministic is not False
        function = DatasetFunction(self.function)
        return NestedElements(
            self,
            context,
            function,
            cycle_length=self.cycle_length,
            block_length=self.block_length,
            num_calls=calls,
            is_ordered=is_ordered,
        )
