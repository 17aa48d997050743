"""progress: one progress bar for all processes and replicas, around any iterable."""

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

T = TypeVar("T")

_clock: Callable[[], float] = time.monotonic

# Minimum time between redraws of a bar.
_REDRAW_SECONDS = 0.1
# Interval at which a progress line is written to a file or pipe; the launcher sets it for its workers.
_VARIABLE = "RINGLET_PROGRESS_SECONDS"


def progress(
    iterable: Iterable[T],
    description: str = "",
    total: int | None = None,
    *,
    line_seconds: float | None = None,
    file: Any = None,
) -> Generator[T, None, None]:
    """Iterate, and show the progress on the chief.

    Parameters
    ----------
    iterable : iterable
        For example a range, a dataset, a distributed dataset, a DataLoader or a generator. Its elements are yielded
        unchanged.
    description : str
        Text before the bar.
    total : int, optional
        Number of elements; the default is the ``len`` or `cardinality` of the iterable.
    line_seconds : float, optional
        Interval of the lines that are written to a file or pipe; a last line follows at the end. The default is
        ``RINGLET_PROGRESS_SECONDS``, which ``ringlet run`` sets for its workers; with this default, shorter loops write
        nothing. If neither is set, nothing is written.
    file : file, optional
        The default is ``sys.stderr``.

    Returns
    -------
    generator
        Yields the elements. The bar ends when the generator is exhausted or closed.

    Raises
    ------
    ValueError
        If ``RINGLET_PROGRESS_SECONDS`` is used and is not a number.

    Notes
    -----
    The bar is drawn by the library rich if it is installed (``pip install 'ringlet[viz]'``), else as a line that is
    rewritten. With rich, each nested loop has its own bar; without rich, only the innermost loop is shown. Processes
    and replicas other than the chief only iterate, without overhead. The chief reads the clock once per element, and
    redraws at most ten times a second, between elements only: the time shown does not advance while an element is
    computed.

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
        lines = _configured_seconds() if line_seconds is None and not is_terminal else line_seconds
        pause = _REDRAW_SECONDS if is_terminal else None if lines is None else float(lines)
        if pause is not None:
            size = _size_of(iterable) if total is None else total
            style = Style.REDRAW if is_terminal else Style.LONG_LOOPS if line_seconds is None else Style.LINES
            return _shown(elements, lambda: open_bar(target, description, size, style), pause)
    return (element for element in elements)


def _configured_seconds() -> float | None:
    text = os.environ.get(_VARIABLE, "").strip()
    if not text:
        return None
    with suppress(ValueError):
        seconds = float(text)
        if 0 <= seconds < math.inf:
            return seconds
    raise ValueError(f"{_VARIABLE} must be a number of seconds, such as 30, or not set; got {text!r}")


def _shown(elements: Iterator[T], make_bar: Callable[[], Bar], pause: float) -> Generator[T, None, None]:
    started = _clock()
    bar, count, due = _SafeBar(make_bar), 0, started + pause
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


class _SafeBar:
    """A bar that is dropped if drawing fails: a closed terminal must not end the program."""

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
    """Return whether output is shown interactively, on a terminal or in a notebook."""
    return is_tty(target) or (target is sys.stderr and "ipykernel" in sys.modules)


def _size_of(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except (TypeError, NotImplementedError, AttributeError, ValueError):
        pass  # some types have a __len__ that raises an error
    size = getattr(iterable, "cardinality", None)
    try:
        number = int(size() if callable(size) else size)  # type: ignore[arg-type]
    except Exception:
        return None
    return number if number >= 0 else None
