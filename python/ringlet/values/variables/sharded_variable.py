"""ShardedVariable: a variable whose rows are divided into shards."""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ringlet import _core
from ringlet.values.indexed_slices import IndexedSlices, as_slices, checked_rows
from ringlet.values.value_conversion import as_value
from ringlet.values.variables.row_lookup import RowReader, copy_rows, gather_rows
from ringlet.values.variables.scatter_updates import ScatterUpdates
from ringlet.values.variables.storage import Change, replace
from ringlet.values.variables.update_opcodes import assign_add, assign_sub
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import SpecProperties

Array = NDArray[Any]


def shard_sizes(num_rows: int, num_shards: int) -> list[int]:
    """Return the number of rows of each shard; sizes differ by at most one, larger shards first."""
    base, extra = divmod(num_rows, num_shards)
    return [base + (i < extra) for i in range(num_shards)]


class ShardedVariable(RowReader, ScatterUpdates, SpecProperties):
    """The concatenation of several variables along axis 0, used as one variable.

    In expressions, a sharded variable behaves like its value, an array. Strategies with a partitioner create sharded
    variables. The shards are instances of :class:`ringlet.Variable`; the sharded variable is not.

    Parameters
    ----------
    variables : sequence of Variable
        The shards, at least one, of the same dtype and of shapes that differ only in the number of rows.
    name : str

    Raises
    ------
    TypeError
        If `variables` are not variables, or do not have a static shape.
    ValueError
        If dtypes or shapes do not match, or a shard is 0-d.

    Notes
    -----
    Shards are updated one after another: a concurrent read may see only some of them updated.

    Examples
    --------
    >>> import ringlet
    >>> table = ShardedVariable([ringlet.Variable([[1.0], [2.0]]), ringlet.Variable([[3.0]])])
    >>> table.shape, table[1:].tolist(), table[-1].tolist()
    ((3, 1), [[2.0], [3.0]], [3.0])
    >>> _ = table.scatter_add(ringlet.IndexedSlices([[10.0], [20.0]], [2, 0]))
    >>> [shard.numpy().tolist() for shard in table]
    [[[21.0], [2.0]], [[13.0]]]
    """

    def __init__(self, variables: Sequence[Variable], name: str = "ShardedVariable") -> None:
        _check(variables)
        self._variables = list(variables)
        self._ends = list(itertools.accumulate(variable.shape[0] for variable in variables))
        first = variables[0]
        shape = (self._ends[-1], *first.shape[1:])
        # The spec of the whole variable, for checkpoints.
        self._spec = dataclasses.replace(first._spec, name=name, shape=shape)

    @property
    def variables(self) -> list[Variable]:
        """The shards, in order."""
        return list(self._variables)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the whole variable."""
        return (self._ends[-1], *self._variables[0].shape[1:])

    @property
    def distribute_strategy(self) -> Any:
        """The strategy that created the shards, or None."""
        return self._variables[0].distribute_strategy

    is_sharded_variable = True

    @property
    def _var_offsets(self) -> list[list[int]]:
        """The offset of each shard along each dimension; only axis 0 is split."""
        return [[begin, *[0] * (len(self.shape) - 1)] for begin in self._begins()]

    def _begins(self) -> list[int]:
        return [0, *self._ends[:-1]]

    def __iter__(self) -> Iterator[Variable]:  # the shards, as in TensorFlow
        return iter(self._variables)

    def __bool__(self) -> bool:
        return True

    def __len__(self) -> int:
        raise TypeError(
            f"{self!r} has no len(), as in TensorFlow: use shape[0] for the number of rows, or len(variables) for the "
            "number of shards"
        )

    __hash__ = object.__hash__  # by identity, as in TensorFlow

    def read_value(self) -> Any:
        """Return the whole value as a new read-only array."""
        return self._as_operand()

    def _as_operand(self) -> Any:
        return self._read_rows(0, self._ends[-1])

    def _read_rows(self, begin: int, end: int) -> Any:
        memory, rows = _core.allocate((end - begin, *self.shape[1:]), self.dtype)
        self._copy_rows(begin, end, memory)
        return self._as_array_type(rows)

    def _copy_rows(self, begin: int, end: int, out: Array) -> None:
        for variable, first, last in zip(self._variables, self._begins(), self._ends, strict=True):
            low, high = max(begin, first), min(end, last)
            if low < high:
                copy_rows(variable, low - first, high - first, out[low - begin : high - begin])

    def _rows_of(self, key: slice) -> range:
        """Return the rows that a slice selects; as in TensorFlow, an out-of-range start is not clamped."""
        count = self._ends[-1]
        start, stop, step = (None if part is None else operator.index(part) for part in (key.start, key.stop, key.step))
        step = 1 if step is None else step
        if step == 0:
            raise ValueError("slice step cannot be zero")
        first, behind = (0, count) if step > 0 else (count - 1, -1)
        start = first if start is None else start + count if start < 0 else start
        stop = behind if stop is None else stop + count if stop < 0 else stop
        # Number of steps from `start` to the first existing row.
        missed = max(0, -((start - first) // step))
        return range(start + missed * step, max(stop, -1) if step < 0 else min(stop, count), step)

    def _gather(self, indices: Array) -> Any:
        flat = indices.reshape(-1)
        memory, rows = _core.allocate(indices.shape + self.shape[1:], self.dtype)
        found = memory.reshape(flat.shape + self.shape[1:])
        for variable, chosen, local in self._by_shard(flat):
            found[chosen] = gather_rows(variable, local)
        return self._as_array_type(rows)

    def _refuse_row(self, number: int) -> NoReturn:
        row = number + self.shape[0] if number < 0 else number
        raise IndexError(
            f"ShardedVariable: slice index {row} of dimension 0 out of bounds: there are {self.shape[0]} rows, but "
            f"the index is {number}"
        )

    def _as_array_type(self, array: Array) -> Any:
        kind = self._variables[0]._storage._array_type
        return array if kind is np.ndarray else array.view(kind)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Return selected rows, in the order of `indices`.

        Parameters
        ----------
        indices : array-like of int, shape (n,)
        name : str, unused

        Returns
        -------
        ndarray, shape (n, ...)

        Raises
        ------
        InvalidArgumentError
            If an index is out of range.
        ValueError
            If the indices are not one-dimensional.
        NotImplementedError
            If the shard sizes differ from :func:`shard_sizes`.
        """
        self._check_sparse(np.shape(indices))
        return super().sparse_read(indices)

    def _by_shard(self, indices: Array) -> Iterator[tuple[Any, Any, Array]]:
        """Yield each shard with requested rows, their positions in `indices`, and their row indices in the shard."""
        shards = np.searchsorted(self._ends, indices, side="right")
        for number in np.unique(shards).tolist():
            chosen = np.flatnonzero(shards == number)
            yield self._variables[number], chosen, indices[chosen] - self._begins()[number]

    def assign(
        self, value: Any, use_locking: bool | None = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Assign a new value.

        Parameters
        ----------
        value : array-like
            The new value, with the shape and dtype of the whole variable.
        use_locking, name, read_value
            Ignored; for compatibility with TensorFlow.

        Returns
        -------
        ShardedVariable
            The variable itself.

        Raises
        ------
        ValueError
            If the value has a different dtype or shape; the variable is unchanged.
        """
        return self._update(replace, value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Add to the value; parameters, results and errors as for :meth:`assign`."""
        return self._update(self._variables[0]._arithmetic(assign_add), delta)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtract from the value; parameters, results and errors as for :meth:`assign`."""
        return self._update(self._variables[0]._arithmetic(assign_sub), delta)

    def _update(self, change: Change, value: Any) -> Any:
        array = as_value(value, self.dtype, self.shape, self.name)
        for variable, begin, end in zip(self._variables, self._begins(), self._ends, strict=True):
            variable._update(change, array[begin:end], False)
        return self

    def _scatter(self, name: str, sparse_delta: Any) -> Any:
        slices = as_slices(sparse_delta)
        self._check_sparse(np.shape(slices.indices))
        indices, rows = checked_rows(slices, self.shape, self.dtype, name == "scatter_div")
        for variable, chosen, local in self._by_shard(indices):
            getattr(variable, name)(IndexedSlices(rows[chosen], local))
        return self

    def batch_scatter_update(self, sparse_delta: Any, use_locking: bool = False, name: str | None = None) -> Any:
        """Same as :meth:`scatter_update`."""
        return self._scatter("scatter_update", sparse_delta)

    def _check_sparse(self, shape: tuple[int, ...]) -> None:
        if len(shape) != 1:
            raise ValueError(
                f"ShardedVariable: indices must be 1D Tensor for sparse operations. Received shape: {shape}. Pass a "
                "list of row numbers; embedding_lookup takes ids of any shape"
            )
        sizes = [end - begin for begin, end in zip(self._begins(), self._ends, strict=True)]
        wanted = shard_sizes(self._ends[-1], len(sizes))
        if sizes != wanted:
            raise NotImplementedError(
                'scatter_xxx ops are not supported in ShardedVariable that does not conform to "div" sharding: the '
                f"shards have {sizes} rows, expected {wanted}"
            )

    def __repr__(self) -> str:
        return (
            f"<ringlet.ShardedVariable '{self.name}' shape={self.shape} dtype={self.dtype}, {len(self._ends)} shards>"
        )


def _check(variables: Any) -> None:
    is_list = isinstance(variables, Sequence) and not isinstance(variables, str)
    if not is_list or not variables or not all(isinstance(variable, Variable) for variable in variables):
        raise TypeError(
            f"Argument `variables` should be a non-empty list of `variables.Variable`s. Received {variables}"
        )
    dtypes = [variable.dtype for variable in variables]
    if len(set(dtypes)) > 1:
        names = [dtype.name for dtype in dtypes]
        raise ValueError(f"All elements in argument `variables` must have the same dtype. Received dtypes: {names}")
    if not all(variable._spec.is_static for variable in variables):
        raise TypeError(
            "variables without a static shape cannot be shards. Received shapes: "
            f"{[variable._spec.shape for variable in variables]}"
        )
    shapes = [variable.shape for variable in variables]
    if not all(shapes):
        raise ValueError(f"0-d variables have no rows, so they cannot be shards. Received shapes: {shapes}")
    if len({shape[1:] for shape in shapes}) > 1:
        raise ValueError(
            "All elements in argument `variables` must have the same shapes except for the first axis. Received "
            f"shapes: {shapes}"
        )
