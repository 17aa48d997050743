"""Reports of operations on sharded arrays, and the hooks through which operations record them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, overload

from ringlet.sharding.memory_modes import planning
from ringlet.sharding.report import Operation, Report, array_records
from ringlet.sharding.resharding.collective_record import Collective

T = TypeVar("T")


class _Recorder:
    """The open reports and, inside a composite operation, the collectives recorded for it so far."""

    __slots__ = ("collectives", "is_gathered", "is_inside", "reports")

    def __init__(self, reports: tuple[Report, ...], is_inside: bool) -> None:
        self.reports = reports
        self.is_inside = is_inside
        self.collectives: list[Collective] = []
        self.is_gathered = False


# None if no report is open; recording then costs one lookup. Replicas run in copies of their caller's context.
_WATCH: ContextVar[_Recorder | None] = ContextVar("ringlet_sharding_watch", default=None)


@overload
def explain() -> AbstractContextManager[Report]: ...


@overload
def explain(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Report: ...


def explain(function: Callable[..., Any] | None = None, /, *args: Any, **kwargs: Any) -> Any:
    """Record operations on sharded arrays: shardings, collectives, bytes sent and predicted time.

    ``with explain() as report:`` applies to the block, and to replicas that ``strategy.run`` starts in it. Blocks may
    be nested; each records all operations in it. The reduction of a deferred result, such as a sum over devices, is
    recorded at its first use, as ``reduce`` unless it is part of another operation; the report counts results that are
    still unreduced when the block ends.

    ``explain(function, *args)`` plans the operations of a function before it runs, without computing or copying
    values: arrays may be larger than memory. In the function, the elements of sharded arrays are undefined (mostly
    zero), so exchanges that depend on them, such as the selection by a mask or the sort of one long line, are counted
    as for equal elements. The reduction of the result is included, as at its first use.

    Parameters
    ----------
    function : callable, optional
        Must not depend on the elements of sharded arrays, as a convergence test does.
    *args, **kwargs
        Arguments for `function`. Sharded arrays in them, at any depth of lists, tuples and dictionaries, are only
        described to `function`, and not changed; they must be on devices of one process.

    Returns
    -------
    Report, or context manager that yields it
        The report grows while the block runs; ``print`` it, or display it in a notebook.

    Raises
    ------
    ShardingError
        If an array for `function` is on devices of several processes.
    TypeError
        If `function` is not callable.

    Examples
    --------
    >>> import numpy as np
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.ones((4, 4)), Sharding.tiled((2, 1)))
    >>> with explain() as report:
    ...     y = np.exp(x)
    >>> print(report)
    exp: float64[4,4] {devices=[2,1]<=[2]} -> float64[4,4] {devices=[2,1]<=[2]}
    1 operation, nothing sent

    The number of bytes that a sum of 10**12 elements would send:

    >>> large = shard(np.broadcast_to(1.0, (10**6, 10**6)), Sharding.tiled((2, 1)))
    >>> print(explain(lambda x: x.sum(axis=0), large).nbytes)
    16000000
    """
    if function is None:
        return _recording()
    if not callable(function):
        raise TypeError(
            f"explain requires a function and its arguments, got an object of type {type(function).__name__}: write "
            "explain(np.matmul, a, b) instead of explain(np.matmul(a, b)), or with explain() as report: c = a @ b"
        )
    return _planned(function, args, kwargs)


def _planned(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Report:
    from ringlet.sharding.resharding.reshard import described, materialized
    from ringlet.sharding.sharded_array import ShardedArray

    with planning(), _recording() as report:
        result = function(*described(args), **described(kwargs))
        for each in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(each, ShardedArray):
                materialized(each)
    if not report.operations and not _has_sharded((args, kwargs)):
        report._note = " (no argument is a sharded array)"
    return report


def _has_sharded(value: Any) -> bool:
    if isinstance(value, (list, tuple, dict)):
        return any(map(_has_sharded, value.values() if isinstance(value, dict) else value))
    return hasattr(value, "_layout")


@contextmanager
def _recording() -> Iterator[Report]:
    report, outer = Report(), _WATCH.get()
    reports = (report,) if outer is None else (*outer.reports, report)
    token = _WATCH.set(_Recorder(reports, is_inside=False))
    try:
        yield report
    finally:
        _WATCH.reset(token)
    if report._partial:
        from ringlet.sharding.resharding.reshard import reductions_due

        report.unreduced.extend(reductions_due([array for known in report._partial if (array := known()) is not None]))
        report._partial.clear()


def is_recording() -> bool:
    """Return whether a report is open."""
    return _WATCH.get() is not None


def record_operation(
    name: str, operands: Any, result: Any, collectives: Sequence[Collective] = (), *, is_gathered: bool = False
) -> None:
    """Record an operation in the open reports, or as part of the enclosing composite operation.

    `is_gathered` states that the operation gathers an array.
    """
    watch = _WATCH.get()
    if watch is None:
        return
    if watch.is_inside:
        watch.collectives.extend(collectives)
        watch.is_gathered |= is_gathered
        return
    operation = Operation(name, array_records(operands), array_records(result), tuple(collectives), is_gathered)
    _record(watch, operation, result)


def recorded_as_one(name: str, operands: Any, work: Callable[[], T]) -> T:
    """Call a function and record its operations as a single operation."""
    outer = _WATCH.get()
    if outer is None or outer.is_inside:
        return work()
    # Operands are described first, because `work` may change them.
    inside, before = _Recorder(outer.reports, is_inside=True), array_records(operands)
    token = _WATCH.set(inside)
    try:
        result = work()
    finally:
        _WATCH.reset(token)
    after = array_records(result)
    # Queries such as np.shape are not operations.
    if inside.collectives or inside.is_gathered or any(array.layout is not None for array in after):
        _record(outer, Operation(name, before, after, tuple(inside.collectives), inside.is_gathered), result)
    return result


@contextmanager
def recording_suspended() -> Iterator[None]:
    """Suspend recording in the block."""
    token = _WATCH.set(None)
    try:
        yield
    finally:
        _WATCH.reset(token)


def _record(watch: _Recorder, operation: Operation, result: Any) -> None:
    arrays = result if isinstance(result, (list, tuple)) else (result,)
    partial = [weakref.ref(x) for x in arrays if (layout := getattr(x, "_layout", None)) and layout.is_partial]
    for report in watch.reports:
        report.operations.append(operation)
        report._partial.extend(partial)
