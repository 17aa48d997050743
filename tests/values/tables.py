"""Variables on tables of this process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.values.variables.sharded_variable import ShardedVariable
from ringlet.values.variables.table_storage import TableForm, TableStorage, new_table_key
from ringlet.values.variables.table_variable import TableVariable
from ringlet.values.variables.variable_factory import create_on_table
from ringlet.values.variables.variable_spec import VariableRequest

DEVICE = "/job:ps/replica:0/task:0/device:CPU:0"


def new_storage(form: TableForm, array_type: type[Any] = np.ndarray) -> TableStorage:
    descriptor = _core.Table.create(*form.stored)
    try:
        return TableStorage(new_table_key(), _core.Table(descriptor), form, array_type)
    finally:
        os.close(descriptor)


def on_table(value: Any, **options: Any) -> TableVariable:
    """Return a variable with this initial value."""
    return create_on_table(None, VariableRequest(value, **options), DEVICE, new_storage)


def sharded(value: Any, sizes: list[int]) -> ShardedVariable:
    """Return a sharded variable with these numbers of rows per shard."""
    return ShardedVariable([on_table(part) for part in np.split(np.asarray(value), np.cumsum(sizes)[:-1])])


def open_files() -> int:
    """Return the number of open files of this process."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())
