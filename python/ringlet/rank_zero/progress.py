"""progress: one bar for all processes and replicas, around anything that can be iterated."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from ringlet.rank_zero.process_role import is_chief
from ringlet.rank_zero.progress_backends import Bar, Style, is_tty, open_bar

__all__ = ["progress"]

T = TypeVar("T")

_clock: Callable[[], float] = time.monotonic

# A bar that is drawn more often is not seen to be.
_REDRAW_SECONDS = 0.1
# How often loops write a line where there is no terminal; the launcher sets it for its workers.
_VARIABLE = "RINGLET_PROGRESS_SECONDS"


def progress(
    iterable: Iterable[T],
    description: str = "",
    total: int | None = None,
    *,
    line_seconds: float | None = None,
    file: Any = None,
) -> Generator[T, None, None]:
    """Go through an iterable, and show on the chief how far that is.

    Parameters
    ----------
    iterable : iterable
        Anything: a range, a dataset, a distributed dataset, a DataLoader, a generator. Its elements are given as they
        are.
    description : str
        What stands before the bar.
    total : int, optional
        How many elements there are; what the iterable says by ``len`` or its `cardinality`, unless given.
    line_seconds : float, optional
        Where there is no terminal, a line is written every so many seconds, and at the end: for logs of long jobs.
        Unless given, ``RINGLET_PROGRESS_SECONDS`` counts, which ``ringlet run`` sets for its workers: loops that take
        longer than that write such lines. Without it nothing is written there.
    file : file, optional
        ``sys.stderr`` unless given.

    Returns
    -------
    generator
        Of the elements. Close it, or go through it, and the bar ends; a loop that is left does so, too.

    Raises
    ------
    ValueError
        If ``RINGLET_PROGRESS_SECONDS`` is needed, and is no number.

    Notes
    -----
    The bar is that of the library rich, where it is installed (``pip install 'ringlet[viz]'``); else a line that is
    written anew. Loops inside loops have a bar each with rich, and the innermost one a line without. Processes and
    replicas other than the chief only iterate: they pay nothing for it. The chief looks at the clock once for each
    element, and draws ten times a second at most. Nothing else is touched: if elements take long, the time that is
    shown stands still meanwhile.

    Examples
    --------
    >>> import sys, ringlet
    >>> for epoch in ringlet.progress(range(3), "epochs", line_seconds=60, file=sys.stdout):
    ...     pass
    epochs: 3/3, ... s
    >>> sum(ringlet.progress(x for x in [1.5, 2.5]))
    4.0
    """
    elements = iter(iterable)
    if is_chief():
        target = sys.stderr if file is None else file
        is_terminal = _is_terminal(target)
        pause = _REDRAW_SECONDS if is_terminal else _asked_seconds() if line_seconds is None else float(line_seconds)
        if pause is not None:
            size = _size_of(iterable) if total is None else total
            style = Style.ANEW if is_terminal else Style.LONG_LOOPS if line_seconds is None else Style.LINES
            return _shown(elements, lambda: open_bar(target, description, size, style), pause)
    return (element for element in elements)


def _asked_seconds() -> float | None:
    """How often the environment asks for a line; None for never."""
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    with suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds < math.inf:
            return seconds
    raise ValueError(f"{_VARIABLE} is a number of seconds, such as 30, or not set; got {text!r}")


def _shown(elements: Iterator[T], make_bar: Callable[[], Bar], pause: float) -> Generator[T, None, None]:
    started = _clock()
    bar, count, due = _Lenient(make_bar), 0, started + pause
    try:
        for element in elements:
            yield element
            count += 1
            now = _clock()
            if now >= due:
                bar.show(count, now - started)
                due = now + pause
    finally:
        bar.end(count, _clock() - started)


class _Lenient:
    """A bar that is given up when it cannot be drawn any more: a terminal that was closed ends no program."""

    def __init__(self, make_bar: Callable[[], Bar]) -> None:
        self._bar: Bar | None = None
        with suppress(OSError, ValueError):
            self._bar = make_bar()

    def show(self, count: int, seconds: float) -> None:
        if self._bar is not None:
            try:
                self._bar.show(count, seconds)
            except (OSError, ValueError):
                self.end(count, seconds)
                self._bar = None

    def end(self, count: int, seconds: float) -> None:
        if self._bar is not None:
            with suppress(OSError, ValueError):
                self._bar.end(count, seconds)


def _is_terminal(target: Any) -> bool:
    """Whether somebody looks on: a terminal, or a notebook."""
    return is_tty(target) or (target is sys.stderr and "ipykernel" in sys.modules)


def _size_of(iterable: Any) -> int | None:
    """How many elements an iterable says that it has; None if it does not tell."""
    try:
        return len(iterable)
    except (TypeError, NotImplementedError, AttributeError, ValueError):
        pass  # many say that they have a length, and raise when they are asked
    told = getattr(iterable, "cardinality", None)
    try:
        number = int(told() if callable(told) else told)  # type: ignore[arg-type]
    except Exception:
        return None
    return number if number >= 0 else None
