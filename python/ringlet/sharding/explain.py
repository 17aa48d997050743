"""Reports of what operations on sharded arrays do, and the hooks through which operations tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ringlet.sharding.report import Operation, Report, placed_in
from ringlet.sharding.resharding.collective_record import Collective

__all__ = ["explain", "note", "noted_as_one", "unnoted"]

T = TypeVar("T")


class _Watch:
    """The reports that are open and, inside an operation that is made of others, what was noted for it so far."""

    __slots__ = ("collectives", "is_gathered", "is_inside", "reports")

    def __init__(self, reports: tuple[Report, ...], is_inside: bool) -> None:
        self.reports = reports
        self.is_inside = is_inside
        self.collectives: list[Collective] = []
        self.is_gathered = False


# None where nobody listens: one look is then all that a note costs. Replicas run in copies of their caller's context.
_WATCH: ContextVar[_Watch | None] = ContextVar("ringlet_sharding_watch", default=None)


@contextmanager
def explain() -> Iterator[Report]:
    """Record what operations on sharded arrays do: how their arrays lie, what is sent, and how long that would take.

    Holds for the block, and for replicas that ``strategy.run`` starts in it. Blocks may be nested; each has all that
    happens in it. An array that is computed but not needed yet, such as a sum over devices, is sent where it is used:
    what it costs is noted then.

    Yields
    ------
    Report
        Grows while the block runs; ``print`` it, or show it in a notebook.

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
    token = _WATCH.set(_Watch(reports, is_inside=False))
    try:
        yield report
    finally:
        _WATCH.reset(token)


def note(
    name: str, operands: Any, result: Any, collectives: Sequence[Collective] = (), *, is_gathered: bool = False
) -> None:
    """Tell the reports that are open what an operation did; a part of another one is counted there.

    Parameters
    ----------
    name : str
    operands, result : array, or nested lists and tuples that hold some
        As they were before, and after.
    collectives : sequence of Collective
    is_gathered : bool
        Whether it has no tiled form.
    """
    watch = _WATCH.get()
    if watch is None:
        return
    if watch.is_inside:
        watch.collectives.extend(collectives)
        watch.is_gathered |= is_gathered
        return
    _record(watch, Operation(name, placed_in(operands), placed_in(result), tuple(collectives), is_gathered))


def noted_as_one(name: str, operands: Any, work: Callable[[], T]) -> T:
    """Call a function whose operations are parts of one in reports.

    Parameters
    ----------
    name : str
    operands : array, or nested lists and tuples that hold some
    work : callable
        Gives the result.

    Returns
    -------
    object
        What `work` gives.

    Examples
    --------
    >>> noted_as_one("ndim", (), lambda: 2)
    2
    """
    outer = _WATCH.get()
    if outer is None or outer.is_inside:
        return work()
    inside, before = _Watch(outer.reports, is_inside=True), placed_in(operands)  # `work` may change one of them
    token = _WATCH.set(inside)
    try:
        result = work()
    finally:
        _WATCH.reset(token)
    after = placed_in(result)
    # Questions such as np.shape are no operations.
    if inside.collectives or inside.is_gathered or any(array.layout is not None for array in after):
        _record(outer, Operation(name, before, after, tuple(inside.collectives), inside.is_gathered))
    return result


@contextmanager
def unnoted() -> Iterator[None]:
    """Keep from reports what happens in the block, because it is counted as something else.

    Examples
    --------
    >>> with explain() as report, unnoted():
    ...     note("sort", (), ())
    >>> report.operations
    []
    """
    token = _WATCH.set(None)
    try:
        yield
    finally:
        _WATCH.reset(token)


def _record(watch: _Watch, operation: Operation) -> None:
    for report in watch.reports:
        report.operations.append(operation)
