"""Reports of waits that last long: the time after which they are logged, and the functions that the core calls."""

from __future__ import annotations

import faulthandler
import functools
import logging
import math
import os
import signal
import sys
from collections.abc import Mapping

from ringlet import _core
from ringlet.observe.stacks import call_site, rank_stacks

__all__ = ["SIGNAL_VARIABLE", "STALL_VARIABLE", "report_stalls", "stall_seconds"]

_log = logging.getLogger(__name__)

STALL_VARIABLE = "RINGLET_STALL_SECONDS"
SIGNAL_VARIABLE = "RINGLET_STACK_SIGNAL"
_DEFAULT_SECONDS = 30.0


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
    text = (os.environ if environ is None else environ).get(STALL_VARIABLE, "").strip()
    try:
        seconds = float(text) if text else _DEFAULT_SECONDS
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"{STALL_VARIABLE} is {text!r}: expected a number of seconds, or 0 for no reports.")
    return seconds or math.inf


def report_stalls() -> float:
    """Let the core report long waits of this process, and return :func:`stall_seconds`.

    A process whose interpreter lock is held by C code does not answer when another rank asks for its stacks. It prints
    them on standard error when it receives a signal: the fifth from the last real-time signal, unless the program
    handles that one, or the one whose number is in ``RINGLET_STACK_SIGNAL``; 0 for none.
    """
    _install()
    return stall_seconds()


@functools.cache
def _install() -> None:
    _core.set_thread_reports(call_site, rank_stacks, _log.warning, _register_stack_signal())


def _register_stack_signal() -> int:
    """Return the signal that prints stacks; 0 if there is none."""
    text = os.environ.get(SIGNAL_VARIABLE, "").strip()
    if sys.platform != "linux" or text == "0":
        return 0
    if text and (not text.isdecimal() or int(text) not in signal.valid_signals()):
        raise ValueError(f"{SIGNAL_VARIABLE} is {text!r}: expected the number of a signal, or 0 for none.")
    number = int(text) if text else signal.SIGRTMAX - 4
    if signal.getsignal(number) is not signal.SIG_DFL:
        return 0
    faulthandler.register(number, file=2)
    return number
