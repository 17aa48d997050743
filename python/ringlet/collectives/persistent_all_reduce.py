"""Persistent all-reduces, whose arguments are checked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of, result_memory
from ringlet.collectives.buffers import Array, Output, as_buffer, as_ndarray, copy_if_partly_overlapping, is_view_of
from ringlet.collectives.collective_dtypes import as_result, check_pair, check_pairs
from ringlet.collectives.op import Algorithm, Op
from ringlet.errors import InvalidArgumentError


def make_plan(core: _core.Member, x: Any, op: Op, algorithm: Algorithm, out: Array | None) -> Callable[[], Array]:
    """Return a callable that all-reduces an array's current contents: the core's plan, or a :class:`StagedPlan`."""
    try:
        return core.plan_all_reduce(x, op.value, algorithm.value, out)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs((x,), op)
        raise
    return StagedPlan(core, x, op, algorithm, out)


class StagedPlan:
    """Plan for arrays that the core cannot use directly: each run copies them to or from its buffers if necessary."""

    __slots__ = ("_buffer", "_is_copy", "_output", "_run", "_source", "_x")

    def __init__(self, core: _core.Member, x: Any, op: Op, algorithm: Algorithm, out: Array | None) -> None:
        if isinstance(x, (list, tuple, bool, int, float, complex, np.generic)):
            raise InvalidArgumentError(
                f"x has type {type(x).__name__}, of which a plan would only see a copy: pass an array, such as "
                "np.array(x), and write new values into it."
            )
        self._x, self._source = x, as_ndarray(x)
        if not is_view_of(self._source, x):
            raise InvalidArgumentError(
                f"x is a {type(x).__name__} that exports new memory each time, so a plan cannot read its current "
                "values: pass an ndarray."
            )
        buffer = as_buffer(self._source)
        check_pair(buffer.dtype, op)
        self._output = None if out is None else Output(out, buffer.shape, as_result(buffer.dtype, op))
        direct = None if self._output is None else self._output.direct
        self._buffer = buffer if direct is None else copy_if_partly_overlapping(direct, buffer)
        self._is_copy = not np.may_share_memory(self._buffer, self._source)
        kind = kind_of(x)
        if out is None and kind is not None and kind.is_mutable:
            self._run = self._allocating_run(core, op, algorithm)
        else:
            self._run = core.plan_all_reduce(self._buffer, op.value, algorithm.value, direct)

    def __call__(self) -> Any:
        """Run the all-reduce and return its result."""
        if self._is_copy:
            self._buffer[...] = self._source
        result = self._run()
        return in_kind_of(self._x, result, is_own=True) if self._output is None else self._output.store()

    def _allocating_run(self, core: _core.Member, op: Op, algorithm: Algorithm) -> Callable[[], Array]:
        """Return a callable that allocates private memory for each result, for mutable arrays of other libraries."""
        buffer = self._buffer
        dtype = as_result(buffer.dtype, op)

        def run() -> Array:
            memory, _ = result_memory(buffer.shape, dtype)
            core.all_reduce([buffer], op.value, algorithm.value, [memory])
            return memory

        return run
