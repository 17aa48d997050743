"""Short tracebacks: errors that Ringlet raises on purpose, and Ctrl-C, are printed without the frames of Ringlet.

Only the printing of uncaught exceptions changes. Exceptions keep their tracebacks: programs, logs, debuggers, pytest
and IPython see all frames.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any

VARIABLE = "RINGLET_TRACEBACK"
_PACKAGE = __file__.rpartition("errors")[0]
# Built-in exceptions that Ringlet raises with a message for users.
_PLAIN = (TypeError, ValueError, RuntimeError, NotImplementedError, AttributeError, ImportError, ModuleNotFoundError)
_STANDARD_LIBRARY = os.__file__.removesuffix("os.py")


def install() -> None:
    """Change how uncaught exceptions are printed, unless the program has done so already."""
    print_uncaught = sys.excepthook
    module = str(getattr(print_uncaught, "__module__", ""))  # `ringlet run` installs hooks in its workers
    if print_uncaught is sys.__excepthook__ or module.startswith("ringlet."):

        def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            with _short(error):
                print_uncaught(kind, error, error.__traceback__ or trace)
                _print_notes(error)

        sys.excepthook = hook
    if threading.excepthook is threading.__excepthook__:

        def thread_hook(args: Any) -> None:
            with _short(args.exc_value):
                threading.__excepthook__(args)
                _print_notes(args.exc_value)

        threading.excepthook = thread_hook


def _print_notes(error: BaseException | None) -> None:
    """Print the notes of an exception, which Python 3.10 omits; `ringlet run` reads them."""
    if sys.version_info < (3, 11) and sys.stderr is not None:
        for note in getattr(error, "__notes__", ()):
            print(note, file=sys.stderr)


@contextlib.contextmanager
def _short(error: BaseException | None) -> Iterator[None]:
    """Shorten the traceback of an exception while it is printed, then print how to see all of it."""
    short = [] if error is None or _asked_for_all() else list(_short_tracebacks(error))
    if error is None or not short:
        yield
        return
    whole = [link.__traceback__ for link, _ in short]
    try:
        for link, trace in short:
            link.__traceback__ = trace
        yield
    finally:
        for (link, _), trace in zip(short, whole, strict=True):
            link.__traceback__ = trace
    if sys.stderr is not None:
        kind = _documented_kind(error)
        described = f"; `ringlet explain {kind.__name__}` describes the error" if kind else ""
        print(f"(without the frames inside ringlet; {VARIABLE}=full shows them{described})", file=sys.stderr)


def _short_tracebacks(error: BaseException) -> Iterator[tuple[BaseException, TracebackType | None]]:
    """Yield an exception and its causes, with their short tracebacks, up to the first that cannot be shortened."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and (short := short_traceback(link)) is not link.__traceback__:
        yield link, short
        seen.add(id(link))
        # Ctrl-C may interrupt the handling of an error that it has caused in another rank.
        link = link.__cause__ or (link.__context__ if isinstance(link, KeyboardInterrupt) else None)


def _asked_for_all() -> bool:
    """Return whether the user, a debugger or pytest requests the whole traceback."""
    monitoring = getattr(sys, "monitoring", None)  # sys.monitoring exists from Python 3.12 on
    return (
        os.environ.get(VARIABLE) == "full"
        or "PYTEST_CURRENT_TEST" in os.environ
        or sys.gettrace() is not None
        or sys.breakpointhook is not sys.__breakpointhook__
        or (monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None)
    )


def short_traceback(error: BaseException) -> TracebackType | None:
    """Return the traceback without the frames of Ringlet and of the standard library that it calls.

    If the error is unexpected or was raised elsewhere, or no frame of the user remains, return the whole traceback.
    """
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept: list[TracebackType] = []
    is_inside = False  # whether the frame belongs to Ringlet, or to the standard library called by Ringlet
    for each in frames:
        is_own = each.tb_frame.f_code.co_filename.startswith(_PACKAGE)
        is_inside = is_own or (is_inside and not _is_of_a_user(each))
        kept += [] if is_inside else [each]
    ends_inside = frames[-1:] != kept[-1:] or (isinstance(error, KeyboardInterrupt) and len(kept) < len(frames))
    if ends_inside and _is_on_purpose(error, frames[-1]) and any(map(_is_of_a_user, kept)):
        for frame in reversed(kept):
            trace = TracebackType(trace, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
        return trace
    return error.__traceback__


def _is_on_purpose(error: BaseException, last: TracebackType) -> bool:
    """Return whether the error is documented, a KeyboardInterrupt, or a built-in exception that `last` raised."""
    if isinstance(error, KeyboardInterrupt) or _documented_kind(error):
        return True
    from opcode import opmap

    # A cause indicates an unexpected error, such as the exception of a function in another process.
    plain = type(error) in _PLAIN and error.__cause__ is None
    return plain and last.tb_frame.f_code.co_code[last.tb_lasti] == opmap["RAISE_VARARGS"]


def _documented_kind(error: BaseException) -> type[object] | None:
    """Return the documented class of an error, or of the error that it replaces if it was raised ``from None``."""
    repeated = error.__context__ if error.__suppress_context__ and error.__cause__ is None else None
    kinds = (*type(error).__mro__, *type(repeated).__mro__)
    return next((kind for kind in kinds if kind.__module__ == "ringlet.errors"), None)


def _is_of_a_user(trace: TracebackType) -> bool:
    file = trace.tb_frame.f_code.co_filename
    library = file.startswith(_STANDARD_LIBRARY) and "site-packages" not in file
    return not library and not file.startswith("<frozen ")
