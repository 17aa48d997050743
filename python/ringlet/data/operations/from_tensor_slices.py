"""A dataset of the rows of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.graph.adapter_column import KindColumn, array_column
from ringlet.data.graph.element_structure import Nest, as_element, paths
from ringlet.data.graph.table import ArrayColumn, Table
from ringlet.data.operations.table_source import TableSource
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["from_tensor_slices"]


def from_tensor_slices(cls: type[Dataset], tensors: Nest, name: str | None = None) -> Dataset:
    """Make a dataset whose elements are the slices of arrays along their first dimension.

    Parameters
    ----------
    tensors : array, or nest of arrays of one length
        Tuples and dictionaries are the structure of the elements; a list is one array, written out. Anything that NumPy
        can view is shared, not copied, so it must not change while the dataset is used: the elements are views of it.
        Tensors of PyTorch and arrays of JAX give elements of their kind.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        Element ``i`` has the structure of `tensors` and holds row ``i`` of every array: read-only views, scalars where
        the array is a vector.

    Raises
    ------
    InvalidArgumentError
        If an array has no dimension, arrays differ in length, or there is none.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_tensor_slices((np.eye(2), ["a", "b"]))
    >>> for row, name in dataset:
    ...     print(name, row)
    a [1. 0.]
    b [0. 1.]
    """
    nest = as_element(tensors)
    leaves, shape = flatten(nest)
    if not leaves:
        raise InvalidArgumentError(f"from_tensor_slices needs at least one array: {tensors!r} holds none.")
    columns = [_column(leaf, path) for leaf, path in zip(leaves, paths(nest), strict=True)]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        found = ", ".join(f"tensors{path}: {length}" for path, length in zip(paths(nest), lengths, strict=True))
        raise InvalidArgumentError(
            f"from_tensor_slices needs arrays of one length along their first dimension, and these differ ({found}). "
            "Cut them to the shortest, or repeat the rows of the others."
        )
    return cls(TableSource(Table(tuple(columns), shape, lengths[0])))


def _column(leaf: Nest, path: str) -> ArrayColumn | KindColumn:
    is_other = kind_of(leaf) is not None
    if (leaf.ndim if is_other else np.ndim(leaf)) == 0:
        raise InvalidArgumentError(
            f"from_tensor_slices cuts arrays along their first dimension, and tensors{path} has none: {leaf!r}. "
            "Give it one, as in np.atleast_1d(x)."
        )
    return array_column(leaf)
