"""TableVariable: a variable on a parameter server, shared by all processes of a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from numpy.typing import NDArray

from ringlet import _core
from ringlet.cancellation import check_cancelled
from ringlet.values.variables.row_lookup import RowReader
from ringlet.values.variables.storage import Change
from ringlet.values.variables.table_storage import TableForm, TableStorage
from ringlet.values.variables.variable import Variable
from ringlet.values.variables.variable_spec import VariableSpec

Array = NDArray[Any]


class TableVariable(RowReader, Variable):
    """A variable shared by the processes of a cluster; created by ParameterServerStrategy.

    Processes on one machine access the variable directly, other processes through its parameter server. A read returns
    a copy in which each row is consistent, but rows may differ in age. Writes to the same row are serialized.
    """

    # TableStorage implements the part of Storage's interface that variables of this class use.
    _storage: TableStorage  # type: ignore[assignment]

    @classmethod
    def _on(cls, spec: VariableSpec, storage: TableStorage, device: str, strategy: Any) -> TableVariable:
        return cls._of(spec, storage, 0, device, strategy)  # type: ignore[arg-type]  # see above

    @property
    def table_key(self) -> int:
        """Key of the table."""
        return self._storage.key

    @property
    def server_index(self) -> int | None:
        """Index of the parameter server whose process accesses the table; None if this process has mapped it."""
        return self._storage.server_index

    def fileno(self) -> int:
        """Return the file descriptor of a mapped table, to pass to other processes; owned by the variable."""
        return self._storage.fileno()

    def _as_operand(self) -> Any:
        check_cancelled()
        return super()._as_operand()

    def _read_rows(self, begin: int, end: int) -> Any:
        check_cancelled()
        return self._storage.read_rows(begin, end)

    def _copy_rows(self, begin: int, end: int, out: Array) -> None:
        check_cancelled()
        self._storage.copy_rows(begin, end, out)

    def _gather(self, indices: Array) -> Any:
        check_cancelled()
        return self._storage.gather(indices)

    def _update(self, change: Change, value: Any, read_value: bool) -> Any:
        check_cancelled()
        self._storage.write(change, self._checked(value))
        return self if read_value else None

    def __deepcopy__(self, memo: dict[int, Any]) -> TableVariable:
        strategy = self.distribute_strategy
        if strategy is None:
            raise TypeError(
                f"cannot copy variable '{self.name}', which has no strategy: create a new variable with its value"
            )
        twin: TableVariable = strategy.extended._copy_of(self)
        memo[id(self)] = twin
        return twin


# --- in the processes of a cluster ------------------------------------------------------------------------------------


class _AttachedTable:
    """A table registered by `attach_table`, and its variable, which `find_table_variable` creates."""

    def __init__(self, table: Any) -> None:
        self.table = _core.Table(table) if isinstance(table, int) else table
        self.variable: TableVariable | None = None
        self.count = 1


_attached: dict[int, _AttachedTable] = {}
_lock = threading.Lock()


def attach_table(key: int, table: Any) -> None:
    """Register a table under `key`, or count one more registration; map a file descriptor without taking ownership."""
    with _lock:
        if key in _attached:  # several tasks may be threads of one process
            _attached[key].count += 1
        else:
            _attached[key] = _AttachedTable(table)


def forget_tables(keys: Iterable[int]) -> None:
    """Undo one :func:`attach_table` for each key; unknown keys are ignored, and existing variables stay usable."""
    with _lock:
        for key in keys:
            attached = _attached.get(key)
            if attached is not None:
                attached.count -= 1
                if not attached.count:
                    del _attached[key]


def reduce_table_variable(variable: TableVariable) -> tuple[Callable[..., TableVariable], tuple[Any, ...]]:
    """Return the ``__reduce__`` value of a variable, for processes in which its table is attached."""
    strategy = None if variable._strategy is None else variable._strategy()
    storage = variable._storage
    shape, device = variable.shape, variable._device
    return find_table_variable, (storage.key, variable._spec, shape, device, storage.array_type, strategy)


def find_table_variable(  # noqa: PLR0917  # the arguments stored in a pickle
    key: int, spec: VariableSpec, shape: tuple[int, ...], device: str, array_type: type[Array], strategy: Any
) -> TableVariable:
    """Return the variable of an attached table; the same object for every call."""
    with _lock:
        attached = _attached[key]
        if attached.variable is None:
            storage = TableStorage(key, attached.table, TableForm(shape, spec.dtype), array_type)
            attached.variable = TableVariable._on(spec, storage, device, strategy)
        return attached.variable
