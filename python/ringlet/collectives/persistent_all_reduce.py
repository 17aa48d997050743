"""All-reduces whose arguments are looked at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import in_kind_of, kind_of, result_memory
from ringlet.collectives.buffers import Array, Output, apart_from, as_buffer, as_ndarray, is_view_of
from ringlet.collectives.collective_dtypes import as_result, check_pair, check_pairs
from ringlet.collectives.op import Algorithm, Op
from ringlet.errors import InvalidArgumentError

__all__ = ["StagedPlan", "make_plan"]


def make_plan(core: _core.Member, x: Any, op: Op, algorithm: Algorithm, out: Array | None) -> Callable[[], Array]:
    """Give what runs an all-reduce of an array's content.

    Parameters
    ----------
    core : _core.Member
        The rank that runs it.
    x, op, algorithm, out
        As for :meth:`~ringlet.collectives.Member.plan_all_reduce`.

    Returns
    -------
    callable
        The core's own where it can use the arrays as they are, else a :class:`StagedPlan`.

    Raises
    ------
    InvalidArgumentError
        If `x` is no array, the operation does not take the dtype, or `out` does not fit.

    Examples
    --------
    >>> core = _core.Group(1, 1.0, 0).member(0)
    >>> make_plan(core, np.ones(4)[::2], Op.SUM, Algorithm.AUTO, None)()
    array([1., 1.])
    """
    try:
        return core.plan_all_reduce(x, op.value, algorithm.value, out)
    except _core.Unusable:
        pass
    except InvalidArgumentError:
        check_pairs((x,), op)
        raise
    return StagedPlan(core, x, op, algorithm, out)


class StagedPlan:
    """A plan for arrays that the core cannot use as they are: each run copies them to, or from, some that it can.

    Parameters
    ----------
    core, x, op, algorithm, out
        As for :func:`make_plan`.

    Examples
    --------
    >>> core = _core.Group(1, 1.0, 0).member(0)
    >>> out = np.zeros(2, ">f8")
    >>> StagedPlan(core, np.ones(4)[::2], Op.SUM, Algorithm.AUTO, out)() is out
    True
    """

    __slots__ = ("_buffer", "_is_copy", "_output", "_run", "_source", "_x")

    def __init__(self, core: _core.Member, x: Any, op: Op, algorithm: Algorithm, out: Array | None) -> None:
        if isinstance(x, (list, tuple, bool, int, float, complex, np.generic)):
            raise InvalidArgumentError(
                f"x is a {type(x).__name__}, whose values a plan cannot follow: give an array, such as np.array(x)."
            )
        self._x, self._source = x, as_ndarray(x)
        if not is_view_of(self._source, x):
            raise InvalidArgumentError(
                f"x is a {type(x).__name__} that gives other memory each time, so that a plan could not follow its "
                "values: give an array."
            )
        buffer = as_buffer(self._source)
        check_pair(buffer.dtype, op)
        self._output = None if out is None else Output(out, buffer.shape, as_result(buffer.dtype, op))
        direct = None if self._output is None else self._output.direct
        self._buffer = buffer if direct is None else apart_from(direct, buffer)
        self._is_copy = not np.may_share_memory(self._buffer, self._source)
        kind = kind_of(x)
        if out is None and kind is not None and kind.is_mutable:
            self._run = self._runs_to_own(core, op, algorithm)
        else:
            self._run = core.plan_all_reduce(self._buffer, op.value, algorithm.value, direct)

    def __call__(self) -> Any:
        """Run it."""
        if self._is_copy:
            self._buffer[...] = self._source
        result = self._run()
        return in_kind_of(self._x, result, is_own=True) if self._output is None else self._output.store()

    def _runs_to_own(self, core: _core.Member, op: Op, algorithm: Algorithm) -> Callable[[], Array]:
        """What runs with memory of this rank's own for each result, as arrays that may be written to need."""
        buffer = self._buffer
        dtype = as_result(buffer.dtype, op)

        def run() -> Array:
            memory, _ = result_memory(buffer.shape, dtype)
            core.all_reduce([buffer], op.value, algorithm.value, [memory])
            return memory

        return run
