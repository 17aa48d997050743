"""Environment variables: the names that Ringlet reads, a warning about misspelt names, and values in seconds."""

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
    "RINGLET_SECRET",
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
    "RINGLET_NETWORK_DTYPE",
    "RINGLET_RECORDER",
    "RINGLET_RECORDER_FD",
    "RINGLET_RECORDER_SIGNAL",
    "RINGLET_TRACE",
)
# Set by the launcher, and by the tests and the build of Ringlet.
_INTERNAL = (
    "RINGLET_UNCAUGHT",
    *("RINGLET_BUILD_", "RINGLET_CI_", "RINGLET_TEST_", "RINGLET_STRESS_", "RINGLET_FAULT", "RINGLET_KILLS"),
    *("RINGLET_MUTATIONS", "RINGLET_ORACLE", "RINGLET_RELACY_"),
)
_SYNONYMS = dict.fromkeys(("RINGLET_SIZE", "RINGLET_WORLD_SIZE", "RINGLET_NUM_WORKERS"), "RINGLET_NUM_RANKS")
# A name without the prefix counts as misspelt if it is near one of these names and not in _OF_OTHERS.
_UNPREFIXED = ("TF_CONFIG", "WORLD_SIZE", "RANK")
_OF_OTHERS = ("RACK", "RAND")

_has_warned = False


def misspelt(environ: Mapping[str, str]) -> dict[str, str]:
    """Return each variable with a misspelt name, and the name that was probably meant.

    A name counts as misspelt if it begins with ``RINGLET_`` and no such variable is read, or if it differs from
    ``TF_CONFIG``, ``WORLD_SIZE`` or ``RANK``, if unset, only in case and, after the first letter, by at most one edit
    per four characters. ``RACK`` and ``RAND`` are excepted.
    """
    found = {}
    for name in sorted(environ):
        if name.startswith("RINGLET_"):
            if name not in NAMES and not name.startswith(_INTERNAL):
                found[name] = _SYNONYMS.get(name) or _most_similar(name)
        elif name not in _UNPREFIXED and name not in _OF_OTHERS:
            for known in _UNPREFIXED:
                if known not in environ and _is_near(name.upper(), known):
                    found[name] = known
    return found


def _most_similar(name: str) -> str:
    from difflib import get_close_matches  # imported here because only misspelt names need it

    return get_close_matches(name, [known for known in NAMES if known.startswith("RINGLET_")], 1, 0)[0]


def _is_near(name: str, known: str) -> bool:
    limit = len(known) // 4
    if name[:1] != known[0] or abs(len(name) - len(known)) > limit:
        return False
    row = list(range(len(known) + 1))  # edit distances between a prefix of `name` and each prefix of `known`
    for i, character in enumerate(name, 1):
        above, row = row, [i]
        for j, other in enumerate(known, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (character != other)))
    return row[-1] <= limit


def warn_if_misspelt() -> None:
    """Log a warning, once, for each environment variable of this process with a misspelt name."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        for name, nearest in misspelt(os.environ).items():
            _log.warning("the environment variable %s has no effect: did you mean %s?", name, nearest)


def seconds_of(name: str, environ: Mapping[str, str], default: float, zero: str) -> float:
    """Return the value of a variable in seconds, infinity for 0; `zero` describes the effect of 0 in the error."""
    text = environ.get(name, "").strip()
    try:
        seconds = float(text) if text else default
    except ValueError:
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(f"{name} is {text!r}: expected a positive number of seconds, or 0 for {zero}.")
    return seconds or math.inf
