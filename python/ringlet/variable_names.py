"""Names of the environment variables that Ringlet reads, a warning about misspelt ones, and durations in variables."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping

__all__ = ["NAMES", "misspelt", "seconds_of", "warn_if_misspelt"]

_log = logging.getLogger(__name__)

NAMES = (
    "TF_CONFIG",
    "RINGLET_RANK",
    "RINGLET_NUM_RANKS",
    "RINGLET_JOB_ID",
    "RINGLET_ATTEMPT",
    "RINGLET_NUM_DEVICES",
    "RINGLET_TIMEOUT_SECONDS",
    "RINGLET_STALL_SECONDS",
    "RINGLET_STACK_SIGNAL",
    "RINGLET_BLAS_THREADS",
    "RINGLET_CPU",
    "RINGLET_PROGRESS_SECONDS",
    "RINGLET_TRACEBACK",
    "RINGLET_POISON",
    "RINGLET_MIXED_SCRIPTS",
    "RINGLET_CROSS_MEMORY",
    "RINGLET_RECORDER",
    "RINGLET_RECORDER_FD",
    "RINGLET_RECORDER_SIGNAL",
    "RINGLET_TRACE",
)
_PREFIXES = ("RINGLET_", "TF_CONFIG", "TFCONFIG")
_SIMILARITY = 0.75

_has_warned = False


def misspelt(environ: Mapping[str, str]) -> dict[str, str]:
    """Return each variable that Ringlet does not read and a similar name that it does read, if that is not set."""
    unknown = [name for name in environ if name.startswith(_PREFIXES) and name not in NAMES]
    if not unknown:
        return {}
    from difflib import get_close_matches

    unset = [name for name in NAMES if name not in environ]
    nearest = {name: get_close_matches(name, unset, 1, _SIMILARITY) for name in sorted(unknown)}
    return {name: similar[0] for name, similar in nearest.items() if similar}


def warn_if_misspelt() -> None:
    """Log a warning, once, for each environment variable of this process with a misspelt name."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        for name, nearest in misspelt(os.environ).items():
            _log.warning("the environment variable %s has no effect: did you mean %s?", name, nearest)


def seconds_of(name: str, environ: Mapping[str, str], default: float, zero: str) -> float:
    """Return the duration in an environment variable; infinity for 0, whose meaning is `zero` in messages."""
    text = environ.get(name, "").strip()
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"{name} is {text!r}: expected a number of seconds, or 0 for {zero}.")
    return seconds or math.inf
