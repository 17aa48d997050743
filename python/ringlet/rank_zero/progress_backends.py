"""Drawing of progress bars: by the library rich, as a line that is redrawn, or as lines of a log."""

from __future__ import annotations

import atexit
import enum
import sys
import threading
from contextlib import suppress
from importlib.util import find_spec
from typing import Any, TypeAlias


class Style(enum.Enum):
    """The output of progress: redrawn in place, as lines, or as lines for long loops only."""

    REDRAW = enum.auto()
    LINES = enum.auto()
    LONG_LOOPS = enum.auto()


# `show` and `end` take the number of finished elements and the elapsed seconds.
Bar: TypeAlias = "_LogBar | _LineBar | _RichBar"


def open_bar(target: Any, description: str, total: int | None, style: Style) -> Bar:
    """Return the best available bar for a file; `total` is None if the number of elements is unknown."""
    if style is not Style.REDRAW:
        return _LogBar(target, description, total, style is Style.LINES)
    if "ipykernel" in sys.modules and not find_spec("ipywidgets"):  # in notebooks, rich requires ipywidgets
        return _LineBar(target, description, total)
    try:
        return _RichBar(target, description, total)
    except ImportError:
        return _LineBar(target, description, total)


def clear_bar_line() -> None:
    """Clear the line of the innermost open bar, if any; rich clears its bars without this call."""
    with _LineBar._lock:
        if _LineBar._open:
            with suppress(OSError, ValueError):
                _LineBar._open[-1]._draw("")


def is_tty(file: Any) -> bool:
    """Return whether a file is a terminal."""
    try:
        return bool(file.isatty())
    except (AttributeError, ValueError):  # the object is not a file, or is closed
        return False


def progress_text(description: str, total: int | None, count: int, seconds: float) -> str:
    """Return the text of a bar."""
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
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


class _LogBar:
    """Progress as lines of text, for files and pipes."""

    def __init__(self, target: Any, description: str, total: int | None, has_end: bool) -> None:
        self._target, self._description, self._total = target, description, total
        self._has_end = has_end

    def show(self, count: int, seconds: float) -> None:
        self._has_end = True
        if count != self._total:  # `end` follows the last element immediately
            self._write(progress_text(self._description, self._total, count, seconds))

    def end(self, count: int, seconds: float) -> None:
        if self._has_end:
            done = f"{count}" if self._total is None else f"{count}/{self._total}"
            lead = f"{self._description}: " if self._description else ""
            self._write(f"{lead}{done}, {f'{seconds:.1f} s' if seconds < 100 else _span(seconds)}")

    def _write(self, text: str) -> None:
        self._target.write(text + "\n")
        self._target.flush()


class _LineBar:
    """A line of a terminal that is redrawn, and shows the innermost of nested loops."""

    _open: list[_LineBar] = []  # noqa: RUF012  # all open bars of the program
    _lock = threading.Lock()

    def __init__(self, target: Any, description: str, total: int | None) -> None:
        self._target, self._description, self._total = target, description, total
        with self._lock:
            self._draw(progress_text(description, total, 0, 0.0))
            self._open.append(self)

    def show(self, count: int, seconds: float) -> None:
        with self._lock:
            if self._open[-1] is self:
                self._draw(progress_text(self._description, self._total, count, seconds))

    def end(self, count: int, seconds: float) -> None:
        with self._lock:
            is_inner = self._open[-1] is self and len(self._open) > 1
            self._open.remove(self)
            if is_inner:
                self._draw("")  # the outer loop continues on this line
            else:
                self._draw(progress_text(self._description, self._total, count, seconds) + "\n")

    def _draw(self, text: str) -> None:
        import shutil  # imported here because shutil loads three compression libraries

        width = shutil.get_terminal_size().columns - 1
        clear = "\x1b[2K"  # erases the previous text
        self._target.write(f"\r{clear}{text[:width] if not text.endswith(chr(10)) else text}")
        self._target.flush()


class _RichBar:
    """A bar of the library rich; all open bars of a file share a display."""

    _displays: dict[int, tuple[Any, list[_RichBar]]] = {}  # noqa: RUF012  # all open bars, by file
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
                self._display.remove_task(self._task)  # outer loops still use the display
            else:
                self._displays.pop(self._key, None)
                self._display.stop()


def _new_display(target: Any) -> Any:
    from rich import progress as rich_progress  # an optional dependency, and slow to import
    from rich.console import Console

    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    # A console made with `file` keeps that object; one made with `stderr` follows later replacements of sys.stderr.
    console = Console(stderr=True) if target is sys.stderr else Console(file=target)
    # Output of the program to a terminal is printed above the bar; output to a file is not redirected. There is no
    # refresh thread, which would contend with the replicas for the GIL.
    return rich_progress.Progress(
        *columns,
        console=console,
        auto_refresh=False,
        redirect_stdout=is_tty(sys.stdout),
        redirect_stderr=is_tty(sys.stderr),
    )


@atexit.register
def _stop_all() -> None:
    """Restore the cursor: the bar of a loop that raised an error may stay open until the program ends."""
    for display, _ in _RichBar._displays.values():
        with suppress(OSError, ValueError):  # the file was closed
            display.stop()
