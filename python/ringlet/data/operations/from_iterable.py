"""A dataset of what an iterable gives."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.iterable import iterable_source

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["from_iterable"]


def from_iterable(cls: type[Dataset], iterable: Iterable[Any], name: str | None = None) -> Dataset:
    """Make a dataset of what an iterable gives: a list of arrays, a PyTorch ``DataLoader``, a data set of Hugging Face.

    Parameters
    ----------
    iterable : iterable
        Of arrays, numbers, text, and nests of them in tuples and dictionaries. A list that holds arrays is a structure,
        too, as a ``DataLoader`` gives it; a list of numbers or text is one array, written out. It is iterated anew for
        every iteration of the dataset; an iterator serves for one.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        NumPy's arrays become read-only: views where the iterable is a list or a tuple, copies of what others give,
        which may be one buffer filled again and again. Arrays of other libraries stay what they are. Only the length of
        a list or a tuple is relied on. `element_spec` reads the first element of an iteration begun for it alone.

    Raises
    ------
    TypeError
        If it cannot be iterated, or is an array, a mapping or text, whose iteration cannot be meant.

    Notes
    -----
    An exception of the iterable surfaces where the element is asked for, with the number of the element in a note.

    The state of an iterator (`DatasetIterator.get_state`) holds the place in the data that the iterable tells, or its
    iterator: with ``state_dict`` and ``load_state_dict``, or ``get_state`` and ``set_state``. Of all others it holds
    how many elements were taken; to restore it, as many are read and forgotten, so that they must come in the same
    order again. For a shuffling ``DataLoader`` that means a `generator` with a seed.

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
