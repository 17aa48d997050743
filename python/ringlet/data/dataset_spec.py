"""What the datasets among a dataset's elements look like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ringlet.data.graph.element_structure import Nest

__all__ = ["DatasetSpec"]


@dataclass(frozen=True)
class DatasetSpec:
    """The spec of an element that is a dataset itself, as windows are (``tf.data.DatasetSpec``).

    Parameters
    ----------
    element_spec : nest of TensorSpec
        What the elements of that dataset look like.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(5).window(2).element_spec
    DatasetSpec(element_spec=TensorSpec(shape=(), dtype=int64))
    """

    element_spec: Nest

    @property
    def shape(self) -> tuple[int, ...]:
        """No dimension: there is one dataset in an element."""
        return ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of objects."""
        return np.dtype(object)

    @property
    def is_fully_defined(self) -> bool:
        """Whether every dimension of an element is known: there is none."""
        return True

    def is_compatible_with(self, value: Any) -> bool:
        """Tell whether a dataset, or another spec, may stand where this spec is asked for.

        Examples
        --------
        >>> from ringlet.data import Dataset
        >>> spec = Dataset.range(5).window(2).element_spec
        >>> spec.is_compatible_with(Dataset.range(3))
        True
        """
        other = value.element_spec if hasattr(value, "element_spec") else None
        return bool(other == self.element_spec)
