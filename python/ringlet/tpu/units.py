"""Parsing and formatting of sizes and times."""

from __future__ import annotations

import math
import re

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_FACTORS = {unit.lower(): 1000**power for power, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB"))}
_FACTORS |= {unit.lower(): 1024**power for power, unit in enumerate(_BINARY)}
_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)(e[+-]?\d+)?\s*([A-Za-z]*)\s*", re.ASCII | re.IGNORECASE)
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def parse_bytes(text: str) -> int:
    """Parse a size such as ``1GiB``, ``1.5 MB`` or ``4096`` (bytes); raise ValueError for other text.

    B, KiB, MiB, GiB, TiB, PiB are powers of 1024; kB, MB, GB, TB, PB of 1000; letter case is ignored. A size
    of less than a byte, or not of whole bytes, raises ValueError too.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a size. Write a number and a unit, such as 4096, 64MiB, 1GiB or 1.5GB.")
    number, exponent, unit = match[1], match[2] or "", match[3] or "B"
    factor = _FACTORS.get(unit.lower())
    if factor is None:
        raise ValueError(_unknown_unit(text, number + exponent, unit))
    nbytes = float(number + exponent) * factor
    if not math.isfinite(nbytes) or nbytes != int(nbytes) or nbytes < 1:
        raise ValueError(f"{text!r} is {nbytes:g} bytes. A size must be a whole number of bytes, at least 1.")
    return int(nbytes)


def _unknown_unit(text: str, number: str, unit: str) -> str:
    power = "kmgtp".find(unit.lower()) + 1
    if power and len(unit) == 1:
        letter = "KMGTP"[power - 1]
        decimal = "k" if letter == "K" else letter
        return (
            f"{text!r} is not a size: {unit!r} may be 1024**{power} or 1000**{power}. "
            f"Write {number}{letter}iB or {number}{decimal}B."
        )
    return f"{text!r} is not a size: unknown unit {unit!r}. Write B, KiB, MiB, GiB, TiB, or kB, MB, GB, TB."


def format_bytes(nbytes: float) -> str:
    """Format a number of bytes in binary units: three digits, or four if they are exact or the value is >= 1000."""
    power = 0
    while nbytes >= 1024 ** (power + 1) and power + 1 < len(_BINARY):
        power += 1
    value = nbytes / 1024**power
    digits = 4 if value >= 1000 or float(f"{value:.4g}") == value else 3
    return f"{value:.{digits}g} {_BINARY[power]}"


def format_seconds(seconds: float) -> str:
    """Format a time with at most four digits."""
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:g} s"
    factor, unit = next((row for row in _TIMES if seconds >= row[0] * 0.99995), _TIMES[-1])
    return f"{seconds / factor:.4g} {unit}"
