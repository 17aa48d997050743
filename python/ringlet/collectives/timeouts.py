"""Settings that every wait shares."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

__all__ = ["default_timeout_seconds", "resolve_timeout"]

TIMEOUT_VARIABLE = "RINGLET_TIMEOUT_SECONDS"
DEFAULT_TIMEOUT_SECONDS = 600.0


def default_timeout_seconds(environ: Mapping[str, str] | None = None) -> float:
    """Give the time after which a wait raises, as the environment sets it.

    Parameters
    ----------
    environ : mapping, optional
        Environment to read ``RINGLET_TIMEOUT_SECONDS`` from; by default the process's own.

    Returns
    -------
    float
        Seconds; infinity where the variable is 0, which means never. 600 where it is not set.

    Raises
    ------
    ValueError
        If the variable is not a number, or negative.

    Examples
    --------
    >>> default_timeout_seconds({})
    600.0
    >>> default_timeout_seconds({"RINGLET_TIMEOUT_SECONDS": "0"})
    inf
    """
    text = (os.environ if environ is None else environ).get(TIMEOUT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_TIMEOUT_SECONDS
    try:
        return resolve_timeout(float(text))
    except ValueError:
        raise ValueError(
            f"{TIMEOUT_VARIABLE} is {text!r}: expected a number of seconds, or 0 to wait for ever."
        ) from None


def resolve_timeout(timeout_seconds: float | None) -> float:
    """Turn a time-out argument into seconds to wait.

    Parameters
    ----------
    timeout_seconds : float or None
        None means the default, 0 means never.

    Returns
    -------
    float
        Seconds; infinity for never.

    Raises
    ------
    ValueError
        If the number is negative or not a number.

    Examples
    --------
    >>> resolve_timeout(2), resolve_timeout(0)
    (2.0, inf)
    """
    if timeout_seconds is None:
        return default_timeout_seconds()
    try:
        seconds = float(timeout_seconds)
    except (TypeError, ValueError):
        seconds = math.nan
    if not seconds >= 0:
        raise ValueError(
            f"timeout_seconds is {timeout_seconds!r}: expected seconds, 0 for never, or None for the default."
        )
    return seconds if seconds > 0 else math.inf
