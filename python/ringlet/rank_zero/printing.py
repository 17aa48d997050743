"""print0: what one of all processes and replicas prints."""

from __future__ import annotations

import io
import sys
from typing import Any

from ringlet.rank_zero.process_role import is_chief
from ringlet.rank_zero.progress_backends import make_room

__all__ = ["print0"]


def print0(*values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """Print as ``print`` does, on the chief alone: once, however many processes and replicas call it.

    Parameters
    ----------
    *values : object
        A value that only others have to compute is not computed by them: write an ``if ringlet.is_chief():`` around it.
        But every one of them must take part in a collective, so call that before.
    sep, end : str, optional
        Between the values, and behind them.
    file : file, optional
        ``sys.stdout`` unless given.
    flush : bool
        Whether to bring it out at once. Lines for a terminal are brought out in any case.

    Notes
    -----
    Each call writes its text in one piece, so that lines of several threads do not run into each other.

    Examples
    --------
    >>> import ringlet
    >>> strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: ringlet.print0("one line,", 2, "replicas"))
    one line, 2 replicas
    """
    if not is_chief():
        return
    text = io.StringIO()
    print(*values, sep=sep, end=end, file=text)
    target = sys.stdout if file is None else file
    if target is not None:  # a program without a terminal may have none
        make_room()
        print(text.getvalue(), end="", file=target, flush=flush)
