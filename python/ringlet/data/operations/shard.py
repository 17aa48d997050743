"""Dataset.shard: every n-th element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import whole
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import InputRows, InputStream, IterationContext, RowStream, Stream, Transformation
from ringlet.data.graph.table import Rows, Table
from ringlet.errors import FailedPreconditionError, InvalidArgumentError

SHARD_HINT: Final = -1
"""Placeholder for both numbers in ``dataset.shard(SHARD_HINT, SHARD_HINT)``; a strategy replaces them if the policy is
AutoShardPolicy.HINT (``tf.data.experimental.SHARD_HINT``)."""


def shard(self: Dataset, num_shards: int, index: int, name: str | None = None) -> Dataset:
    """Keep the elements ``index``, ``index + num_shards``, ``index + 2 * num_shards``, ...

    Parameters
    ----------
    num_shards : int
        Number of shards, usually the number of workers; or SHARD_HINT.
    index : int
        Index of the shard to keep; or SHARD_HINT.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        If `num_shards` is not positive, or `index` is not from 0 to ``num_shards - 1``.
    FailedPreconditionError
        During iteration, if a hint was not replaced by a strategy.

    See Also
    --------
    ringlet.data.DistributeOptions : automatic sharding by strategies.

    Notes
    -----
    Shard before `shuffle`, or shuffle with the same seed on all workers: shards are disjoint only if all workers have
    the same order of elements.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(10).shard(3, 1)]
    [1, 4, 7]
    """
    num_shards, index = whole(num_shards, "num_shards"), whole(index, "index")
    if num_shards != SHARD_HINT:
        if num_shards < 1:
            raise InvalidArgumentError(
                f"Number of shards must be greater than zero (currently num_shards = {num_shards})."
            )
        if not 0 <= index < num_shards:
            raise InvalidArgumentError(
                f"Index must be between 0 and {num_shards - 1} (currently index = {index}). Shards are counted from 0."
            )
    return type(self)(Shard(self.node, num_shards, index))


@dataclass(frozen=True, eq=False)
class Shard(Transformation):
    """Node that yields every `num_shards`-th element, starting with element `index`.

    With `fills_all`, set by auto-sharding, a shard with an element checks that every other shard has an element too.
    """

    num_shards: int
    index: int
    fills_all: bool = False

    @property
    def is_hint(self) -> bool:
        """Whether `num_shards` and `index` are hints, which a strategy must replace."""
        return self.num_shards == SHARD_HINT

    @property
    def cardinality(self) -> int:
        """The number of elements of this shard; the input's cardinality if that is negative, or with a hint."""
        size = self.input.cardinality
        return size if size < 0 or self.is_hint else max(0, -(-(size - self.index) // self.num_shards))

    @property
    def table(self) -> Table | None:
        """The table of the input; None with a hint, or if `fills_all` requires a check."""
        lacks_some = self.fills_all and 0 <= self.input.cardinality < self.num_shards
        return None if self.is_hint or lacks_some else self.input.table

    @property
    def in_order(self) -> bool:
        return self.num_shards == 1 and self.input.in_order

    def open_rows(self, context: IterationContext) -> RowStream:
        rows = self.input.open_rows(context)
        return rows if self.num_shards == 1 else ShardRows(rows, self.num_shards, self.index)

    def open_elements(self, context: IterationContext) -> Stream:
        if self.is_hint:
            raise FailedPreconditionError(
                "shard(SHARD_HINT, SHARD_HINT) can only be read through strategy.experimental_distribute_dataset with "
                "the policy AutoShardPolicy.HINT. Set options.experimental_distribute.auto_shard_policy, or call "
                "shard(num_shards, index) with numbers."
            )
        return ShardElements(self, context)


class ShardRows(InputRows):
    """Stream of every n-th row number of its input."""

    SAVED = ("skip",)

    def __init__(self, rows: RowStream, num_shards: int, index: int) -> None:
        super().__init__(rows)
        self._num_shards = num_shards
        self._skip = index  # number of input rows before the next kept row

    def next_rows(self, count: int) -> Rows:
        if count == 0:
            return slice(0, 0)
        rows = self._rows.next_rows(self._skip + (count - 1) * self._num_shards + 1)
        skip, self._skip = self._skip, self._num_shards - 1  # correct even if `rows` is short, because no rows follow
        if not isinstance(rows, slice):
            return rows[skip :: self._num_shards]
        return np.arange(min(rows.start + skip, rows.stop), rows.stop, self._num_shards, dtype=np.int64)


class ShardElements(InputStream):
    """Stream of every n-th element of its input."""

    SAVED = ("skip", "behind")

    def __init__(self, node: Shard, context: IterationContext) -> None:
        super().__init__(node, context)
        self._skip = node.index  # number of input elements before the next kept element
        # With fills_all, the number of shards whose first element has not been checked yet.
        self._behind = node.num_shards - 1 - node.index if node.fills_all else 0

    def __next__(self) -> Nest:
        # Count before reading, so that an element whose computation fails is counted.
        while self._skip:
            self._skip -= 1
            next(self._input)
        self._skip = self._node.num_shards - 1
        element = next(self._input)
        if self._behind:
            self._look_behind()
        return element

    def _look_behind(self) -> None:
        """Check that each shard with a higher index has an element."""
        self._skip, behind, self._behind = self._node.index, self._behind, 0
        for _ in range(behind):
            try:
                next(self._input)
            except StopIteration:
                raise self._too_few() from None

    def _too_few(self) -> InvalidArgumentError:
        self._skip = 0
        return InvalidArgumentError(
            f"Could not apply FILE based sharding: the dataset only has {self._node.index + 1} file(s), which is not "
            f"enough for the required {self._node.num_shards} shards/workers (or not enough elements, if elements are "
            "sharded). Write more and smaller files, set options.experimental_distribute.auto_shard_policy to DATA or "
            "OFF, or allow workers without data with uneven='keep'."
        )
