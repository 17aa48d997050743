"""Dataset.from_tensors: a dataset of one element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of
from ringlet.collectives.buffers import as_ndarray
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.adapter_column import array_column
from ringlet.data.graph.element_structure import Array, Nest, as_element, is_optional
from ringlet.data.graph.sources import Elements, TableSource
from ringlet.data.graph.table import Table
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten


def from_tensors(cls: type[Dataset], tensors: Nest, name: str | None = None) -> Dataset:
    """Create a dataset of one element.

    Parameters
    ----------
    tensors : array, or nest of arrays
        The element. Tuples and dictionaries are its structure; a list is one array. Memory that NumPy can view is
        shared, not copied, and must not change while the dataset is used. PyTorch tensors and JAX arrays yield elements
        of the same library. A component may be a dataset, whose spec is a `DatasetSpec`, or None.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidArgumentError
        If `tensors` contains no array.
    TypeError
        If NumPy cannot convert a leaf to numbers or text.

    See Also
    --------
    from_tensor_slices : one element for each row.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> list(Dataset.from_tensors(([1, 2], "a")).repeat(2))
    [(array([1, 2]), 'a'), (array([1, 2]), 'a')]
    """
    element = as_element(tensors)
    leaves, shape = flatten(element)
    if all(leaf is None for leaf in leaves):
        raise InvalidArgumentError(f"from_tensors requires at least one array, got {tensors!r}.")
    if any(map(is_optional, leaves)):
        return cls(Elements((element,)))
    return cls(TableSource(Table(tuple(array_column(_one_row(leaf)) for leaf in leaves), shape, 1)))


def _one_row(leaf: Any) -> Any:
    if leaf is None:
        return None
    if kind_of(leaf) is not None:
        return in_kind_of(leaf, as_ndarray(leaf)[np.newaxis], is_own=True)
    # Text stays an object: a dtype of NumPy would drop trailing null characters.
    array = np.asarray(leaf, dtype=object if type(leaf) in (str, bytes) else None)
    row: Array = array[np.newaxis]
    return row
