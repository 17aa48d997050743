"""TableVariable: a variable on a parameter server, which all processes of its cluster share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray

from ringlet import _core
from ringlet.values.variables.row_lookup import RowReader
from ringlet.values.variables.storage import Change
from ringlet.values.variables.table_storage import TableForm, TableStorage
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import VariableSpec

__all__ = ["TableVariable", "attach_table", "find_table_variable", "forget_tables", "reduce_table_variable"]

Array = NDArray[Any]


class TableVariable(RowReader, Variable):
    """A variable in memory that the processes of a cluster share; made by ParameterServerStrategy.

    Any process reads and writes it without asking another. A read gives an array that never changes; each row of it is
    as some write left it, but other rows may be newer or older. Writes to the same row come one after the other.

    Examples
    --------
    >>> issubclass(TableVariable, Variable)
    True
    """

    # Does as much of what a Storage does as is asked for here.
    _storage: TableStorage  # type: ignore[assignment]

    @classmethod
    def _on(cls, spec: VariableSpec, storage: TableStorage, device: str, strategy: Any) -> TableVariable:
        return cls._of(spec, storage, 0, device, strategy)  # type: ignore[arg-type]  # see above

    @property
    def table_key(self) -> int:
        """Which of all tables its value is in."""
        return self._storage.key

    def fileno(self) -> int:
        """Give an open file of the table, for other processes; it belongs to the variable."""
        return self._storage.fileno()

    def _read_rows(self, begin: int, end: int) -> Any:
        return self._storage.read_rows(begin, end)

    def _copy_rows(self, begin: int, end: int, out: Array) -> None:
        self._storage.copy_rows(begin, end, out)

    def _gather(self, indices: Array) -> Any:
        return self._storage.gather(indices)

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        self._storage.write(change, self._checked(value))
        return self if read_value else None

    def __deepcopy__(self, memo: dict[int, Any]) -> TableVariable:
        strategy = self.distribute_strategy
        if strategy is None:
            raise TypeError(f"cannot copy variable '{self.name}', which no strategy made: make another of its value")
        twin: TableVariable = strategy.extended._copy_of(self)
        memo[id(self)] = twin
        return twin


# --- in the processes of a cluster ------------------------------------------------------------------------------------


class _Attached:
    """A table that was handed to this process, and the variable on it once that was asked for."""

    def __init__(self, descriptor: int) -> None:
        self.table = _core.Table(descriptor)
        self.variable: TableVariable | None = None
        self.count = 1


_attached: dict[int, _Attached] = {}
_lock = threading.Lock()


def attach_table(key: int, descriptor: int) -> None:
    """Make a table known in this process, under its key.

    Parameters
    ----------
    key : int
    descriptor : int
        The caller's own, who may close it.
    """
    with _lock:
        if key in _attached:  # of several tasks that are threads of one process
            _attached[key].count += 1
        else:
            _attached[key] = _Attached(descriptor)


def forget_tables(keys: Iterable[int]) -> None:
    """Undo one :func:`attach_table` of each; variables that somebody holds stay usable.

    Parameters
    ----------
    keys : iterable of int
        Those that are not known are left out.
    """
    with _lock:
        for key in keys:
            attached = _attached.get(key)
            if attached is not None:
                attached.count -= 1
                if not attached.count:
                    del _attached[key]


def reduce_table_variable(variable: TableVariable) -> tuple[Callable[..., TableVariable], tuple[Any, ...]]:
    """Give what makes of a variable the same one in another process of the cluster, where its table is attached.

    Parameters
    ----------
    variable : TableVariable

    Returns
    -------
    tuple
        A function and its arguments, as ``__reduce__`` gives them.
    """
    strategy = None if variable._strategy is None else variable._strategy()
    storage = variable._storage
    shape, device = variable.shape, variable._device
    return find_table_variable, (storage.key, variable._spec, shape, device, storage.array_type, strategy)


def find_table_variable(  # noqa: PLR0917  # what a pickle holds
    key: int, spec: VariableSpec, shape: tuple[int, ...], device: str, array_type: type[Array], strategy: Any
) -> TableVariable:
    """Give the variable on a table that is attached, the same object for every call."""
    with _lock:
        attached = _attached[key]
        if attached.variable is None:
            storage = TableStorage(key, attached.table, TableForm(shape, spec.dtype), array_type)
            attached.variable = TableVariable._on(spec, storage, device, strategy)
        return attached.variable
