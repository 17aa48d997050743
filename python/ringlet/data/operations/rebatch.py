"""Dataset.rebatch: batches split and joined into batches of different sizes."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.batch_rows import cut, empty_like_spec, example_rows, join_rows, num_rows
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.graph.spec_inference import known_spec
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure, unflatten


def rebatch(self: Dataset, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
    """Regroup the rows of a dataset's batches into batches of different sizes.

    Parameters
    ----------
    batch_size : int, or sequence of int
        Size of the new batches; several sizes are used cyclically. A batch of size zero has no rows.
    drop_remainder : bool, default False
        Whether to drop the last batch if it is short.
    name : str, unused

    Returns
    -------
    Dataset
        The same rows in the same order. A batch that lies within one batch of the input is a view.

    Raises
    ------
    InvalidArgumentError
        If a size is negative, or all sizes are zero. If elements have no first dimension or hold arrays of different
        lengths; this may be detected only during iteration.
    TypeError
        If a size is not an integer.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [x.tolist() for x in Dataset.range(8).batch(4).rebatch(3)]
    [[0, 1, 2], [3, 4, 5], [6, 7]]
    >>> [x.tolist() for x in Dataset.range(8).batch(4).rebatch([2, 1, 1])]
    [[0, 1], [2], [3], [4, 5], [6], [7]]
    """
    return type(self)(Rebatch(self.node, _sizes(batch_size), bool(drop_remainder)))


def _sizes(batch_size: Any) -> tuple[int, ...]:
    sizes = np.asarray(batch_size)
    if sizes.size and not np.issubdtype(sizes.dtype, np.integer):
        raise TypeError(f"batch_size must be an integer, or a sequence of integers, got {batch_size!r}")
    if sizes.ndim > 1:
        raise InvalidArgumentError(f"batch_size must be a scalar or a vector, got {batch_size!r} of rank {sizes.ndim}.")
    given = tuple(np.atleast_1d(sizes).tolist())
    if min(given, default=0) < 0 or not any(given):
        raise InvalidArgumentError(
            f"batch_size must be zero or more, and at least one size must be positive, got {batch_size!r}."
        )
    return given


@dataclass(frozen=True, eq=False)
class Rebatch(ElementTransform):
    """Node that joins the rows of all elements and splits them into batches; their sizes are `sizes`, cyclically."""

    sizes: tuple[int, ...]
    drop_remainder: bool = False

    def __post_init__(self) -> None:
        if not self.input.runs_user_code and self.input.cardinality != 0:
            self._known_rows()

    def _known_rows(self) -> int | None:
        """Return the number of rows of each element of the input; None if unknown."""
        specs = self.input.element_spec
        rows = set()
        for path, spec in zip(paths(specs), flatten(specs)[0], strict=True):
            if spec.shape == ():
                raise InvalidArgumentError(
                    f"cannot split elements into batches of {self.sizes}: element{path} is a scalar, which has no "
                    "rows. Call dataset.batch(batch_size) first."
                )
            if spec.shape is not None:
                rows.add(spec.shape[0])
        rows.discard(None)
        if len(rows) > 1:
            raise InvalidArgumentError(
                f"all arrays of an element must have the same number of rows to be rebatched, got {sorted(rows)} rows: "
                f"{specs}."
            )
        return rows.pop() if rows else None

    cardinality = UNKNOWN_CARDINALITY  # as in TensorFlow

    @property
    def element_spec(self) -> Nest:
        """The specs of the input with the new batch size, which is known if all batches have the same size."""
        rows = self._known_rows()
        size = self.sizes[0] if len(set(self.sizes)) == 1 else None
        if size is not None and not self.drop_remainder and (rows is None or rows % size):
            size = None
        return map_structure(lambda spec: spec.with_rows(size), self.input.element_spec)

    @property
    def example(self) -> Nest:
        return example_rows(self.input.example, max(self.sizes))

    def open_elements(self, context: IterationContext) -> Stream:
        return RebatchElements(self, context)


class RebatchElements(InputStream):
    """Stream that regroups the rows of the input's batches into batches of different sizes."""

    SAVED = ("at",)
    _at = 0  # index of the next size
    _batch: Nest | None = None  # current batch of the input
    _row = 0  # index of the next row of the current batch

    def __next__(self) -> Nest:
        sizes = self._node.sizes
        size = sizes[self._at]
        if self._is_closed:
            raise StopIteration
        self._at = (self._at + 1) % len(sizes)
        if size == 0:
            return self._without_rows()
        parts = deque[Nest]()
        missing = size
        try:
            while missing:
                missing -= self._take_rows(missing, parts)
        except StopIteration:
            self.close()
        if not parts or (missing and self._node.drop_remainder):
            raise StopIteration
        return parts[0] if len(parts) == 1 else _joined(parts)

    def _without_rows(self) -> Nest:
        specs = known_spec(self._node.input)
        if specs is not None:
            return map_structure(empty_like_spec, specs)
        if self._batch is None:
            self._batch, self._row = next(self._input), 0
        return self._cut(0, 0)

    def _take_rows(self, count: int, parts: deque[Nest]) -> int:
        """Add at most `count` of the next rows to `parts`, and return their number."""
        if self._batch is None:
            self._batch, self._row = next(self._input), 0
        rows = num_rows(self._batch)
        start, stop = self._row, min(self._row + count, rows)
        if stop > start:
            is_whole = stop - start == rows
            parts.append(self._batch if is_whole else self._cut(start, stop))
        self._row = stop
        if stop == rows:
            self._batch = None
        return stop - start

    def _cut(self, start: int, stop: int | None) -> Nest:
        return map_structure(lambda leaf: cut(leaf, slice(start, stop)), self._batch)

    def close(self) -> None:
        self._batch = None
        super().close()

    def get_state(self) -> State:
        left = [] if self._batch is None else [self._cut(self._row, None)]
        return {**super().get_state(), "left": save_elements(left)}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        left = load_elements(state["left"], self._node.input)
        self._batch, self._row = (left[0] if left else None), 0


def _joined(parts: deque[Nest]) -> Nest:
    columns = [flatten(part) for part in parts]
    shape = columns[0][1]
    return unflatten(shape, [join_rows(leaves) for leaves in zip(*(leaves for leaves, _ in columns), strict=True)])
