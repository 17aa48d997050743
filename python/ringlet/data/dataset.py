"""Dataset: a graph of operations on elements, and the list of operations that there are."""

from __future__ import annotations

from ringlet.data.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.iterator import DatasetIterator
from ringlet.data.node import Node
from ringlet.data.operations.batch import batch as _batch
from ringlet.data.operations.from_tensor_slices import from_tensor_slices as _from_tensor_slices
from ringlet.data.operations.map import map as _map
from ringlet.data.operations.prefetch import prefetch as _prefetch
from ringlet.data.operations.range import range as _range
from ringlet.data.operations.repeat import repeat as _repeat
from ringlet.data.operations.shuffle import shuffle as _shuffle
from ringlet.data.operations.take import take as _take
from ringlet.data.structure import Nest

__all__ = ["Dataset"]


class Dataset:
    """A sequence of elements, described by operations and made when it is iterated (``tf.data.Dataset``).

    A dataset never changes: every operation gives a new one. Elements are arrays, or nests of arrays in tuples and
    dictionaries. They are read-only, and views of the arrays that they were cut from wherever that is possible: batches
    of slices in their order copy nothing, and shuffled ones are gathered once.

    Use `from_tensor_slices` or `range` to make the first one.

    Parameters
    ----------
    node : Node
        The last operation of a graph.

    Examples
    --------
    >>> import numpy as np
    >>> images, labels = np.zeros((5, 28, 28), np.float32), np.arange(5)
    >>> dataset = Dataset.from_tensor_slices((images, labels)).shuffle(5, seed=0).repeat(2).batch(4)
    >>> for batch in dataset:
    ...     print(batch[0].shape, batch[1].shape)
    (4, 28, 28) (4,)
    (4, 28, 28) (4,)
    (2, 28, 28) (2,)
    """

    __slots__ = ("__weakref__", "_node")

    def __init__(self, node: Node) -> None:
        if not isinstance(node, Node):
            raise TypeError(f"a Dataset is made by Dataset.from_tensor_slices or Dataset.range, not of {node!r}")
        self._node = node

    from_tensor_slices = classmethod(_from_tensor_slices)
    range = classmethod(_range)

    batch = _batch
    map = _map
    prefetch = _prefetch
    repeat = _repeat
    shuffle = _shuffle
    take = _take

    @property
    def node(self) -> Node:
        """The last operation of the graph."""
        return self._node

    @property
    def element_spec(self) -> Nest:
        """The nest of TensorSpec that every element follows. A function of `map` is called for it, on an example."""
        return self._node.element_spec

    def cardinality(self) -> int:
        """Give the number of elements, INFINITE_CARDINALITY, or UNKNOWN_CARDINALITY where only reading can tell.

        Examples
        --------
        >>> Dataset.range(10).batch(4).cardinality()
        3
        >>> Dataset.range(10).repeat().cardinality() == INFINITE_CARDINALITY
        True
        """
        return self._node.cardinality

    def as_numpy_iterator(self) -> DatasetIterator:
        """Go through the dataset; the same as ``iter(dataset)``, whose elements are NumPy's already.

        Examples
        --------
        >>> list(Dataset.range(3).batch(2).as_numpy_iterator())
        [array([0, 1]), array([2])]
        """
        return DatasetIterator(self)

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def __len__(self) -> int:
        size = self.cardinality()
        if size == INFINITE_CARDINALITY:
            raise TypeError("the dataset is infinite, so it has no length: take(count) gives one that ends")
        if size == UNKNOWN_CARDINALITY:
            raise TypeError("the dataset length is unknown before it is read; cardinality() is UNKNOWN_CARDINALITY")
        return size

    def __bool__(self) -> bool:
        return True  # or an empty dataset would be taken for a missing one

    def __repr__(self) -> str:
        # The spec would call functions of the user where there are some.
        spec = "" if self._node.runs_user_code else f" element_spec={self.element_spec!r}"
        return f"<{type(self).__name__} {_chain(self._node)}{spec}>"


def _chain(node: Node) -> str:
    front = ", ".join(map(_chain, node.inputs))
    return f"{front} -> {type(node).__name__}" if front else type(node).__name__
