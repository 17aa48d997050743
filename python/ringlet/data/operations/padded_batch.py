"""Dataset.padded_batch: consecutive elements padded to a common size and stacked."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.count_arguments import positive
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, IterationContext, Stream
from ringlet.data.graph.spec_inference import spec_of, without_sizes
from ringlet.data.operations.batch import BatchElements, Groups, num_batches
from ringlet.data.operations.common.padding import Padding
from ringlet.data.tensor_spec import TensorSpec
from ringlet.nest import map_structure, unflatten


def padded_batch(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    batch_size: int,
    padded_shapes: Nest = None,
    padding_values: Nest = None,
    drop_remainder: bool = False,
    name: str | None = None,
) -> Dataset:
    """Stack `batch_size` consecutive elements, each padded at the ends of its dimensions to a common shape.

    Parameters
    ----------
    batch_size : int
    padded_shapes : nest of shapes, optional
        A shape (a list or tuple of sizes) for each component. A size of None or -1 pads to the longest element of the
        batch, which is also the default for all sizes.
    padding_values : scalar, or nest of scalars, optional
        The padding: one value for all components, or one value for each. None, the default, means 0, False or empty
        text. A NumPy scalar must have the dtype of its component.
    drop_remainder : bool, default False
        Whether to drop the last batch if it is short.
    name : str, unused

    Returns
    -------
    Dataset
        Batches are copies; their NumPy arrays are read-only.

    Raises
    ------
    InvalidArgumentError
        If `batch_size` is zero or negative; during iteration, if the numbers of dimensions of an element and its padded
        shape differ.
    ValueError
        If shapes or values do not have the structure of the elements, a size is less than -1, or a padding value is not
        a scalar.
    TypeError
        If a size is not an integer, or the dtypes of a padding value and its component differ. If user functions
        compute the elements, these errors are raised with the first batch.
    DataLossError
        During iteration, if an element is larger than its padded shape.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.range(1, 4).map(lambda x: np.full(x, x))
    >>> next(iter(dataset.padded_batch(3, padding_values=-1)))
    array([[ 1, -1, -1],
           [ 2,  2, -1],
           [ 3,  3,  3]])
    >>> next(iter(dataset.padded_batch(2, padded_shapes=[4])))
    array([[1, 0, 0, 0],
           [2, 2, 0, 0]])
    """
    size = positive(batch_size, "batch_size")
    node = PaddedBatch(self.node, size, bool(drop_remainder), padded_shapes, padding_values)
    if not node.runs_user_code:
        _ = node.padding  # raises an error for invalid shapes or values
    return type(self)(node)


@dataclass(frozen=True, eq=False)
class PaddedBatch(ElementTransform):
    """Node that pads and stacks `batch_size` consecutive elements."""

    batch_size: int
    drop_remainder: bool
    padded_shapes: Nest
    padding_values: Nest

    @property
    def settings(self) -> dict[str, Any]:
        padding = {"padded_shapes": repr(self.padded_shapes), "padding_values": repr(self.padding_values)}
        return {"batch_size": self.batch_size, "drop_remainder": self.drop_remainder, **padding}

    @property
    def cardinality(self) -> int:
        return num_batches(self.input.cardinality, self.batch_size, self.drop_remainder)

    @cached_property
    def padding(self) -> Padding:
        return self.padding_of(self.input.element_spec)

    def padding_of(self, specs: Nest) -> Padding:
        """Return the padding for elements with these specs."""
        if self.runs_user_code and self.padded_shapes is None:
            # Sizes inferred from examples may differ between elements, so they are omitted.
            specs = without_sizes(specs)
        return Padding.of(specs, self.padded_shapes, self.padding_values)

    @cached_property
    def element_spec(self) -> Nest:
        """The padded shapes with one more dimension, whose size is known only with `drop_remainder`."""
        size = self.batch_size if self.drop_remainder else None
        specs = [TensorSpec(part.shape, part.spec.dtype).with_batch(size) for part in self.padding.components]
        return unflatten(self.padding.structure, specs)

    @property
    def example(self) -> Nest:
        return self.padding.batch([self.input.example] * self.batch_size)

    def open_elements(self, context: IterationContext) -> Stream:
        least = self.batch_size if self.drop_remainder else 1
        groups = Groups(self.input.open(context), self.batch_size, least)
        return BatchElements(groups, self.input, make=_Padded(self))


class _Padded:
    """Function that pads and stacks elements; the first determines the padding if user functions compute them."""

    def __init__(self, node: PaddedBatch) -> None:
        self._node = node
        self._padding = None if node.runs_user_code else node.padding

    def __call__(self, elements: list[Nest]) -> Nest:
        if self._padding is None:
            self._padding = self._node.padding_of(map_structure(spec_of, elements[0]))
        return self._padding.batch(elements)
