"""Dataset.from_tensor_slices: the rows of arrays."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.adapter_column import AdapterColumn, array_column
from ringlet.data.graph.element_structure import Nest, as_element, is_dataset, paths
from ringlet.data.graph.sources import TableSource
from ringlet.data.graph.table import ArrayColumn, NoneColumn, Table
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten


def from_tensor_slices(cls: type[Dataset], tensors: Nest, name: str | None = None) -> Dataset:
    """Create a dataset of the slices of arrays along their first dimension.

    Parameters
    ----------
    tensors : array, or nest of arrays of equal length
        Tuples and dictionaries are the structure of the elements; a list is one array. Memory that NumPy can view is
        shared, not copied, and must not change while the dataset is used: elements are views. PyTorch tensors and JAX
        arrays yield elements of the same library. A list of datasets is an array of datasets. A component that is None
        is None in every element.
    name : str, unused

    Returns
    -------
    Dataset
        Element ``i`` has the structure of `tensors` and holds row ``i`` of every array: for NumPy, a read-only view, or
        a scalar if the array is a vector.

    Raises
    ------
    InvalidArgumentError
        If an array is a scalar, arrays differ in length, or `tensors` contains no array.
    TypeError
        If `name` is not a string, for example because a second array was passed by position.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_tensor_slices((np.eye(2), ["a", "b"]))
    >>> for row, name in dataset:
    ...     print(name, row)
    a [1. 0.]
    b [0. 1.]
    """
    if name is not None and not isinstance(name, str):
        raise TypeError(
            f"name must be a string, got a {type(name).__name__}: write from_tensor_slices((x, y)), with one tuple, "
            "for several arrays"
        )
    nest = as_element(tensors)
    leaves, shape = flatten(nest)
    if all(leaf is None for leaf in leaves):
        raise InvalidArgumentError(f"from_tensor_slices requires at least one array, got {tensors!r}.")
    columns = [_column(leaf, path) for leaf, path in zip(leaves, paths(nest), strict=True)]
    lengths = {path: len(column) for path, column in zip(paths(nest), columns, strict=True) if _has_rows(column)}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"tensors{path}: {length}" for path, length in lengths.items())
        raise InvalidArgumentError(
            f"from_tensor_slices requires arrays of equal length along their first dimension, got ({found}). Truncate "
            "the arrays to the shortest, or repeat rows of the shorter arrays."
        )
    return cls(TableSource(Table(tuple(columns), shape, next(iter(lengths.values())))))


def _has_rows(column: ArrayColumn | AdapterColumn | NoneColumn) -> TypeGuard[ArrayColumn | AdapterColumn]:
    return not isinstance(column, NoneColumn)


def _column(leaf: Nest, path: str) -> ArrayColumn | AdapterColumn | NoneColumn:
    if leaf is None:
        return NoneColumn()
    if is_dataset(leaf):
        raise InvalidArgumentError(
            f"from_tensor_slices slices arrays along their first dimension, but tensors{path} is a dataset: {leaf!r}. "
            "Use Dataset.from_tensors for a dataset as one element, or pass a list of datasets, one per element."
        )
    is_other = kind_of(leaf) is not None
    if (leaf.ndim if is_other else np.ndim(leaf)) == 0:
        raise InvalidArgumentError(
            f"from_tensor_slices slices arrays along their first dimension, but tensors{path} is a scalar: {leaf!r}. "
            "Add a dimension with np.atleast_1d(x)."
        )
    return array_column(leaf)
