"""Default time-out of all waits."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from ringlet.observe.stall_reports import stall_seconds
from ringlet.variable_names import seconds_of, warn_if_misspelt

_DEFAULT_SECONDS = 600.0


def default_timeout_seconds(environ: Mapping[str, str] | None = None) -> float:
    """Return the default time-out of a wait, from the environment.

    Parameters
    ----------
    environ : mapping, optional
        Environment with ``RINGLET_TIMEOUT_SECONDS``; by default the environment of this process.

    Returns
    -------
    float
        Seconds; infinity if the variable is 0, 600 if it is not set.

    Raises
    ------
    ValueError
        If the variable is negative or not a number; without `environ`, also if ``RINGLET_STALL_SECONDS`` is invalid.

    Examples
    --------
    >>> default_timeout_seconds({})
    600.0
    >>> default_timeout_seconds({"RINGLET_TIMEOUT_SECONDS": "0"})
    inf
    """
    if environ is None:
        # Checked here, because every strategy and every process group reads the time-out.
        warn_if_misspelt()
        stall_seconds()  # raises an error if the value is invalid
    given = os.environ if environ is None else environ
    return seconds_of("RINGLET_TIMEOUT_SECONDS", given, _DEFAULT_SECONDS, "no limit")


def resolve_timeout(timeout_seconds: float | None) -> float:
    """Return a time-out in seconds: None means the default, 0 no limit (infinity)."""
    if timeout_seconds is None:
        return default_timeout_seconds()
    try:
        seconds = float(timeout_seconds)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(
            f"timeout_seconds is {timeout_seconds!r}: expected seconds, 0 for no limit, or None for the default."
        )
    return seconds if seconds > 0 else math.inf
