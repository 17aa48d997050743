"""TableServer: creates and owns the tables of variables on a parameter server."""

from __future__ import annotations

import math
import os
from typing import Any

from ringlet import _core
from ringlet.collectives.available_memory import check_available_memory
from ringlet.collectives.collective_dtypes import is_known
from ringlet.ipc.remote_exception import failure_of
from ringlet.values.value_conversion import as_dtype

# Minimum size for which the available memory is checked; smaller allocations cost less than the check.
_CHECKED_BYTES = 1 << 22


class TableServer:
    """The tables of one parameter server.

    Requests and replies are tuples that begin with their type::

        ("create", key, shape, name of the dtype)     ("created", key), with a descriptor
        ("forget", keys)                              ("forgotten", number of tables left)
        (method of a table, key, *arguments)          ("done", result), for processes of other hosts
        any request, on failure                       ("failed", Failure)
    """

    def __init__(self) -> None:
        self._tables: dict[int, _core.Table] = {}

    def keys(self) -> set[int]:
        """Return the keys of all tables."""
        return set(self._tables)

    def answer(self, request: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
        """Return the reply to a request, and the file descriptors to send with it, which the caller closes."""
        kind, *arguments = request
        try:
            if kind == "create":
                return self._create(*arguments)
            if kind == "forget":
                for key in arguments[0]:
                    self._tables.pop(key, None)
                return ("forgotten", len(self._tables)), []
            if kind in ("read", "gather", "update", "scatter"):
                key, *arguments = arguments
                return ("done", getattr(self._tables[key], kind)(*arguments)), []
            raise ValueError(f"unknown request {kind!r}: expected 'create', 'forget' or a method of a table")
        except Exception as error:
            return ("failed", failure_of(error)), []

    def _create(self, key: int, shape: tuple[int, ...], dtype_name: str) -> tuple[tuple[Any, ...], list[int]]:
        dtype = as_dtype(dtype_name)
        is_known(dtype)  # registers the dtype with the core
        num_bytes = math.prod(shape) * dtype.itemsize
        if num_bytes >= _CHECKED_BYTES:
            check_available_memory(num_bytes, f"a variable of shape {shape}")
        descriptor = _core.Table.create(shape, dtype)
        try:
            self._tables[key] = _core.Table(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return ("created", key), [descriptor]
