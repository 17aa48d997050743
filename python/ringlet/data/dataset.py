"""Dataset: a graph of operations on elements, and the methods that add operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlet.collectives.argument_parsing import shortened
from ringlet.data.dataset_iterator import DatasetIterator, NumpyIterator
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, cardinality_text
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import Node
from ringlet.module_names import MethodOnUse

if TYPE_CHECKING:
    from ringlet.data.operations.apply import apply as _apply
    from ringlet.data.operations.batch import batch as _batch
    from ringlet.data.operations.bucket_by_sequence_length import (
        bucket_by_sequence_length as _bucket_by_sequence_length,
    )
    from ringlet.data.operations.cache import cache as _cache
    from ringlet.data.operations.choose_from_datasets import choose_from_datasets as _choose_from_datasets
    from ringlet.data.operations.concatenate import concatenate as _concatenate
    from ringlet.data.operations.counter import counter as _counter
    from ringlet.data.operations.enumerate import enumerate as _enumerate
    from ringlet.data.operations.filter import filter as _filter
    from ringlet.data.operations.fingerprint import fingerprint as _fingerprint
    from ringlet.data.operations.flat_map import flat_map as _flat_map
    from ringlet.data.operations.from_generator import from_generator as _from_generator
    from ringlet.data.operations.from_iterable import from_iterable as _from_iterable
    from ringlet.data.operations.from_list import from_list as _from_list
    from ringlet.data.operations.from_tensor_slices import from_tensor_slices as _from_tensor_slices
    from ringlet.data.operations.from_tensors import from_tensors as _from_tensors
    from ringlet.data.operations.get_single_element import get_single_element as _get_single_element
    from ringlet.data.operations.group_by_window import group_by_window as _group_by_window
    from ringlet.data.operations.ignore_errors import ignore_errors as _ignore_errors
    from ringlet.data.operations.interleave import interleave as _interleave
    from ringlet.data.operations.list_files import list_files as _list_files
    from ringlet.data.operations.load import load as _load
    from ringlet.data.operations.map import map as _map
    from ringlet.data.operations.padded_batch import padded_batch as _padded_batch
    from ringlet.data.operations.prefetch import prefetch as _prefetch
    from ringlet.data.operations.random import random as _random
    from ringlet.data.operations.range import range as _range
    from ringlet.data.operations.rebatch import rebatch as _rebatch
    from ringlet.data.operations.reduce import reduce as _reduce
    from ringlet.data.operations.rejection_resample import rejection_resample as _rejection_resample
    from ringlet.data.operations.repeat import repeat as _repeat
    from ringlet.data.operations.sample_from_datasets import sample_from_datasets as _sample_from_datasets
    from ringlet.data.operations.save import save as _save
    from ringlet.data.operations.scan import scan as _scan
    from ringlet.data.operations.shard import shard as _shard
    from ringlet.data.operations.shuffle import shuffle as _shuffle
    from ringlet.data.operations.skip import skip as _skip
    from ringlet.data.operations.snapshot import snapshot as _snapshot
    from ringlet.data.operations.take import take as _take
    from ringlet.data.operations.take_while import take_while as _take_while
    from ringlet.data.operations.unbatch import unbatch as _unbatch
    from ringlet.data.operations.unique import unique as _unique
    from ringlet.data.operations.window import window as _window
    from ringlet.data.operations.with_options import options as _options
    from ringlet.data.operations.with_options import with_options as _with_options
    from ringlet.data.operations.zip import zip as _zip
    from ringlet.data.readers.csv import from_csv as _from_csv
    from ringlet.data.readers.npy import from_npy as _from_npy
    from ringlet.data.readers.parquet import from_parquet as _from_parquet

# Method -> module, for methods that are not in the module of the same name in `operations`.
_ELSEWHERE = {
    "from_csv": "readers.csv",
    "from_npy": "readers.npy",
    "from_parquet": "readers.parquet",
    "options": "operations.with_options",
}


def _on_use(names: str, kind: type | None = None) -> dict[str, MethodOnUse]:
    homes = {name: _ELSEWHERE.get(name, f"operations.{name}") for name in names.split()}
    return {name: MethodOnUse(f"ringlet.data.{home}", kind) for name, home in homes.items()}


class Dataset:
    """A sequence of elements, described by operations and computed during iteration (``tf.data.Dataset``).

    A dataset is immutable: every operation returns a new dataset. Elements are arrays, or nests of arrays in tuples and
    dictionaries. Elements are read-only. They are views of the source arrays where possible: a batch of consecutive
    rows copies nothing, and a shuffled batch is copied once.

    Start a pipeline with a static method such as `from_tensor_slices` or `range`. Operations accept TensorFlow's
    argument `name` but ignore it.

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
            raise TypeError(
                f"Dataset takes a graph node, got {shortened(node)} of type {type(node).__name__}: write "
                "Dataset.from_tensor_slices(arrays), or Dataset.range(number)"
            )
        self._node = node

    if TYPE_CHECKING:
        counter = classmethod(_counter)
        from_csv = classmethod(_from_csv)
        from_generator = classmethod(_from_generator)
        from_iterable = classmethod(_from_iterable)
        from_list = classmethod(_from_list)
        from_npy = classmethod(_from_npy)
        from_parquet = classmethod(_from_parquet)
        from_tensor_slices = classmethod(_from_tensor_slices)
        from_tensors = classmethod(_from_tensors)
        list_files = classmethod(_list_files)
        load = classmethod(_load)
        random = classmethod(_random)
        range = classmethod(_range)

        choose_from_datasets = staticmethod(_choose_from_datasets)
        sample_from_datasets = staticmethod(_sample_from_datasets)
        zip = staticmethod(_zip)

        apply = _apply
        batch = _batch
        bucket_by_sequence_length = _bucket_by_sequence_length
        cache = _cache
        concatenate = _concatenate
        enumerate = _enumerate
        filter = _filter
        fingerprint = _fingerprint
        flat_map = _flat_map
        get_single_element = _get_single_element
        group_by_window = _group_by_window
        ignore_errors = _ignore_errors
        interleave = _interleave
        map = _map
        options = _options
        padded_batch = _padded_batch
        prefetch = _prefetch
        rebatch = _rebatch
        reduce = _reduce
        rejection_resample = _rejection_resample
        repeat = _repeat
        save = _save
        scan = _scan
        shard = _shard
        shuffle = _shuffle
        skip = _skip
        snapshot = _snapshot
        take = _take
        take_while = _take_while
        unbatch = _unbatch
        unique = _unique
        window = _window
        with_options = _with_options
    else:
        vars().update(
            **_on_use(
                "counter from_csv from_generator from_iterable from_list from_npy from_parquet from_tensor_slices "
                "from_tensors list_files load random range",
                classmethod,
            ),
            **_on_use("choose_from_datasets sample_from_datasets zip", staticmethod),
            **_on_use(
                "apply batch bucket_by_sequence_length cache concatenate enumerate filter fingerprint flat_map "
                "get_single_element group_by_window ignore_errors interleave map options padded_batch prefetch rebatch "
                "reduce rejection_resample repeat save scan shard shuffle skip snapshot take take_while unbatch unique "
                "window with_options"
            ),
        )

    @property
    def node(self) -> Node:
        """The last operation of the graph."""
        return self._node

    @property
    def element_spec(self) -> Nest:
        """The specs of an element, a nest of TensorSpec; `map` infers specs by calling its function on examples."""
        return self._node.element_spec

    def cardinality(self) -> int:
        """Return the number of elements, INFINITE_CARDINALITY, or UNKNOWN_CARDINALITY if only iteration determines it.

        Examples
        --------
        >>> Dataset.range(10).batch(4).cardinality()
        3
        >>> Dataset.range(10).repeat().cardinality() == INFINITE_CARDINALITY
        True
        """
        return self._node.cardinality

    def as_numpy_iterator(self) -> DatasetIterator:
        """Return an iterator like ``iter(dataset)`` that converts PyTorch tensors and JAX arrays to NumPy.

        Examples
        --------
        >>> list(Dataset.range(3).batch(2).as_numpy_iterator())
        [array([0, 1]), array([2])]
        """
        return NumpyIterator(self)

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def __len__(self) -> int:
        size = self.cardinality()
        if size == INFINITE_CARDINALITY:
            raise TypeError("the dataset is infinite, so it has no length. Call take(count) to make it finite.")
        if size == UNKNOWN_CARDINALITY:
            raise TypeError(
                "the dataset length is unknown before the dataset is read: cardinality() is UNKNOWN_CARDINALITY. "
                "Declare it with apply(assert_cardinality(length))."
            )
        return size

    def __bool__(self) -> bool:
        return True  # otherwise an empty dataset would be falsy

    def __repr__(self) -> str:
        # element_spec is omitted if it could call user functions.
        spec = "" if self._node.runs_user_code else f" element_spec={self.element_spec!r}"
        return f"<{type(self).__name__} {_chain(self._node)}{spec}>"

    def _repr_html_(self) -> str:
        from ringlet.values.notebook_repr import facts_table

        spec = {} if self._node.runs_user_code else {"element_spec": self.element_spec}
        facts = {"operations": _chain(self._node), "elements": cardinality_text(self.cardinality())}
        return facts_table(type(self).__name__, {**facts, **spec})


def _chain(node: Node) -> str:
    front = ", ".join(map(_chain, node.inputs))
    return f"{front} -> {type(node).__name__}" if front else type(node).__name__
