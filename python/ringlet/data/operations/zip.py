"""Dataset.zip: corresponding elements of several datasets."""

from __future__ import annotations

import builtins
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ringlet.data.dataset_type import Dataset
from ringlet.data.graph.cardinality import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from ringlet.data.graph.element_structure import Nest
from ringlet.data.graph.node import IterationContext, Node, RowStream, State, Stream
from ringlet.data.graph.sources import TableRows
from ringlet.data.graph.table import Table
from ringlet.data.operations.common.user_function import node_of
from ringlet.nest import PyTreeSpec, flatten, unflatten


def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
    """Combine the corresponding elements of several datasets.

    Parameters
    ----------
    *args : Dataset, or nest of Dataset
        A single argument is the structure of the elements; several arguments form a tuple.
    datasets : nest of Dataset, optional
        The datasets as a keyword argument.
    name : str, unused

    Returns
    -------
    Dataset
        Its length is the length of the shortest dataset. If the elements are consecutive slices of arrays, later
        operations process slices of these arrays. A shuffle that several datasets share has the same order in all.

    Raises
    ------
    TypeError
        If no dataset is passed, or a leaf of the tuples and dictionaries is not a dataset.

    Examples
    --------
    >>> from ringlet.data import Dataset
    >>> list(Dataset.zip(Dataset.range(2), Dataset.range(5, 9)))
    [(np.int64(0), np.int64(5)), (np.int64(1), np.int64(6))]
    >>> list(Dataset.zip({"x": Dataset.range(2), "y": Dataset.range(5, 9)}))[1]
    {'x': np.int64(1), 'y': np.int64(6)}
    """
    if args and datasets is not None:
        raise TypeError("zip takes datasets either as arguments or as datasets=, but both were given")
    if not args and datasets is None:
        raise TypeError("zip requires at least one dataset")
    nest = (args[0] if len(args) == 1 else args) if args else datasets
    leaves, shape = flatten(nest)
    if not leaves:
        raise TypeError(f"zip requires at least one dataset, got {nest!r}")
    _refuse_lists(nest)
    nodes = [node_of(leaf) for leaf in leaves]
    for leaf, node in builtins.zip(leaves, nodes, strict=True):
        if node is None:
            raise TypeError(f"zip takes datasets, or nests of datasets in tuples and dictionaries, got {leaf!r}")
    made: Dataset = type(leaves[0])(Zip(tuple(node for node in nodes if node is not None), shape))
    return made


def _refuse_lists(nest: Any) -> None:
    if isinstance(nest, list):
        raise TypeError("zip takes datasets in tuples and dictionaries, but got a list. Use a tuple.")
    if isinstance(nest, (tuple, dict)):
        for child in nest.values() if isinstance(nest, dict) else nest:
            _refuse_lists(child)


@dataclass(frozen=True, eq=False)
class Zip(Node):
    """Node that combines the corresponding elements of several nodes in one structure."""

    parts: tuple[Node, ...]
    shape: PyTreeSpec

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, *inputs: Node) -> Zip:
        return dataclasses.replace(self, parts=inputs)

    @property
    def settings(self) -> dict[str, Any]:
        return {"shape": str(self.shape)}

    @property
    def cardinality(self) -> int:
        sizes = [part.cardinality for part in self.parts]
        if UNKNOWN_CARDINALITY in sizes:
            return UNKNOWN_CARDINALITY
        return min((size for size in sizes if size != INFINITE_CARDINALITY), default=INFINITE_CARDINALITY)

    @property
    def element_spec(self) -> Nest:
        return unflatten(self.shape, [part.element_spec for part in self.parts])

    @property
    def example(self) -> Nest:
        return unflatten(self.shape, [part.example for part in self.parts])

    @property
    def examples(self) -> tuple[Nest, ...]:
        columns = [part.examples for part in self.parts]
        rows = ([column[min(at, len(column) - 1)] for column in columns] for at in range(max(map(len, columns))))
        return tuple(unflatten(self.shape, row) for row in rows)

    @cached_property
    def table(self) -> Table | None:
        """The columns of all inputs, if each input yields its table from row 0; else None."""
        tables = [part.table for part in self.parts if part.from_row_zero]
        known = [table for table in tables if table is not None]
        return zip_tables(self.shape, known, self.cardinality) if len(known) == len(self.parts) else None

    @property
    def in_order(self) -> bool:
        return self.table is not None

    @property
    def from_row_zero(self) -> bool:
        return self.table is not None

    @property
    def bytes_copied(self) -> int:
        return sum(part.bytes_copied for part in self.parts)

    def open_rows(self, context: IterationContext) -> RowStream:
        return TableRows(0 if self.table is None else self.table.length)

    def open_elements(self, context: IterationContext) -> Stream:
        return ZipElements([part.open(context) for part in self.parts], self.shape)


def zip_tables(shape: PyTreeSpec, tables: Sequence[Table], cardinality: int) -> Table:
    """Return a table with the columns of several tables; `shape` has a leaf for each table.

    The table is as long as the shortest table, but at most `cardinality` rows unless `cardinality` is negative.
    """
    nest = unflatten(shape, [unflatten(table.shape, table.columns) for table in tables])
    columns, whole = flatten(nest)
    length = min(table.length for table in tables)
    return Table(tuple(columns), whole, length if cardinality < 0 else min(length, cardinality))


class InputStreams(Stream):
    """Base class of streams with several inputs, which are all opened at the start."""

    def __init__(self, sources: Sequence[Stream]) -> None:
        self._inputs = list(sources)
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        for source in self._inputs:
            source.close()

    def get_state(self) -> State:
        """Return the states of all inputs; None if this stream is closed."""
        return {"inputs": None if self._is_closed else [source.get_state() for source in self._inputs]}

    def set_state(self, state: State) -> None:
        if state["inputs"] is None:
            self.close()
            return
        for source, saved in builtins.zip(self._inputs, state["inputs"], strict=True):
            source.set_state(saved)


class ZipElements(InputStreams):
    """Stream of one element of each input, combined in one structure; ends when one input ends.

    When one input ends, the inputs after it are read once more, as in TensorFlow, so that their caches become complete
    if they end too.

    An exception of one input is raised for the whole element. The other inputs advance too, so that elements still
    correspond.
    """

    def __init__(self, sources: Sequence[Stream], shape: PyTreeSpec) -> None:
        super().__init__(sources)
        is_flat = shape == flatten((0,) * len(self._inputs))[1]
        self._make: Callable[[list[Nest]], Nest] = tuple if is_flat else shape.unflatten

    def __next__(self) -> Nest:
        if self._is_closed:
            raise StopIteration
        parts: list[Nest] = []
        failure: Exception | None = None
        is_at_end = False
        for source in self._inputs:
            try:
                parts.append(next(source))
            except StopIteration:
                is_at_end = True
            except Exception as error:
                failure = failure or error
        if is_at_end:
            self.close()
            raise StopIteration
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # the traceback of the error references this frame
        return self._make(parts)
