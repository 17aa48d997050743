"""Dataset.unbatch: the rows of elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.batch_rows import num_rows, zeros_like_spec
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, InputStream, IterationContext, State, Stream
from ringlet.data.graph.spec_inference import row_spec, spec_of
from ringlet.data.state.saved_elements import load_element, save_element
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import PyTreeSpec, flatten, map_structure, unflatten


def unbatch(self: Dataset, name: str | None = None) -> Dataset:
    """Split every element into rows, which become the elements.

    Parameters
    ----------
    name : str, unused

    Returns
    -------
    Dataset
        Rows are views of their arrays, or scalars. The cardinality is known if the specs determine the number of rows.

    Raises
    ------
    ValueError
        If a component is a scalar, or components have different numbers of rows. If this is detected only during
        iteration, the class is InvalidArgumentError.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> [int(x) for x in Dataset.range(5).batch(2).unbatch()]
    [0, 1, 2, 3, 4]
    """
    if not self.node.runs_user_code:
        _check_specs(self.node.element_spec)
    return type(self)(Unbatch(self.node))


def _check_specs(specs: Nest) -> None:
    leaves = flatten(specs)[0]
    if any(spec.shape == () for spec in leaves):
        raise ValueError(f"unbatch splits elements into rows, but a component is a scalar: {specs!r}")
    _common_rows(leaves)


def _common_rows(specs: list[TensorSpec]) -> int | None:
    """Return the number of rows that all components have; None if unknown."""
    known = {spec.shape[0] for spec in specs if spec.shape and spec.shape[0] is not None}
    if len(known) > 1:
        raise ValueError(f"unbatch requires components with equal numbers of rows, got {sorted(known)} rows: {specs!r}")
    return known.pop() if known else None


@dataclass(frozen=True, eq=False)
class Unbatch(ElementTransform):
    """Node that splits the elements of its input into rows."""

    @property
    def cardinality(self) -> int:
        """The total number of rows, if all elements are known to have the same nonzero number of rows."""
        size = self.input.cardinality
        if size < 0:
            return size
        try:
            rows = _common_rows(flatten(self.input.element_spec)[0])
        except Exception:  # the error occurs again when an element is computed
            return UNKNOWN_CARDINALITY
        return size * rows if rows else UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """The specs of the input without the first dimension."""
        return map_structure(row_spec, self.input.element_spec)

    @property
    def example(self) -> Nest:
        """The first row of the input's example; zeros or empty text if the example has no rows."""
        return map_structure(_first_row, self.input.example)

    @property
    def examples(self) -> tuple[Nest, ...]:
        return tuple(map_structure(_first_row, example) for example in self.input.examples)

    def open_elements(self, context: IterationContext) -> Stream:
        return UnbatchElements(self, context)


def _first_row(leaf: Any) -> Any:
    if leaf is None:
        return None
    return leaf[0] if len(leaf) else zeros_like_spec(row_spec(spec_of(leaf)))


class UnbatchElements(InputStream):
    """Stream that splits the elements of its input into rows."""

    _element: Nest = None  # the current element, its leaves, their structure, and the number of rows
    _leaves: Sequence[Any] = ()
    _shape: PyTreeSpec | None = None
    _rows = 0
    _at = 0  # index of the next row

    def __next__(self) -> Nest:
        while self._at == self._rows:
            self._cut(next(self._input))
        at = self._at
        self._at += 1
        if self._shape is None:
            return self._element[at]
        return unflatten(self._shape, [None if leaf is None else leaf[at] for leaf in self._leaves])

    def _cut(self, element: Nest) -> None:
        leaves, shape = flatten(element)
        self._element, self._leaves = element, leaves
        self._shape = None if shape.is_leaf() else shape
        self._rows, self._at = num_rows(element), 0

    def close(self) -> None:
        self._at = self._rows = 0
        super().close()

    def get_state(self) -> State:
        left = self._at < self._rows
        return {**super().get_state(), "element": save_element(self._element) if left else None, "at": self._at}

    def set_state(self, state: State) -> None:
        super().set_state(state)
        if state["element"] is not None:
            self._cut(load_element(state["element"], self._node.input))
            self._at = state["at"]
