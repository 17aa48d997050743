"""DatasetSpec and OptionalSpec: specs of elements that are datasets or Optionals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ringlet.data.graph.element_structure import Nest, is_dataset, is_optional
from ringlet.data.tensor_spec import Shape
from ringlet.nest import flatten


@dataclass(frozen=True, init=False)
class DatasetSpec:
    """The spec of an element that is a dataset, such as a window (``tf.data.DatasetSpec``).

    Parameters
    ----------
    element_spec : nest of TensorSpec
        The specs of the elements of the inner dataset.
    dataset_shape : sequence of (int or None), default ()
        The shape of an array of datasets, such as a batch; () for one dataset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> windows = Dataset.range(5).window(2)
    >>> windows.element_spec
    DatasetSpec(element_spec=TensorSpec(shape=(), dtype=int64))
    >>> windows.batch(2).element_spec
    DatasetSpec(element_spec=TensorSpec(shape=(), dtype=int64), dataset_shape=(None,))
    """

    element_spec: Nest
    dataset_shape: Shape

    def __init__(self, element_spec: Nest, dataset_shape: Sequence[int | None] = ()) -> None:
        object.__setattr__(self, "element_spec", element_spec)
        object.__setattr__(self, "dataset_shape", tuple(dataset_shape))

    @classmethod
    def from_value(cls, value: Any) -> DatasetSpec:
        """Return the spec of a dataset.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> DatasetSpec.from_value(Dataset.range(3))
        DatasetSpec(element_spec=TensorSpec(shape=(), dtype=int64))
        """
        return cls(value.element_spec)

    dtype = np.dtype(object)

    @property
    def shape(self) -> Shape:
        """The shape of the array of datasets."""
        return self.dataset_shape

    @property
    def is_fully_defined(self) -> bool:
        """Whether the number of datasets is known; sizes of their elements are ignored."""
        return None not in self.dataset_shape

    def with_batch(self, size: int | None) -> DatasetSpec:
        """Return the spec of an array of `size` such datasets; a `size` of None means unknown."""
        return DatasetSpec(self.element_spec, (size, *self.dataset_shape))

    def with_rows(self, size: int | None) -> DatasetSpec:
        """Return a copy of this spec with `size` rows; a `size` of None means unknown."""
        return DatasetSpec(self.element_spec, (size, *self.dataset_shape[1:]))

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether a dataset, or another spec, conforms to this spec.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> spec = Dataset.range(5).window(2).element_spec
        >>> spec.is_compatible_with(Dataset.range(3)), spec.is_compatible_with(Dataset.range(3).batch(2))
        (True, False)
        """
        if not isinstance(value, DatasetSpec):
            return is_dataset(value) and self.is_compatible_with(DatasetSpec.from_value(value))
        mine, shape = flatten(self.element_spec)
        theirs, other = flatten(value.element_spec)
        if shape != other or self.dataset_shape != value.dataset_shape:
            return False
        return all(one.is_compatible_with(two) for one, two in zip(mine, theirs, strict=True))

    def __repr__(self) -> str:
        shape = f", dataset_shape={self.dataset_shape}" if self.dataset_shape else ""
        return f"DatasetSpec(element_spec={self.element_spec!r}{shape})"


@dataclass(frozen=True)
class OptionalSpec:
    """The spec of an element that may be absent (``tf.OptionalSpec``).

    Parameters
    ----------
    element_spec : nest of TensorSpec
        The specs of the value.

    Examples
    --------
    >>> from ringlet.data import Dataset, Optional
    >>> Dataset.range(3).map(Optional.from_value).element_spec
    OptionalSpec(element_spec=TensorSpec(shape=(), dtype=int64))
    """

    element_spec: Nest

    @classmethod
    def from_value(cls, value: Any) -> OptionalSpec:
        """Return the spec of an Optional."""
        return cls(value.element_spec)

    shape = ()
    dtype = np.dtype(object)

    @property
    def is_fully_defined(self) -> bool:
        """Whether all dimensions of the value are known."""
        return all(spec.is_fully_defined for spec in flatten(self.element_spec)[0])

    def with_batch(self, size: int | None) -> NoReturn:
        """Raise TypeError: Optionals cannot be batched."""
        raise TypeError(
            "an Optional cannot be batched. Batch the values: map(lambda x: x.get_value()) before the batch."
        )

    with_rows = with_batch

    def is_compatible_with(self, value: Any) -> bool:
        """Return whether an Optional, or another spec, conforms to this spec."""
        spec = OptionalSpec.from_value(value) if is_optional(value) else value
        if not isinstance(spec, OptionalSpec):
            return False
        mine, shape = flatten(self.element_spec)
        theirs, other = flatten(spec.element_spec)
        return shape == other and all(one.is_compatible_with(two) for one, two in zip(mine, theirs, strict=True))
