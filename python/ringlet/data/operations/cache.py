"""Dataset.cache: elements stored in memory or in a file by the first iteration."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.iteration_context import graph_nodes
from ringlet.data.graph.node import IterationContext, RowStream, Stream, Transformation
from ringlet.data.graph.pipeline_handle import PipelineHandle
from ringlet.data.graph.table import Table
from ringlet.data.operations.common.file_cache import FileCachedElements
from ringlet.data.operations.common.memory_cache import CachedElements, CachedRows, Store
from ringlet.data.state.iterator_state import fingerprint


def cache(self: Dataset, filename: Any = "", name: str | None = None) -> Dataset:
    """Store the elements of the first complete iteration for all later iterations.

    Parameters
    ----------
    filename : str or path, optional
        If given, elements are stored in the file ``{filename}.ringlet-cache``, which later runs use too; otherwise, in
        memory. The file holds arrays and text, but no code. Delete the file when the pipeline changes.
    name : str, unused

    Returns
    -------
    Dataset
        Random operations before the cache give the same results in every iteration. Elements are shared and read-only.
        For slices of arrays, only their order is stored.

    Raises
    ------
    TypeError
        If `filename` is neither a string nor a path; while a file is written, if elements hold values that cannot be
        saved, such as structured arrays.
    NotFoundError
        During iteration, if the folder of the file does not exist.
    DataLossError
        During iteration, if the file is damaged.

    Notes
    -----
    An iteration that ends early, or in which an element raised an exception, stores nothing. If two iterations start
    before one is complete, each computes its own elements, but only one of them writes the file, even if they are in
    different processes.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> made = []
    >>> dataset = Dataset.range(3).map(lambda x: made.append(x) or x * x).cache()
    >>> [int(x) for x in dataset.repeat(2)], len(made)
    ([0, 1, 4, 0, 1, 4], 3)
    """
    try:
        path = os.fsdecode(filename)
    except TypeError:
        raise TypeError(f"filename must be a string or a path, got {filename!r}") from None
    return type(self)(Cache(self.node, path))


@dataclass(frozen=True, eq=False)
class Cache(Transformation):
    """Node that stores the elements of its input in a file, or in memory if `filename` is empty."""

    filename: str
    # The stores in memory. Copies of the node in rewritten graphs share a store if their inputs are equal except for
    # settings such as the number of threads; the shards of two workers have separate stores.
    stores: dict[Any, Store] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """Whether elements are stored in a file, whose path may change between saving and restoring."""
        return {"file": bool(self.filename)}

    @property
    def table(self) -> Table | None:
        """The table of the input; None if elements are stored in a file."""
        return None if self.filename else self.input.table

    @property
    def from_row_zero(self) -> bool:
        return self.table is not None and self.input.from_row_zero

    @property
    def _store(self) -> Store:
        sources = [id(node) for node in graph_nodes(self.input) if not node.inputs]
        return self.stores.setdefault((fingerprint(self.input), *sources), Store())

    def kept(self) -> Any:
        """Return all elements, or their row numbers if the node has a table; iterate first if they are not stored."""
        store = self._store
        if store.kept is None:
            for _ in PipelineHandle(self):
                pass
        return store.kept

    def open_rows(self, context: IterationContext) -> RowStream:
        if self.from_row_zero:
            return self.input.open_rows(context)
        return CachedRows(self, context, self._store)

    def open_elements(self, context: IterationContext) -> Stream:
        if self.filename:
            return FileCachedElements(self.input, context, self.filename)
        return CachedElements(self, context, self._store)
