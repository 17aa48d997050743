"""Dataset.from_list: the elements of a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest, as_element, detached
from ringlet.data.graph.iterable import IterableSource
from ringlet.data.graph.spec_inference import common_spec, spec_of
from ringlet.data.graph.stacking import stack
from ringlet.errors import InvalidArgumentError
from ringlet.nest import flatten, map_structure


def from_list(cls: type[Dataset], elements: Any, name: str | None = None) -> Dataset:
    """Create a dataset from a list of elements (``tf.data.experimental.from_list``).

    Parameters
    ----------
    elements : list
        Elements of the same structure and dtypes: arrays, numbers, text, and nests of these in tuples and dictionaries.
        A list inside an element is one array. Later changes to NumPy arrays have no effect.
    name : str, unused

    Returns
    -------
    Dataset
        Sizes that differ between elements are None in its `element_spec`.

    Raises
    ------
    InvalidArgumentError
        If `elements` is not a list, is empty, or its elements contain no array.
    TypeError
        If the elements differ in structure or dtype.

    See Also
    --------
    from_tensor_slices : the rows of arrays.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> list(Dataset.from_list([(1, "a"), (2, "b")]))
    [(np.int64(1), 'a'), (np.int64(2), 'b')]
    >>> Dataset.from_list([[1, 2], [3]]).element_spec
    TensorSpec(shape=(None,), dtype=int64)
    """
    if not isinstance(elements, list) or not elements:
        raise InvalidArgumentError(
            f"from_list requires a list of at least one element, got {elements!r}. Use Dataset.range(0) for an empty "
            "dataset, or Dataset.from_tensor_slices for arrays."
        )
    given = list(map(as_element, elements))
    if not flatten(given[0])[0]:
        raise InvalidArgumentError(f"from_list requires elements with at least one array, got {elements[0]!r}.")
    spec = common_spec([map_structure(spec_of, element) for element in given])
    if all(leaf.is_fully_defined for leaf in flatten(spec)[0]):
        return cls.from_tensor_slices(stack(given))
    return cls(ListSource([detached(element) for element in given], spec=spec))


@dataclass(frozen=True, eq=False)
class ListSource(IterableSource):
    """Node that yields the elements of a list; their sizes may differ."""

    spec: Nest = field(default=None, repr=False)

    @property
    def element_spec(self) -> Nest:
        return self.spec
