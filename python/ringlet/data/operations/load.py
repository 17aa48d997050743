"""Dataset.load: datasets written by `save`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringlet.data.dataset_spec import DatasetSpec
from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.batch_rows import zeros_like_spec
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, State, Stream
from ringlet.data.graph.sources import Elements
from ringlet.data.operations.assert_cardinality import assert_cardinality
from ringlet.data.operations.common.user_function import node_of
from ringlet.data.state.cache_file import SUFFIX, CacheReader
from ringlet.data.state.saved_dataset import Manifest, check_compression, expanded, read_manifest, shard_name
from ringlet.data.state.saved_elements import load_element
from ringlet.data.state.spec_text import spec_of_text, spec_text
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError
from ringlet.nest import flatten, map_structure

_REMEDY = "Save the dataset again, or copy the folder again."

# Polling interval of ``wait=True``.
_WAIT_SECONDS = 0.2


def load(  # noqa: PLR0917 - the arguments are TensorFlow's
    cls: type[Dataset],
    path: Any,
    element_spec: Nest = None,
    compression: str | None = None,
    reader_func: Callable[[Dataset], Dataset] | None = None,
    wait: bool = False,
) -> Dataset:
    """Load a dataset written by `save`.

    Parameters
    ----------
    path : str or path
        The folder.
    element_spec : nest of TensorSpec, optional
        The specs of elements. By default, the saved specs.
    compression : str, optional
        Accepted for compatibility with TensorFlow; unused: the compression is detected.
    reader_func : callable, optional
        Takes a dataset of datasets, one for each shard in the order of their numbers, and returns a dataset of
        elements. By default, elements are taken from the shards in turn.
    wait : bool, default False
        Whether to wait until a dataset is saved in the folder.

    Returns
    -------
    Dataset

    Raises
    ------
    NotFoundError
        If no dataset is saved in the folder.
    InvalidArgumentError
        If `element_spec` does not match the saved specs, neither is known, or `compression` is unknown.
    TypeError
        If `reader_func` is not callable, or does not return a dataset.
    DataLossError
        If a file is damaged; shard files are checked during iteration. The error holds the name of the file and the
        offset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> Dataset.range(6).save("numbers", shard_func=lambda x: x % 2)
    >>> [int(x) for x in Dataset.load("numbers")]
    [0, 1, 2, 3, 4, 5]
    >>> [int(x) for x in Dataset.load("numbers", reader_func=lambda shards: shards.flat_map(lambda shard: shard))]
    [0, 2, 4, 1, 3, 5]
    """
    check_compression(compression)
    folder = os.fsdecode(path)
    while wait:
        try:
            read_manifest(folder)
            break
        except NotFoundError:
            time.sleep(_WAIT_SECONDS)
    manifest = read_manifest(folder)
    return read_shards(cls, manifest, _checked_spec(folder, manifest.spec, element_spec), reader_func)


def _checked_spec(folder: str, saved: Nest, given: Nest) -> Nest:
    if saved is None and given is None:
        raise InvalidArgumentError(
            f"the element_spec of the dataset in {folder} could not be saved. Pass element_spec=, the specs of the "
            "original dataset."
        )
    if saved is None or given is None:
        return saved if given is None else given
    leaves, shape = flatten(saved)
    others, other_shape = flatten(given)
    if len(leaves) != len(others) or not all(o.is_compatible_with(s) for s, o in zip(leaves, others, strict=True)):
        raise InvalidArgumentError(
            f"element_spec does not match the dataset saved in {folder}:\n"
            f"  given: {given}\n"
            f"  saved: {saved}\n"
            "Omit element_spec to use the saved specs."
        )
    return given if shape != other_shape or given != saved else saved


def read_shards(
    cls: type[Dataset], manifest: Manifest, spec: Nest, reader_func: Callable[[Dataset], Dataset] | None
) -> Dataset:
    """Return the dataset that `reader_func` returns for the shards; by default, interleave the shards."""
    shards = tuple(cls(SavedShard(manifest.folder, n, count, spec)) for n, count in manifest.shards.items())
    if reader_func is None:
        if len(shards) == 1:
            return shards[0]
        turns = cls(Elements(shards, DatasetSpec(spec))).interleave(_same, cycle_length=len(shards))
        return turns.apply(assert_cardinality(sum(manifest.shards.values())))
    if not callable(reader_func):
        raise TypeError(f"reader_func must be a function that takes a dataset of datasets, got {reader_func!r}")
    answer = reader_func(cls(Elements(shards, DatasetSpec(spec))))
    node = node_of(answer)
    if node is None:
        raise TypeError(
            f"reader_func must return a Dataset, but returned {answer!r}. Return shards.flat_map(lambda shard: shard), "
            "for example, to concatenate the shards."
        )
    return cls(node)


def _same(shard: Dataset) -> Dataset:
    return shard


@dataclass(frozen=True, eq=False)
class SavedShard(Node):
    """Node that yields the elements of one shard."""

    folder: str
    number: int
    count: int
    spec: Nest = field(repr=False)

    @classmethod
    def of(cls, reference: list[Any]) -> SavedShard:
        """Return the node of the shard with this `reference`."""
        folder, number, count, spec = reference
        return cls(folder, number, count, spec_of_text(spec))

    @property
    def reference(self) -> list[Any]:
        """The values that identify the shard."""
        return [self.folder, self.number, self.count, spec_text(self.spec)]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings without the folder, whose path may change between saving and restoring."""
        return {"shard": self.number, "count": self.count}

    @property
    def cardinality(self) -> int:
        return self.count

    @property
    def element_spec(self) -> Nest:
        return self.spec

    @property
    def example(self) -> Nest:
        """The first element; zeros or empty text if the shard has no elements or cannot be read."""
        stream = self.open(IterationContext())
        try:
            return next(stream)
        except (StopIteration, OSError):
            return map_structure(zeros_like_spec, self.spec)
        finally:
            stream.close()

    has_files = True

    def open_elements(self, context: IterationContext) -> Stream:
        return ShardElements(self)


class ShardElements(Stream):
    """Stream of the elements of one file, which is opened at the first request."""

    def __init__(self, node: SavedShard) -> None:
        self._node = node
        self._reader: CacheReader | None = None
        self._place: list[int] = []  # the start position; empty for the first element
        self._is_closed = False

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if self._reader is None:
            self._reader = self._open()
        place = self._reader.offset
        try:
            state = next(self._reader)
        except StopIteration:
            self.close()
            raise
        try:
            return load_element(expanded(state), self._node)
        except (ValueError, KeyError, TypeError) as error:
            name = self._name + SUFFIX
            raise DataLossError(f"{name} is damaged at byte {place}: {error}. {_REMEDY}", name, place) from error

    @property
    def _name(self) -> str:
        return shard_name(self._node.folder, self._node.number)

    def _open(self) -> CacheReader:
        try:
            return CacheReader(self._name, *self._place, kind="shard", remedy=_REMEDY)
        except FileNotFoundError as error:
            there = Path(self._node.folder).is_dir()
            why = "a file of the saved dataset is missing" if there else "the dataset was replaced or deleted"
            raise NotFoundError(f"{self._name}{SUFFIX} does not exist: {why}. Load the dataset again.") from error

    def close(self) -> None:
        self._is_closed = True
        if self._reader is not None:
            self._reader.close()

    def get_state(self) -> State:
        """Return the position in the file; None if this stream is closed."""
        reader = self._reader
        place = self._place if reader is None else [reader.offset, reader.count]
        return {"place": None if self._is_closed else list(place)}

    def set_state(self, state: State) -> None:
        if state["place"] is None:
            self.close()
        else:
            self._place = list(state["place"])
