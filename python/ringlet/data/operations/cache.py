"""Elements that are made once, and remembered in memory or in a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringlet.data.graph.iteration_context import graph_nodes
from ringlet.data.graph.node import RowStream, Run, Stream, Transformation
from ringlet.data.graph.table import Table
from ringlet.data.operations.cached_elements import CachedElements, CachedRows, Store
from ringlet.data.operations.cached_file import FileCachedElements
from ringlet.data.state.fingerprint import fingerprint

if TYPE_CHECKING:
    from ringlet.data.dataset import Dataset

__all__ = ["Cache", "cache"]


def cache(self: Dataset, filename: Any = "", name: str | None = None) -> Dataset:
    """Make the elements once, in the first iteration that comes to the end, and remember them for all later ones.

    Parameters
    ----------
    filename : str or path, optional
        Remember them in a file, whose name is this and ``.ringlet-cache``, and which later programs use, too; in
        memory, if it is empty. The file holds no code, only arrays and text. Whoever changes the pipeline must delete
        it.
    name : str, optional
        Accepted as TensorFlow's `name` is, and not used.

    Returns
    -------
    Dataset
        What is random in front of the cache is the same in every iteration. Elements are shared and read-only. Of
        slices of arrays only their order is remembered.

    Raises
    ------
    TypeError
        If `filename` is no text; while a file is written, if elements hold what can be written neither as numbers nor
        as text.
    NotFoundError
        During iteration, if the folder of the file does not exist.
    DataLossError
        During iteration, if the file is damaged.

    Notes
    -----
    An iteration that ends early, or in which an element raised an exception, leaves no cache behind. Where two
    iterations begin before one is complete, each makes its own elements; only one of them writes the file, also if they
    are in different processes.

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
        raise TypeError(f"filename must be text or a path, got {filename!r}") from None
    return type(self)(Cache(self.node, path))


@dataclass(frozen=True, eq=False)
class Cache(Transformation):
    """The same elements, remembered in a file, or in memory where there is no name of one."""

    filename: str
    # What was remembered in memory. Copies of the node in rewritten graphs share it where they have equal inputs, such
    # as with other numbers of threads; the shards of two workers are two stores.
    stores: dict[Any, Store] = field(default_factory=dict, repr=False)

    @property
    def settings(self) -> dict[str, Any]:
        """Whether there is a file, which may be anywhere."""
        return {"file": bool(self.filename)}

    @property
    def table(self) -> Table | None:
        """That of the input; a file gives elements only."""
        return None if self.filename else self.input.table

    @property
    def from_row_zero(self) -> bool:
        """Whether those of the input are."""
        return self.table is not None and self.input.from_row_zero

    @property
    def _store(self) -> Store:
        sources = [id(node) for node in graph_nodes(self.input) if not node.inputs]
        return self.stores.setdefault((fingerprint(self.input), *sources), Store())

    def open_rows(self, run: Run) -> RowStream:
        """Start a run that gives row numbers."""
        if self.from_row_zero:
            return self.input.open_rows(run)
        return CachedRows(self, run, self._store)

    def open_elements(self, run: Run) -> Stream:
        """Start a run that gives elements."""
        if self.filename:
            return FileCachedElements(self.input, run, self.filename)
        return CachedElements(self, run, self._store)
