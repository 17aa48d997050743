"""What a parameter server does for variables: it makes the tables that they are in, and keeps them."""

from __future__ import annotations

import math
import os
from typing import Any

from ringlet import _core
from ringlet.collectives.available_memory import refuse_more_than_is_left
from ringlet.collectives.collective_dtypes import is_known
from ringlet.ipc.remote_exception import failure_of
from ringlet.values.value_conversion import as_dtype

__all__ = ["TableServer"]

# Smaller tables are made without a look at what is left, which would cost more than they do.
_CHECKED_BYTES = 1 << 22


class TableServer:
    """The tables of one parameter server.

    Requests and replies are tuples, of which the first item says what they are::

        ("create", key, shape, name of the dtype)     ("created", key), with a descriptor
        ("forget", keys)                              ("forgotten", how many tables are left)
        anything that raises                          ("failed", Failure)

    Examples
    --------
    >>> import os
    >>> server = TableServer()
    >>> reply, descriptors = server.answer(("create", 7, (3, 2), "float32"))
    >>> _core.Table(descriptors[0]).shape
    (3, 2)
    >>> os.close(descriptors[0])
    >>> server.answer(("forget", [7]))
    (('forgotten', 0), [])
    """

    def __init__(self) -> None:
        self._tables: dict[int, _core.Table] = {}

    def keys(self) -> set[int]:
        """Give the keys of all tables that there are."""
        return set(self._tables)

    def answer(self, request: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
        """Do what is asked for.

        Parameters
        ----------
        request : tuple

        Returns
        -------
        reply : tuple
        descriptors : list of int
            Open files to send with it; the caller closes them.
        """
        kind, *arguments = request
        try:
            if kind == "create":
                return self._create(*arguments)
            if kind == "forget":
                for key in arguments[0]:
                    self._tables.pop(key, None)
                return ("forgotten", len(self._tables)), []
            raise ValueError(f"a parameter server is asked to create or forget tables, not to {kind!r}")
        except Exception as error:
            return ("failed", failure_of(error)), []

    def _create(self, key: int, shape: tuple[int, ...], dtype_name: str) -> tuple[tuple[Any, ...], list[int]]:
        dtype = as_dtype(dtype_name)
        is_known(dtype)  # introduces it to the core
        num_bytes = math.prod(shape) * dtype.itemsize
        if num_bytes >= _CHECKED_BYTES:
            refuse_more_than_is_left(num_bytes, f"a variable of shape {shape}")
        descriptor = _core.Table.create(shape, dtype)
        try:
            self._tables[key] = _core.Table(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return ("created", key), [descriptor]
