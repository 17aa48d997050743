"""How the workers of a job ended, which of them was the first to fail, and what is said about it."""

from __future__ import annotations

import re
import signal
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass

from ringlet.ipc.worker_process import ending_text, shell_status, signal_name
from ringlet.launcher.traceback_buffer import exception_line, first_exception_line

__all__ = ["Ending", "first_failure", "follows_another", "job_status", "summary", "workers_text"]

# Errors that ringlet raises where another worker has failed.
_FOLLOWING = re.compile(r"(?:\w+\.)*(?:CollectiveAborted|WorkerLostError)\b")
_FAILED = 1  # the exit status of an interpreter that met an uncaught exception
_LONGEST_QUOTE = 300
_MOST_GROUPS = 4


@dataclass(frozen=True)
class Ending:
    r"""How one worker ended.

    Attributes
    ----------
    worker : int
    status : int
        As ``Popen.returncode``.
    at : float
        When its exception was raised, if it has reported one; else when its last traceback began, or when it had ended.
    asked_at : float or None
        When it was asked to end, or killed.
    words : str
        Its last traceback; empty if it ended without, or has lived on for long.
    last_line : str
        The last line of its standard error.
    has_raised : bool
        Whether it has reported an uncaught exception.

    Examples
    --------
    >>> Ending(2, 1, at=3.0, words="Traceback (most recent call last):\nKeyError: 'weights'\n").error
    "KeyError: 'weights'"
    """

    worker: int
    status: int
    at: float
    asked_at: float | None = None
    words: str = ""
    last_line: str = ""
    has_raised: bool = False

    @property
    def error(self) -> str:
        """The line that names its exception, if there is one."""
        return exception_line(self.words) if self.words else ""

    @property
    def follows(self) -> bool:
        """Whether it failed because another one had failed."""
        return follows_another(self.words or self.last_line)

    @property
    def is_own(self) -> bool:
        """Whether it failed by itself, rather than of a signal that the launcher has sent."""
        if self.status == 0 or self.asked_at is None:
            return self.status != 0
        # A handler of that signal may end it with a status, and has nothing to show.
        return (bool(self.words) or self.has_raised) and (self.status > 0 or self.at < self.asked_at)

    @property
    def own_status(self) -> int:
        """Its status; that of its exception, if it was killed after it had shown that."""
        return _FAILED if self.is_own and self.status < 0 and self.asked_at is not None else self.status


def follows_another(words: str) -> bool:
    r"""Tell whether a worker that ends with these words failed because another one had failed.

    Parameters
    ----------
    words : str
        Its last traceback, or line. Whatever it has made of the exception that it met, that one decides.

    Returns
    -------
    bool

    Examples
    --------
    >>> follows_another("ringlet.errors.CollectiveAborted: /job:worker/task:2 raised ValueError: bad\n")
    True
    """
    return bool(_FOLLOWING.match(first_exception_line(words)))


def first_failure(endings: Sequence[Ending]) -> Ending | None:
    """Find the worker that failed first, by itself if any did.

    Parameters
    ----------
    endings : sequence of Ending

    Returns
    -------
    Ending or None
        None if all ended with status 0.

    Examples
    --------
    >>> first_failure([Ending(0, 1, 5.0, words="ringlet.errors.CollectiveAborted: ..."), Ending(1, -9, 5.1)]).worker
    1
    """
    failures = [ending for ending in endings if ending.status != 0]
    return min(failures, key=lambda e: (not e.is_own, e.follows, e.at, e.worker), default=None)


def job_status(endings: Sequence[Ending], received: int | None) -> int:
    """Give the exit status of the job.

    Parameters
    ----------
    endings : sequence of Ending
    received : int, optional
        The signal with which the launcher was asked to end all, before any worker had failed.

    Returns
    -------
    int
        That of the worker that failed first; 128 + signal where the launcher was asked to end all, unless all did so
        with status 0.
    """
    first = first_failure(endings)
    if first is None:
        return 0
    return shell_status(first.own_status) if received is None else shell_status(-received)


def summary(endings: Sequence[Ending], received: int | None, num_workers: int) -> list[str]:
    """Say how a job failed, in a few lines; its first traceback is to follow.

    Parameters
    ----------
    endings : sequence of Ending
    received : int, optional
        As for :func:`job_status`.
    num_workers : int
        Of the job, of which some may not have been started.

    Returns
    -------
    list of str
        Empty if it did not fail.
    """
    first = first_failure(endings)
    if first is None or received == signal.SIGPIPE:
        return []
    if received is not None:
        why = "Ctrl-C" if received == signal.SIGINT else signal_name(received)
        return [f"{why}: {'all ' if len(endings) > 1 else ''}{_number(len(endings))} ended"]
    lines = [f"worker {first.worker} of {num_workers} {ending_text(first.own_status)}{_others(first, endings)}"]
    hint = _hint(first)
    return [*lines, *([hint] if hint else []), *_folded(first, endings)]


def workers_text(workers: Sequence[int]) -> str:
    """Name some workers.

    Examples
    --------
    >>> workers_text([1]), workers_text([0, 1, 3])
    ('worker 1', 'workers 0, 1 and 3')
    """
    if len(workers) == 1:
        return f"worker {workers[0]}"
    return f"workers {', '.join(map(str, workers[:-1]))} and {workers[-1]}"


def _number(count: int) -> str:
    return "worker has" if count == 1 else f"{count} workers have"


def _others(first: Ending, endings: Sequence[Ending]) -> str:
    ended = sorted(e.worker for e in endings if e is not first and not e.is_own and e.status)
    return f"; {workers_text(ended)} {'was' if len(ended) == 1 else 'were'} ended" if ended else ""


def _hint(first: Ending) -> str:
    if first.own_status == -signal.SIGKILL:
        return "nobody here has killed it: perhaps the kernel did, for lack of memory (dmesg tells)"
    if not first.words and first.last_line:
        return f"its last line on standard error: {first.last_line[:_LONGEST_QUOTE]}"
    return ""


def _folded(first: Ending, endings: Sequence[Ending]) -> list[str]:
    """What the others have said that failed by themselves, those together that say the same."""
    said: dict[tuple[bool, str], list[int]] = {}
    for ending in endings:
        if ending is not first and ending.is_own:
            error = ending.error or ending_text(ending.status)
            insort(said.setdefault((ending.follows, error), []), ending.worker)
    lines = [
        f"{workers_text(workers)} failed {'because of it' if follows else 'too'}: {error[:_LONGEST_QUOTE]}"
        for (follows, error), workers in said.items()
    ]
    more = len(lines) - _MOST_GROUPS
    return lines if more <= 0 else [*lines[:_MOST_GROUPS], f"and {more} others; --all-tracebacks shows them"]
