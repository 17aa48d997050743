"""Dataset.apply: a transformation of a whole dataset by a function."""

from __future__ import annotations

from collections.abc import Callable

from ringlet.data.dataset_type import Dataset
from ringlet.data.operations.common.user_function import check_callable, node_of


def apply(self: Dataset, transformation_func: Callable[[Dataset], Dataset], name: str | None = None) -> Dataset:
    """Return ``transformation_func(self)``, for custom operations in a chain of methods.

    Parameters
    ----------
    transformation_func : callable
        Takes a dataset and returns another dataset.
    name : str, unused

    Returns
    -------
    Dataset

    Raises
    ------
    TypeError
        If `transformation_func` is not callable or does not return a dataset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> def every_second(dataset):
    ...     return dataset.filter(lambda x: x % 2 == 0)
    >>> [int(x) for x in Dataset.range(6).apply(every_second)]
    [0, 2, 4]
    """
    check_callable(transformation_func, "apply", "a function of a dataset")
    dataset = transformation_func(self)
    if node_of(dataset) is None:
        raise TypeError(f"the transformation_func of apply must return a Dataset, but returned {dataset!r}")
    return dataset
