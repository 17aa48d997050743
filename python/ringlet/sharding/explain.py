"""Reports of operations on sharded arrays, and the hooks through which operations record them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

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


# None if no report is open, so that recording then costs one lookup. Replicas run in copies of their caller's context.
_WATCH: ContextVar[_Recorder | None] = ContextVar("ringlet_sharding_watch", default=None)


@contextmanager
def explain() -> Iterator[Report]:
    """Record operations on sharded arrays: shardings, collectives, bytes sent and predicted time.

    Applies to the block, and to replicas that ``strategy.run`` starts in it. Blocks may be nested; each records all
    operations in it. The cost of a deferred result, such as a sum over devices, is recorded at its first use.

    Yields
    ------
    Report
        Grows while the block runs; ``print`` it, or display it in a notebook.

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
    """
    report, outer = Report(), _WATCH.get()
    reports = (report,) if outer is None else (*outer.reports, report)
    token = _WATCH.set(_Recorder(reports, is_inside=False))
    try:
        yield report
    finally:
        _WATCH.reset(token)


def is_recording() -> bool:
    """Return whether a report is open."""
    return _WATCH.get() is not None


def record_operation(
    name: str, operands: Any, result: Any, collectives: Sequence[Collective] = (), *, is_gathered: bool = False
) -> None:
    """Record an operation in the open reports, or as part of the enclosing composite operation.

    `is_gathered` states that the operation has no tiled form.
    """
    watch = _WATCH.get()
    if watch is None:
        return
    if watch.is_inside:
        watch.collectives.extend(collectives)
        watch.is_gathered |= is_gathered
        return
    _record(watch, Operation(name, array_records(operands), array_records(result), tuple(collectives), is_gathered))


def recorded_as_one(name: str, operands: Any, work: Callable[[], T]) -> T:
    """Call a function and record its operations as one."""
    outer = _WATCH.get()
    if outer is None or outer.is_inside:
        return work()
    inside, before = _Recorder(outer.reports, is_inside=True), array_records(operands)  # `work` may change operands
    token = _WATCH.set(inside)
    try:
        result = work()
    finally:
        _WATCH.reset(token)
    after = array_records(result)
    # Queries such as np.shape are not operations.
    if inside.collectives or inside.is_gathered or any(array.layout is not None for array in after):
        _record(outer, Operation(name, before, after, tuple(inside.collectives), inside.is_gathered))
    return result


@contextmanager
def recording_suspended() -> Iterator[None]:
    """Suspend recording in the block; its work is counted elsewhere."""
    token = _WATCH.set(None)
    try:
        yield
    finally:
        _WATCH.reset(token)


def _record(watch: _Recorder, operation: Operation) -> None:
    for report in watch.reports:
        report.operations.append(operation)
