"""How a bar is drawn: by the library rich, by a line that is written anew, or by a line now and then."""

from __future__ import annotations

import atexit
import enum
import shutil
import sys
import threading
from contextlib import suppress
from typing import Any, Protocol

__all__ = ["Bar", "Style", "is_tty", "make_room", "open_bar", "text_of"]


class Style(enum.Enum):
    """What may be written: over what is there; whole lines, also of a short loop; those of long loops only."""

    ANEW = enum.auto()
    LINES = enum.auto()
    LONG_LOOPS = enum.auto()


class Bar(Protocol):
    """What shows how far a loop is."""

    def show(self, count: int, seconds: float) -> None:
        """Show how many elements are done, after how many seconds."""

    def end(self, count: int, seconds: float) -> None:
        """Show it for the last time."""


def open_bar(target: Any, description: str, total: int | None, style: Style) -> Bar:
    """Give what draws on a file, the best that there is.

    Parameters
    ----------
    target : file
    description : str
    total : int or None
        Number of elements, where it is known.
    style : Style

    Examples
    --------
    >>> import sys
    >>> open_bar(sys.stdout, "steps", 200, Style.LINES).show(50, 2.0)
    steps: 50/200 (25 %), 25.0/s, 6 s left
    """
    if style is not Style.ANEW:
        return _LogBar(target, description, total, style is Style.LINES)
    try:
        return _RichBar(target, description, total)
    except ImportError:
        return _LineBar(target, description, total)


def make_room() -> None:
    """Clear the line that a bar has, for a line of the program; rich sees to that by itself.

    Examples
    --------
    >>> make_room()
    """
    with _LineBar._lock:
        if _LineBar._open:
            with suppress(OSError, ValueError):
                _LineBar._open[-1]._draw("")


def is_tty(file: Any) -> bool:
    """Tell whether a file is a terminal.

    Examples
    --------
    >>> is_tty(None)
    False
    """
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # it is no file, or it was closed
        return False


def text_of(description: str, total: int | None, count: int, seconds: float) -> str:
    """Write how far a loop is.

    Examples
    --------
    >>> text_of("steps", None, 50, 200.0)
    'steps: 50, 0.25/s'
    """
    text = f"{description}: " if description else ""
    text += str(count) if total is None else f"{count}/{total}"
    if total and count < total:
        text += f" ({count * 100 // total} %)"
    rate = count / seconds if seconds > 0 else 0.0
    if rate > 0:
        text += f", {rate:.1f}/s" if rate >= 1 else f", {rate:.3g}/s"
        if total is not None and total > count:
            text += f", {_span((total - count) / rate)} left"
    return text


def _span(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


class _LogBar:
    """A line now and then, for files and pipes."""

    def __init__(self, target: Any, description: str, total: int | None, has_end: bool) -> None:
        self._target, self._description, self._total = target, description, total
        self._has_end = has_end

    def show(self, count: int, seconds: float) -> None:
        self._has_end = True
        if count != self._total:  # what comes next is the end
            self._write(text_of(self._description, self._total, count, seconds))

    def end(self, count: int, seconds: float) -> None:
        if self._has_end:
            done = f"{count}" if self._total is None else f"{count}/{self._total}"
            lead = f"{self._description}: " if self._description else ""
            self._write(f"{lead}{done}, {f'{seconds:.1f} s' if seconds < 100 else _span(seconds)}")

    def _write(self, text: str) -> None:
        self._target.write(text + "\n")
        self._target.flush()


class _LineBar:
    """One line of a terminal, written anew; of loops inside loops the innermost one has it."""

    _open: list[_LineBar] = []  # noqa: RUF012  # of the program, whoever opened them
    _lock = threading.Lock()

    def __init__(self, target: Any, description: str, total: int | None) -> None:
        self._target, self._description, self._total = target, description, total
        with self._lock:
            self._draw(text_of(description, total, 0, 0.0))
            self._open.append(self)

    def show(self, count: int, seconds: float) -> None:
        with self._lock:
            if self._open[-1] is self:
                self._draw(text_of(self._description, self._total, count, seconds))

    def end(self, count: int, seconds: float) -> None:
        with self._lock:
            is_inner = self._open[-1] is self and len(self._open) > 1
            self._open.remove(self)
            if is_inner:
                self._draw("")  # the loop around it goes on in this line
            else:
                self._draw(text_of(self._description, self._total, count, seconds) + "\n")

    def _draw(self, text: str) -> None:
        width = shutil.get_terminal_size().columns - 1
        clear = "\x1b[2K"  # what the line showed before, whatever its length
        self._target.write(f"\r{clear}{text[:width] if not text.endswith(chr(10)) else text}")
        self._target.flush()


class _RichBar:
    """A bar of rich; all that are open stand below each other in one display."""

    _displays: dict[int, tuple[Any, list[_RichBar]]] = {}  # noqa: RUF012  # of the program, by file
    _lock = threading.RLock()

    def __init__(self, target: Any, description: str, total: int | None) -> None:
        with self._lock:
            self._key = id(target)
            if self._key not in self._displays:
                display = _new_display(target)
                display.start()
                self._displays[self._key] = (display, [])
            self._display, self._others = self._displays[self._key]
            self._others.append(self)
            self._task = self._display.add_task(description, total=total)
            self._display.refresh()

    def show(self, count: int, seconds: float) -> None:
        with self._lock:
            self._display.update(self._task, completed=count, refresh=True)

    def end(self, count: int, seconds: float) -> None:
        with self._lock:
            self._display.update(self._task, completed=count, refresh=True)
            self._others.remove(self)
            if self._others:
                self._display.remove_task(self._task)  # the loops around it go on
            else:
                self._displays.pop(self._key, None)
                self._display.stop()


def _new_display(target: Any) -> Any:
    from rich import progress as rich_progress  # of an extra, and slow to load
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    # A notebook is known by a console that was given no file.
    console = Console(stderr=True) if target is sys.stderr else Console(file=target)
    # What the program prints meanwhile is drawn above the bar, on the terminal: never what goes to a file. No thread of
    # its own: it would take the interpreter from the replicas.
    return rich_progress.Progress(
        *columns,
        console=console,
        auto_refresh=False,
        redirect_stdout=is_tty(sys.stdout),
        redirect_stderr=is_tty(sys.stderr),
    )


@atexit.register
def _stop_all() -> None:
    """Give the cursor back: a loop that an exception has left is kept by that until the program ends."""
    for display, _ in _RichBar._displays.values():
        with suppress(OSError, ValueError):  # of a file that was closed
            display.stop()
