"""Dataset.from_iterable: the values of an iterable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.iterable import iterable_source

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["from_iterable"]


def from_iterable(cls: type[Dataset], iterable: Iterable[Any], name: str | None = None) -> Dataset:
    """Create a dataset of an iterable: a list of arrays, a PyTorch ``DataLoader``, a Hugging Face dataset.

    Parameters
    ----------
    iterable : iterable
        Of arrays, numbers, text, and nests of them in tuples and dictionaries. A list that holds arrays is a structure,
        too, as a ``DataLoader`` yields it; a list of numbers or text is one array. It is iterated anew for
        every iteration of the dataset; an iterator supports one.
    name : str, optional
        Accepted for compatibility with TensorFlow; unused.

    Returns
    -------
    Dataset
        NumPy arrays become read-only: views if the iterable is a list or a tuple, otherwise copies, since an iterator
        may reuse one buffer. Arrays of other libraries are kept. Only the length of
        a list or a tuple is used. `element_spec` reads the first element in a separate iteration.

    Raises
    ------
    TypeError
        If it is not iterable, or is an array, a mapping or text, which would be iterated by mistake.

    Notes
    -----
    An exception of the iterable is raised when the element is requested, with the element number in a note.

    The state of an iterator (`DatasetIterator.get_state`) holds the position that is reported by the iterable or its
    iterator: with ``state_dict`` and ``load_state_dict``, or ``get_state`` and ``set_state``. For others it holds the
    number of elements taken; to restore it, as many are read and discarded, so that they must come in the same
    order again. A shuffling ``DataLoader`` then needs a `generator` with a seed.

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
