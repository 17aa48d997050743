"""Selection and description of the failures of a run, and the location of its threads."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping

from ringlet.errors import CollectiveAborted

__all__ = ["follows_from_abort", "location", "one_line", "other_failures", "primary_failure"]


def primary_failure(failures: Mapping[int, BaseException]) -> tuple[int, BaseException]:
    """Return the failure that a run raises, with its replica.

    Parameters
    ----------
    failures : mapping of int to BaseException
        The exceptions of the replicas; not empty.

    Returns
    -------
    tuple of int and BaseException
        The first in this order: exceptions that end the program (``SystemExit``, ``KeyboardInterrupt``), independent
        failures, consequences of another replica's failure; among equals the lowest replica.

    Examples
    --------
    >>> primary_failure({0: CollectiveAborted("replica 1 raised"), 1: KeyError("x"), 2: ValueError("y")})
    (1, KeyError('x'))
    """

    def order(item: tuple[int, BaseException]) -> tuple[bool, bool, int]:
        replica, error = item
        return isinstance(error, Exception), follows_from_abort(error), replica

    return min(failures.items(), key=order)


def follows_from_abort(error: BaseException) -> bool:
    """Return whether an exception is a consequence of a collective that another rank's failure aborted.

    Parameters
    ----------
    error : BaseException
        Its causes and contexts are examined too.

    Returns
    -------
    bool

    Examples
    --------
    >>> follows_from_abort(CollectiveAborted("replica 1 raised")), follows_from_abort(KeyError("x"))
    (True, False)
    """
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, CollectiveAborted):
            return True
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return False


def one_line(error: BaseException) -> str:
    """Return the type of an exception and the first line of its message.

    Parameters
    ----------
    error : BaseException

    Returns
    -------
    str

    Examples
    --------
    >>> one_line(ValueError("bad shape"))
    'ValueError: bad shape'
    """
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def other_failures(failures: Mapping[int, BaseException], raised: int) -> str:
    """Describe the failures of replicas other than the one whose exception is raised; equal ones are listed once.

    Parameters
    ----------
    failures : mapping of int to BaseException
        The exceptions of the replicas. Consequences of another replica's failure are left out.
    raised : int
        The replica whose exception is raised.

    Returns
    -------
    str
        Continues a sentence about that replica; empty if no other replica failed.

    Examples
    --------
    >>> other_failures({0: KeyError("x"), 1: KeyError("x"), 2: KeyError("x"), 3: ValueError("y")}, raised=0)
    '; replicas 1-2: the same; replica 3 also failed: ValueError: y'
    """
    replicas_of: dict[str, list[int]] = {}
    for replica, error in sorted(failures.items()):
        if replica >= 0 and replica != raised and not follows_from_abort(error):
            replicas_of.setdefault(one_line(error), []).append(replica)
    same = replicas_of.pop(one_line(failures[raised]), [])
    parts = [f"; {_replicas(same)}: the same"] if same else []
    parts += [f"; {_replicas(replicas)} also failed: {text}" for text, replicas in replicas_of.items()]
    return "".join(parts)


def _replicas(numbers: list[int]) -> str:
    """Format ascending numbers as ranges: ``replicas 1-3, 5``."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return f"replica{'s' if len(numbers) > 1 else ''} " + ", ".join("-".join(map(str, ends)) for ends in ranges)


def location(thread: int | None) -> str:
    """Describe the line that a thread is executing.

    Parameters
    ----------
    thread : int or None
        Its ``threading.get_ident()``; None if it is not known.

    Returns
    -------
    str

    Examples
    --------
    >>> import threading
    >>> location(threading.get_ident()).startswith("in location (")
    True
    """
    frame = None if thread is None else sys._current_frames().get(thread)
    if frame is None:
        return "in a thread that has ended"
    last = traceback.extract_stack(frame)[-1]
    return f"in {last.name} ({last.filename}:{last.lineno})"
