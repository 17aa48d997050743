"""Random access to the elements of a dataset by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY
from ringlet.data.graph.count_arguments import whole
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.stacking import stack
from ringlet.data.operations.assert_cardinality import AssertCardinality
from ringlet.data.operations.batch import Batch
from ringlet.data.operations.cache import Cache
from ringlet.data.operations.common.user_function import node_of
from ringlet.data.operations.concatenate import Concatenate
from ringlet.data.operations.enumerate import Enumerate
from ringlet.data.operations.map import Map
from ringlet.data.operations.prefetch import Prefetch
from ringlet.data.operations.repeat import Repeat
from ringlet.data.operations.shard import Shard
from ringlet.data.operations.shuffle import Shuffle
from ringlet.data.operations.skip import Skip
from ringlet.data.operations.take import Take
from ringlet.data.operations.unbatch import Unbatch
from ringlet.data.operations.with_options import WithOptions
from ringlet.data.operations.zip import Zip
from ringlet.errors import FailedPreconditionError, OutOfRangeError
from ringlet.nest import unflatten


def at(dataset: Dataset, index: int) -> Nest:
    """Return the element of a dataset at an index (``tf.data.experimental.at``).

    Parameters
    ----------
    dataset : Dataset
        A dataset of arrays (`from_tensor_slices`, `from_tensors`, `range`, `from_list` of elements of equal size) with
        the operations `map`, `batch`, `concatenate`, `enumerate`, `prefetch`, `repeat`, `shard`, `shuffle`, `skip`,
        `take`, `zip`, `with_options` and `assert_cardinality`. Before a `cache` in memory, all operations are allowed.
    index : int
        The number of the element, counted from 0.

    Returns
    -------
    nest of arrays
        The element. Only the source elements that it depends on are read. For a `shuffle`, this function uses one
        random order of all elements, independent of the buffer size and of the order of iterations. A `cache` reads all
        elements at the first call.

    Raises
    ------
    OutOfRangeError
        If `index` is out of range. Negative indices are out of range.
    NotImplementedError
        If an operation has sequential access only, such as `filter`.
    FailedPreconditionError
        If the number of elements is infinite or unknown, as for `unbatch`.
    TypeError
        If `index` is not an integer, or `dataset` is not a Dataset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> at(Dataset.range(10).map(lambda x: x * x).batch(4), 1)
    array([16, 25, 36, 49])
    """
    node = node_of(dataset)
    if node is None:
        raise TypeError(f"at requires a Dataset, got {dataset!r}. Use Dataset.from_tensor_slices(x) for an array.")
    return _element(node, whole(index, "the index of an element"))


def _element(node: Node, number: int) -> Nest:
    find = _DELEGATES.get(type(node))
    if find is not None:  # the input checks that the index is in range
        return find(node, number)
    find = _FINDERS.get(type(node))
    if find is None:
        if isinstance(node, Unbatch):
            _check(number, node)
        raise NotImplementedError(
            f"random access is not implemented for {type(node).__name__}, which supports sequential access only. Call "
            "dataset.cache() first to store all elements, or read up to the element with dataset.skip(index)."
        )
    _check(number, node)
    return find(node, number)


def _check(number: int, node: Node) -> None:
    size = node.cardinality
    if size < 0:
        kind = "infinite" if size == INFINITE_CARDINALITY else "unknown"
        raise FailedPreconditionError(
            f"{type(node).__name__} has {kind} cardinality, so random access is not supported. Apply take(count) or "
            "assert_cardinality(count), or read the dataset in order."
        )
    _check_range(number, size)


def _check_range(number: int, size: int) -> None:
    if not 0 <= number < size:
        raise OutOfRangeError(f"index out of range [0, {size}): {number}. Elements are counted from 0.")


def _of_batch(node: Any, number: int) -> Nest:
    first = number * node.batch_size
    last = min(first + node.batch_size, node.input.cardinality)
    return stack([_element(node.input, row) for row in range(first, last)])


def _of_cache(node: Any, number: int) -> Nest:
    if node.filename:
        raise NotImplementedError(
            "random access is not implemented for a cache in a file. Use cache() without a file name."
        )
    if node.from_row_zero:
        return _element(node.input, number)
    if node.cardinality == INFINITE_CARDINALITY:
        _check(number, node)
    kept = node.kept()
    _check_range(number, len(kept))
    return kept[number] if node.table is None else node.table.element(int(kept[number]))


def _of_concatenate(node: Any, number: int) -> Nest:
    size = node.first.cardinality
    return _element(node.first, number) if number < size else _element(node.second, number - size)


def _of_input(node: Any, number: int) -> Nest:
    return _element(node.input, number)


Finder = Callable[[Any, int], Nest]

# Operations whose input checks the index.
_DELEGATES: dict[type[Node], Finder] = {
    AssertCardinality: _of_input,
    Cache: _of_cache,
    Map: lambda node, number: node.result(_element(node.input, number), number),
    Prefetch: _of_input,
    WithOptions: _of_input,
}

# Operations whose index `_element` first checks against their own cardinality.
_FINDERS: dict[type[Node], Finder] = {
    Batch: _of_batch,
    Concatenate: _of_concatenate,
    Enumerate: lambda node, number: (np.int64(node.start + number), _element(node.input, number)),
    Repeat: lambda node, number: _element(node.input, number % node.input.cardinality),
    Shard: lambda node, number: _element(node.input, node.index + number * node.num_shards),
    Shuffle: lambda node, number: _element(node.input, int(node.order[number])),
    Skip: lambda node, number: _element(node.input, node.count + number),
    TableSource: lambda node, number: node.rows.element(number),
    Take: _of_input,
    Zip: lambda node, number: unflatten(node.shape, [_element(part, number) for part in node.parts]),
}
