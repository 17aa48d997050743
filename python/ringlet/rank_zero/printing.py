"""print0: prints on the chief only."""

from __future__ import annotations

import io
import sys
from typing import Any

from ringlet.rank_zero.process_role import is_chief
from ringlet.rank_zero.progress_backends import clear_bar_line


def print0(*values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False) -> None:
    """Print as ``print`` does, on the chief only: once for all processes and replicas.

    Parameters
    ----------
    *values : object
        The arguments are evaluated on all processes. Guard expensive arguments with ``if ringlet.is_chief():``, but
        make collective calls before the guard, because all processes must take part in them.
    sep, end : str, optional
        Text between the values, and after them.
    file : file, optional
        The default is ``sys.stdout``.
    flush : bool
        Whether to flush the file; lines on a terminal are always flushed.

    Notes
    -----
    Each call writes its text in one piece, so that lines of several threads are not interleaved.

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
    if target is not None:  # sys.stdout may be None in programs without a terminal
        clear_bar_line()
        print(text.getvalue(), end="", file=target, flush=flush)
