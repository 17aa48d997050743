"""Reports of long waits: the time after which a wait is reported, and the functions that the core calls."""

from __future__ import annotations

import faulthandler
import functools
import logging
import os
import signal
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ringlet import _core
from ringlet.observe.stacks import call_site, rank_stacks, skip_files, thread_stacks
from ringlet.variable_names import seconds_of

_log = logging.getLogger(__name__)

_DEFAULT_SECONDS = 30.0
# Objects whose method `as_in_errors` rewrites reports about their calls with the names and numbers that errors use.
translators: weakref.WeakSet[Any] = weakref.WeakSet()


def stall_seconds(environ: Mapping[str, str] | None = None) -> float:
    """Return the time after which a wait is reported, in seconds.

    Parameters
    ----------
    environ : mapping, optional
        Environment with ``RINGLET_STALL_SECONDS``; by default the environment of this process.

    Returns
    -------
    float
        Infinity if the variable is 0, 30 if it is not set.

    Raises
    ------
    ValueError
        If the variable is not a number, or negative.

    Examples
    --------
    >>> stall_seconds({"RINGLET_STALL_SECONDS": "2.5"})
    2.5
    """
    given = os.environ if environ is None else environ
    return seconds_of("RINGLET_STALL_SECONDS", given, _DEFAULT_SECONDS, "no reports")


def wait_for_threads(
    wait: Callable[[float], bool], seconds: float, what: str, threads: Callable[[], Iterable[int | None]]
) -> None:
    """Wait for other threads; if the wait exceeds a limit, log once what they are executing.

    Parameters
    ----------
    wait : callable
        Takes a limit in seconds, and returns whether the wait has ended, as ``threading.Condition.wait`` does.
    seconds : float
        The limit, such as the result of :func:`stall_seconds`.
    what : str
        The log message, with ``%g`` for the seconds; the frames of the threads follow it.
    threads : callable
        Returns the identifiers of the threads.
    """
    seconds = min(seconds, threading.TIMEOUT_MAX)
    if not wait(seconds):
        _log.warning(what + "%s", seconds, thread_stacks(threads()))
        wait(threading.TIMEOUT_MAX)


def report_stalls() -> float:
    """Install the functions with which the core reports stalls; return :func:`stall_seconds`.

    A process in which C code holds the GIL cannot answer when another rank requests its stacks. That process is sent
    the signal ``RINGLET_STACK_SIGNAL`` (0 for none), on which it prints its stacks to standard error. The default is
    ``SIGRTMAX - 4``, unless the program handles that signal.
    """
    _install()
    return stall_seconds()


@functools.cache
def _install() -> None:
    skip_files()
    _core.set_thread_reports(call_site, rank_stacks, _log_report, _register_stack_signal())


def _log_report(text: str) -> None:
    for each in tuple(translators):
        text = each.as_in_errors(text)
    _log.warning(text)


def _register_stack_signal() -> int:
    """Register the signal that prints stacks, and return its number; 0 if there is none."""
    text = os.environ.get("RINGLET_STACK_SIGNAL", "").strip()
    if sys.platform != "linux" or text == "0":
        return 0
    try:
        number = int(text) if text else signal.SIGRTMAX - 4
        if signal.getsignal(number) is not signal.SIG_DFL:
            return 0
        faulthandler.register(number, file=2)
    except (ValueError, OSError, RuntimeError) as error:
        raise ValueError(
            f"RINGLET_STACK_SIGNAL is {text!r}: expected the number of a signal that a program may handle, such as "
            f"{signal.SIGRTMAX - 4}, or 0 for none ({error})."
        ) from None
    return number
