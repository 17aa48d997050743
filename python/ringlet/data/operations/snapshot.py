"""Dataset.snapshot: elements saved by the first iteration and loaded by later iterations."""

from __future__ import annotations

import hashlib
import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import ElementTransform, IterationContext, State, Stream
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.data.operations.load import read_shards
from ringlet.data.operations.save import ShardFunction
from ringlet.data.state.iterator_state import fingerprint
from ringlet.data.state.saved_dataset import SavedDatasetWriter, check_compression, read_manifest
from ringlet.errors import NotFoundError


def snapshot(  # noqa: PLR0917 - the arguments are TensorFlow's
    self: Dataset,
    path: Any,
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset], Dataset] | None = None,
    shard_func: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Dataset:
    """Save the elements in the first complete iteration, and load them in all later iterations.

    Parameters
    ----------
    path : str or path
        A folder, with subfolders for pipelines that differ in operations, sizes or settings. Functions and the values
        of arrays are not compared. Delete the folder when they change.
    compression : str, optional
        As in `save`. ``"AUTO"``, the default, does not compress.
    reader_func : callable, optional
        As in `load`.
    shard_func : callable, optional
        As in `save`.
    name : str, unused

    Returns
    -------
    Dataset
        Random operations before the snapshot give the same results in every iteration.

    Raises
    ------
    TypeError, InvalidArgumentError
        As in `save` and `load`.
    DataLossError
        During iteration, if a file is damaged.

    Notes
    -----
    An iteration that ends early saves nothing. While one iteration writes, other iterations compute their own elements.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> dataset = Dataset.range(3).shuffle(3).snapshot("shuffled")
    >>> first = [int(x) for x in dataset]
    >>> [int(x) for x in dataset] == first
    True
    """
    level = check_compression(compression)
    function = None if shard_func is None else ShardFunction(shard_func)
    if reader_func is not None and not callable(reader_func):
        raise TypeError(f"reader_func must be a function that takes a dataset of datasets, got {reader_func!r}")
    return type(self)(Snapshot(self.node, os.fsdecode(path), level, function, reader_func, type(self)))


@dataclass(frozen=True, eq=False)
class Snapshot(ElementTransform):
    """Node that saves the elements of its input in a folder in the first iteration, and then loads them."""

    path: str
    level: int
    shard_function: ShardFunction | None = field(repr=False)
    reader_func: Callable[[Any], Any] | None = field(repr=False)
    dataset_type: type[Dataset] = field(repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """Empty: a state may be restored with a snapshot in a different folder."""
        return {}

    @property
    def runs_user_code(self) -> bool:
        return self.shard_function is not None or self.reader_func is not None or super().runs_user_code

    has_files = True

    @property
    def folder(self) -> str:
        """The subfolder shared by equivalent pipelines."""
        return str(Path(self.path) / hashlib.sha256(fingerprint(self.input).encode()).hexdigest()[:16])

    def open_elements(self, context: IterationContext) -> Stream:
        return SnapshotElements(self, context)


class SnapshotElements(Stream):
    """Stream of elements: loaded from the folder, or computed; the first of concurrent streams saves them."""

    def __init__(self, node: Snapshot, context: IterationContext) -> None:
        self._node = node
        self._context = context
        self._count = 0
        self._is_closed = False
        self._input: Stream | None = None
        self._loaded: PipelineHandle | None = None
        self._writer: SavedDatasetWriter | None = None

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        if self._input is None and self._loaded is None:
            self._start()
        try:
            return self._make(self._input) if self._input is not None else self._load()
        except StopIteration:
            self.close()
            raise

    def _start(self) -> None:
        try:
            self._loaded = self._open_saved()
        except NotFoundError:
            node = self._node
            self._writer = SavedDatasetWriter.begin(node.folder, node.element_spec, node.level)
            if self._writer is not None:
                weakref.finalize(self, self._writer.abandon)
            self._input = node.input.open(self._context)

    def _open_saved(self) -> PipelineHandle:
        node = self._node
        manifest = read_manifest(node.folder)
        # Only the specs of this pipeline, not the saved specs, have the pipeline's named tuple classes.
        dataset = read_shards(node.dataset_type, manifest, node.element_spec, node.reader_func)
        return PipelineHandle(dataset.node, self._context.in_round(0))

    def _load(self) -> Nest:
        if self._loaded is None:
            raise StopIteration
        return next(self._loaded.stream)

    def _make(self, source: Stream) -> Nest:
        try:
            element = next(source)
            self._count += 1
            if self._writer is not None:
                function = self._node.shard_function
                self._writer.write(element, 0 if function is None else function.shard(self._count - 1, element))
        except StopIteration:
            if self._writer is not None:
                self._writer.finish()
            raise
        except BaseException:
            self._abandon()
            raise
        return element

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None

    def close(self) -> None:
        """Close the input and the files; delete an incomplete snapshot."""
        self._is_closed = True
        self._abandon()
        if self._input is not None:
            self._input.close()
        if self._loaded is not None:
            self._loaded.close()

    def get_state(self) -> State:
        return {
            "is_closed": self._is_closed,
            "loaded": None if self._loaded is None or self._is_closed else self._loaded.get_state(),
            "input": None if self._input is None or self._is_closed else self._input.get_state(),
        }

    def set_state(self, state: State) -> None:
        """Restore a state; if the stream had started, it saves no elements: it does not recompute earlier elements."""
        if state["is_closed"]:
            self.close()
        elif state["loaded"] is not None:
            self._loaded = self._open_saved()
            self._loaded.set_state(state["loaded"])
        elif state["input"] is not None:
            self._input = self._node.input.open(self._context)
            self._input.set_state(state["input"])
