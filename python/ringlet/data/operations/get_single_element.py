"""Dataset.get_single_element: the only element of a dataset."""

from __future__ import annotations

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.errors import InvalidArgumentError


def get_single_element(self: Dataset, name: str | None = None) -> Nest:
    """Return the only element of a dataset.

    Parameters
    ----------
    name : str, unused

    Returns
    -------
    nest of arrays

    Raises
    ------
    InvalidArgumentError
        If the dataset has no element, or more than one.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(3).batch(3).get_single_element()
    array([0, 1, 2])
    """
    with iter(self) as elements:
        found = [element for element, _ in zip(elements, range(2), strict=False)]
    if len(found) != 1:
        hint = " Call take(1) to keep the first element." if found else ""
        counted = "more than one element" if found else "no element"
        raise InvalidArgumentError(f"the dataset has {counted}, but exactly one is required.{hint}")
    return found[0]
