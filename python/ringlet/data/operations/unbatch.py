"""Elements cut into their rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.cardinality import UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest, paths
from ringlet.data.graph.node import Downstream, Node, Run, State, Stream
from ringlet.data.operations.element_transform import Rowless
from ringlet.data.state.saved_elements import load_element, save_element
from ringlet.data.tensor_spec import TensorSpec
from ringlet.errors import InvalidArgumentError
from ringlet.nest import PyTreeSpec, flatten, map_structure, unflatten

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Unbatch", "unbatch"]


def unbatch(self: Dataset, name: str | None = None) -> Dataset:
    """Cut every element into its rows, each of which becomes an element.

    Parameters
    ----------
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Rows are views of the arrays that they were cut from. How many there are is known where the first size of all
        elements is.

    Raises
    ------
    ValueError
        If a component has no dimension, or components have different numbers of rows; during iteration
        (InvalidArgumentError) where that is not known before.

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
        raise ValueError(f"unbatch cuts elements into rows, and a component has no dimension: {specs!r}")
    _common_rows(leaves)


def _common_rows(specs: list[TensorSpec]) -> int | None:
    """The number of rows of every component; None where it is not known."""
    known = {spec.shape[0] for spec in specs if spec.shape and spec.shape[0] is not None}
    if len(known) > 1:
        raise ValueError(f"unbatch needs components with as many rows each, and these have {sorted(known)}: {specs!r}")
    return known.pop() if known else None


@dataclass(frozen=True, eq=False)
class Unbatch(Rowless):
    """The rows of all elements."""

    @property
    def cardinality(self) -> int:
        """The sum of all rows, where every element is known to have as many, and some."""
        size = self.input.cardinality
        if size < 0:
            return size
        try:
            rows = _common_rows(flatten(self.input.element_spec)[0])
        except Exception:  # what is wrong with its elements is told by who makes one
            return UNKNOWN_CARDINALITY
        return size * rows if rows else UNKNOWN_CARDINALITY

    @property
    def element_spec(self) -> Nest:
        """The specs of the input without their first size."""
        return map_structure(_row_spec, self.input.element_spec)

    @property
    def example(self) -> Nest:
        """The first row of the input's example; zeros where it has none."""
        return map_structure(_first_row, self.input.example)

    @property
    def examples(self) -> tuple[Nest, ...]:
        """The first rows of the input's examples."""
        return tuple(map_structure(_first_row, example) for example in self.input.examples)

    def open_elements(self, run: Run) -> Stream:
        """Start a run."""
        return UnbatchElements(self.input.open(run), self.input)


def _row_spec(spec: TensorSpec) -> TensorSpec:
    if spec.shape is None:
        return spec
    if not spec.shape:
        raise ValueError(f"unbatch cuts elements into rows, and a component has no dimension: {spec!r}")
    return TensorSpec(spec.shape[1:], spec.dtype)


def _first_row(leaf: Any) -> Any:
    return leaf[0] if len(leaf) else zeros_like_spec(_row_spec(TensorSpec.from_array(leaf)))


class UnbatchElements(Downstream):
    """The rows of another stream's elements."""

    __slots__ = ("_at", "_element", "_leaves", "_node", "_rows", "_shape")

    def __init__(self, source: Stream, node: Node) -> None:
        super().__init__(source)
        self._node = node
        self._element: Nest = None
        self._leaves: list[Any] = []
        self._shape: PyTreeSpec | None = None
        self._rows = 0  # of the element that is cut
        self._at = 0

    def __next__(self) -> Nest:
        while self._at == self._rows:
            self._cut(next(self._input))
        at = self._at
        self._at += 1
        if self._shape is None:
            return self._element[at]
        return unflatten(self._shape, [leaf[at] for leaf in self._leaves])

    def _cut(self, element: Nest) -> None:
        leaves, shape = flatten(element)
        shapes = [getattr(leaf, "shape", ()) for leaf in leaves]
        sizes = [shape[0] if shape else None for shape in shapes]
        if None in sizes:
            path = paths(element)[sizes.index(None)]
            raise InvalidArgumentError(
                f"unbatch cuts elements into rows, and component element{path} has no dimension: "
                f"{leaves[sizes.index(None)]!r}"
            )
        if len(set(sizes)) != 1:
            found = ", ".join(f"element{path}: {size}" for path, size in zip(paths(element), sizes, strict=True))
            raise InvalidArgumentError(f"unbatch needs components with as many rows each, and these differ ({found})")
        self._element, self._leaves = element, leaves
        self._shape = None if shape.is_leaf() else shape
        self._rows, self._at = sizes[0] or 0, 0

    def close(self) -> None:
        """Close the input, and drop the rows that are left."""
        self._at = self._rows = 0
        super().close()

    def get_state(self) -> State:
        """Give the rows that are left of the element that is cut."""
        left = self._at < self._rows
        return {**super().get_state(), "element": save_element(self._element) if left else None, "at": self._at}

    def set_state(self, state: State) -> None:
        """Go on where a snapshot was taken."""
        super().set_state(state)
        if state["element"] is not None:
            self._cut(load_element(state["element"], self._node))
            self._at = state["at"]
