"""Dataset.from_iterable: the values of an iterable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.iterable import iterable_source


def from_iterable(cls: type[Dataset], iterable: Iterable[Any], name: str | None = None) -> Dataset:
    """Create a dataset from an iterable: a list of arrays, a PyTorch ``DataLoader``, a Hugging Face dataset.

    Parameters
    ----------
    iterable : iterable
        An iterable of arrays, numbers, text, or nests of these in tuples and dictionaries. A list that holds arrays is
        a structure, as in batches of a ``DataLoader``; a list of numbers or text is one array. Every iteration of the
        dataset starts a new iteration of the iterable; an iterator supports only one.
    name : str, unused

    Returns
    -------
    Dataset
        NumPy arrays become read-only: views if the iterable is a list or a tuple; otherwise, writeable memory is
        copied, since an iterator may reuse one buffer. Arrays of other libraries are yielded unchanged. The cardinality
        is known only for a list or a tuple. `element_spec` reads the first element in a separate iteration.

    Raises
    ------
    TypeError
        If `iterable` is not iterable, or is an array, a mapping or text.

    Notes
    -----
    An exception of the iterable is raised when the element is requested, with the element number in a note.

    The state of an iterator (`DatasetIterator.get_state`) holds the position that is reported by the iterable or its
    iterator: with ``state_dict`` and ``load_state_dict``, or ``get_state`` and ``set_state``. For other iterables, the
    state holds the number of elements taken. Restoring it reads and discards this number of elements, so their order
    must be the same in every iteration. A shuffling ``DataLoader`` then requires a `generator` with a seed.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.from_iterable([(np.arange(2), "a"), (np.arange(3), "b")])
    >>> for array, text in dataset:
    ...     print(array, text)
    [0 1] a
    [0 1 2] b
    >>> dataset.element_spec[0]
    TensorSpec(shape=(None,), dtype=int64)
    """
    return cls(iterable_source(iterable))
