"""Dataset.window: datasets of consecutive elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.dataset_spec import DatasetSpec
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.adapter_column import array_column
from ringlet.data.graph.count_arguments import positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, RowReader, RowStream, State, Stream
from ringlet.data.graph.sources import Elements, TableSource
from ringlet.data.graph.table import Rows, Table, row_numbers
from ringlet.data.state.saved_elements import load_elements, save_elements
from ringlet.data.tensor_spec import NoneTensorSpec
from ringlet.nest import flatten, map_structure, unflatten

Numbers = np.ndarray[Any, np.dtype[np.int64]]


def window(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    size: int,
    shift: int | None = None,
    stride: int = 1,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset:
    """Group consecutive elements into windows, each of which is a dataset.

    Parameters
    ----------
    size : int
        Number of elements in a window.
    shift : int, optional
        Offset between the starts of consecutive windows. By default, `size`.
    stride : int, default 1
        Offset between consecutive elements of a window.
    drop_remainder : bool, default False
        Whether to drop short windows at the end.
    name : str, unused

    Returns
    -------
    Dataset
        Its elements are datasets. If the input's elements are nests, a window is a nest of datasets, one for each
        component. Contiguous windows of slices of arrays are views of these arrays.

    Raises
    ------
    InvalidArgumentError
        If `size`, `shift` or `stride` is zero or negative.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [[int(x) for x in window] for window in Dataset.range(5).window(3, shift=2)]
    [[0, 1, 2], [2, 3, 4], [4]]
    >>> pairs = Dataset.range(4).window(2, shift=1, drop_remainder=True).flat_map(lambda window: window.batch(2))
    >>> [x.tolist() for x in pairs]
    [[0, 1], [1, 2], [2, 3]]
    """
    length = positive(size, "size")
    step = length if shift is None else positive(shift, "shift")
    node = Window(self.node, length, step, positive(stride, "stride"), bool(drop_remainder), type(self))
    return type(self)(node)


@dataclass(frozen=True, eq=False)
class Window(ElementTransform):
    """Node that groups consecutive elements into windows, which are datasets."""

    size: int
    shift: int
    stride: int
    drop_remainder: bool
    dataset_type: type[Dataset]

    @property
    def span(self) -> int:
        """Number of consecutive elements that a full window spans."""
        return (self.size - 1) * self.stride + 1

    @property
    def cardinality(self) -> int:
        size = self.input.cardinality
        if size < 0:
            return size
        if self.drop_remainder:
            return max(0, (size - self.span) // self.shift + 1)
        return -(-size // self.shift)

    @property
    def element_spec(self) -> Nest:
        def window(spec: Any) -> Any:
            return spec if isinstance(spec, NoneTensorSpec) else DatasetSpec(spec)

        return map_structure(window, self.input.element_spec)

    @property
    def example(self) -> Nest:
        specs, shape = flatten(self.input.element_spec)
        leaves = flatten(self.input.example)[0]
        pairs = zip(leaves, specs, strict=True)
        return unflatten(shape, [self._of_column((leaf,) * self.size, spec) for leaf, spec in pairs])

    def _of_column(self, column: tuple[Any, ...], spec: Any = None) -> Dataset | None:
        return None if column[0] is None else self.dataset_type(Elements(column, spec))

    def of_elements(self, elements: Sequence[Nest]) -> Nest:
        rows, shape = [], flatten(elements[0])[1]
        for element in elements:
            rows.append(flatten(element)[0])
        return unflatten(shape, map(self._of_column, zip(*rows, strict=True)))

    def of_arrays(self, arrays: Nest) -> Nest:
        """Return a window whose elements are the rows of arrays, as a nest of datasets."""
        leaf_shape = flatten(0)[1]

        def dataset(array: Any) -> Dataset | None:
            if array is None:
                return None
            return self.dataset_type(TableSource(Table((array_column(array),), leaf_shape, len(array))))

        return map_structure(dataset, arrays)

    def open_elements(self, context: IterationContext) -> Stream:
        table = self.input.table
        if table is None:
            return WindowElements(self, context)
        return WindowRows(self.input.open_rows(context), self, table)


class WindowRows(RowReader):
    """Stream of windows of table rows."""

    def __init__(self, rows: RowStream, node: Window, table: Table) -> None:
        super().__init__(rows)
        self._node = node
        self._table = table
        # Row numbers, beginning at the start of the next window.
        self._buffer = np.empty(0, np.int64)

    def __next__(self) -> Nest:
        node = self._node
        self._read_to(node.span)
        if len(self._buffer) == 0 or (node.drop_remainder and len(self._buffer) < node.span):
            self.close()
            raise StopIteration
        numbers = self._buffer[: node.span : node.stride]
        self._read_to(node.shift)
        self._buffer = self._buffer[node.shift :]
        return node.of_arrays(self._table.batch(_piece(numbers)))

    def _read_to(self, count: int) -> None:
        missing = count - len(self._buffer)
        if missing > 0 and self._rows is not None:
            found = row_numbers(self._rows.next_rows(missing))
            if len(found) < missing:
                self._rows = None
            self._buffer = np.concatenate([self._buffer, found])

    def close(self) -> None:
        super().close()
        self._buffer = self._buffer[:0]

    def get_state(self) -> State:
        return {"buffer": self._buffer.copy(), **super().get_state()}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._buffer = np.array(state["buffer"], np.int64)


def _piece(numbers: Numbers) -> Rows:
    """Convert consecutive numbers to a slice; return other numbers unchanged."""
    first, last = int(numbers[0]), int(numbers[-1])
    is_slice = last - first == len(numbers) - 1 and bool((np.diff(numbers) == 1).all())
    return slice(first, last + 1) if is_slice else numbers


class WindowElements(InputStream):
    """Stream of windows of elements that are not table rows."""

    SAVED = ("to_skip", "is_input_over")
    _to_skip = 0  # number of elements to skip before the next window
    _is_input_over = False

    def __init__(self, node: Window, context: IterationContext) -> None:
        super().__init__(node, context)
        self._buffer: list[Nest] = []  # elements, beginning at the start of the next window

    def __next__(self) -> Nest:
        node = self._node
        self._read()
        is_short = len(self._buffer) < node.span
        if self._is_closed or not self._buffer or (is_short and node.drop_remainder):
            self.close()
            raise StopIteration
        elements = self._buffer[: node.span : node.stride]
        self._to_skip = max(0, node.shift - len(self._buffer))
        self._buffer = self._buffer[node.shift :]
        return node.of_elements(elements)

    def _read(self) -> None:
        while not self._is_input_over and len(self._buffer) < self._node.span:
            try:
                element = next(self._input)
            except StopIteration:
                self._is_input_over = True
            else:
                if self._to_skip:
                    self._to_skip -= 1
                else:
                    self._buffer.append(element)

    def close(self) -> None:
        self._buffer = []
        super().close()

    def get_state(self) -> State:
        return {**super().get_state(), "buffer": save_elements(self._buffer)}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        self._buffer = load_elements(state["buffer"], self._node.input)
