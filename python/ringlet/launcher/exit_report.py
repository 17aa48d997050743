"""Exit report: finds the first failure among a job's workers, and summarizes how the job ended."""

from __future__ import annotations

import re
import signal
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ringlet.ipc.worker_process import ending_text, shell_status, signal_name
from ringlet.launcher.traceback_buffer import exception_line, first_exception_line
from ringlet.observe.divergence import number_ranges

# Errors that ringlet raises because another worker has failed; another library's exception may have wrapped them.
_FOLLOWING = re.compile(r"(?:[\w.]+: )?(?:\w+\.)*(?:CollectiveAborted|WorkerLostError)(?::|$)")
# Errors that name a process that has exited, or a rank that makes no more calls; rank and worker numbers are equal.
_LOST = re.compile(r"\(pid (\d+) on [^)]*\) (?:exited with status 0|closed its connection|ended)")
_CLOSED = re.compile(
    r"CollectiveMismatchError: .* waits for ranks that make no more calls: .*\brank (\d+) \(closed its group "
)
# In an error about different calls: its text, and a row of its table with ranks and their call without the location.
_CALLS = "did not make the same call ("
_CALL = re.compile(
    r"^  (?:(?:rank|replica|worker)s? |/job:worker/task:)([\d, to]+)(?: \(/job:worker/task:\d+\))?: "
    r"(.*?)(?:, (?:in|while the main thread is in) [^,]* \([^()]*:\d+\))?$",
    re.MULTILINE,
)
_RANGE = re.compile(r"(\d+)(?: to (\d+))?")
_IN_REPLICA = re.compile(r"^raised in replica \d+ of (\d+)", re.MULTILINE)
# Errors and notes about calls that other processes did not make.
_WAITED = re.compile(r"DeadlineExceededError: .* waited ([^ ]+ s) for (.*)")
_INTERRUPTED = re.compile(r"^(?:[\w.]+: )*(.* was interrupted while it waited for (.*[^.\n]))", re.MULTILINE)
_PID = re.compile(r"\(pid (\d+)\b")
_FAILED = 1  # the exit status of an interpreter after an uncaught exception
_LONGEST_QUOTE = 300
_MOST_ERRORS = 4


@dataclass(frozen=True)
class Ending:
    """The exit of one worker.

    `status` is the ``Popen.returncode``; `at` is the time of its reported exception, otherwise of the start of its last
    traceback, otherwise of its exit; `asked_at` is the time at which it was sent SIGTERM or SIGKILL; `words` is its
    last traceback, empty if it printed none or kept running for long afterwards; `has_raised` is whether it has
    reported an uncaught exception.
    """

    worker: int
    status: int
    at: float
    asked_at: float | None = None
    words: str = ""
    last_line: str = ""
    has_raised: bool = False
    pid: int = 0

    @property
    def error(self) -> str:
        """The line that names the worker's exception; empty if there is none."""
        return exception_line(self.words) if self.words else ""

    @property
    def follows(self) -> bool:
        """Whether the worker failed because another worker had failed, according to its last traceback or line."""
        return bool(_FOLLOWING.match(first_exception_line(self.words or self.last_line)))

    @property
    def is_own(self) -> bool:
        """Whether the worker failed, and not because of a signal from the launcher."""
        if self.status == 0 or self.asked_at is None:
            return self.status != 0
        # After the launcher's SIGTERM, a nonzero status alone is not a failure, because a signal handler may exit
        # with it.
        return (bool(self.words) or self.has_raised) and (self.status > 0 or self.at < self.asked_at)

    @property
    def own_status(self) -> int:
        """The exit status; if the worker was killed after an uncaught exception, the status of that exception."""
        return _FAILED if self.is_own and self.status < 0 and self.asked_at is not None else self.status


def first_failure(endings: Sequence[Ending]) -> Ending | None:
    """Return the first failure, or None; failures caused by the launcher or by another worker come last.

    If workers made different calls, the failure of a worker whose call differs from the majority's is returned.
    """
    failures = sorted((e for e in endings if e.status != 0), key=lambda e: (not e.is_own, e.follows, e.at, e.worker))
    different = _different_callers(failures[0], endings) if failures else []
    return next((e for e in failures if e.worker in different and _CALLS in e.error), next(iter(failures), None))


def shown_failure(endings: Sequence[Ending], received: int | None) -> Ending | None:
    """Return the failure whose traceback is shown, if any: the first or, after Ctrl-C, one that delayed others."""
    _, late = interrupted_call(endings) if received == signal.SIGINT else ("", [])
    # A worker whose call failed because another worker was interrupted did not delay the job.
    return next((ending for ending in late if ending.words and not ending.follows), first_failure(endings))


def job_status(endings: Sequence[Ending], received: int | None) -> int:
    """Return the exit status of the job: the status of the worker that failed first.

    If the launcher had received a terminating signal, return 128 + `received`, unless no worker failed.
    """
    first = first_failure(endings)
    if first is None:
        return 0
    return shell_status(first.own_status) if received is None else shell_status(-received)


def summary(
    endings: Sequence[Ending], received: int | None, num_workers: int, most_errors: int = _MOST_ERRORS
) -> list[str]:
    """Return a few lines about the failure of a job, to print before its first traceback; none after SIGPIPE."""
    first = first_failure(endings)
    if first is None or received == signal.SIGPIPE:
        return []
    if received is not None:
        why = "Ctrl-C" if received == signal.SIGINT else signal_name(received)
        line = f"{why}: {'all ' if len(endings) > 1 else ''}{_number(len(endings))} ended"
        killed = sorted(ending.worker for ending in endings if ending.status == -signal.SIGKILL)
        if killed and received != signal.SIGINT:  # after SIGINT, a second Ctrl-C may have killed them earlier
            line += f"; {workers_text(killed)} had not ended within --grace-seconds and {_was(killed)} killed"
        text, _ = interrupted_call(endings) if received == signal.SIGINT else ("", [])
        shown = shown_failure(endings, received)
        return [line, text] if text and shown is not None and text not in shown.words else [line]
    others = _others(first, endings)
    causes: list[int] = []
    waited = _WAITED.search(first_exception_line(first.words))
    if finished := _finished_before(first, endings):
        line, hint = _uneven_calls(first.worker, finished, num_workers)
        causes, lines = finished, [line + others, hint]
    elif waited is not None and (late := _with_pids_in(waited[2], endings)):
        causes = [ending.worker for ending in late]
        lines = [f"{workers_text(causes)} of {num_workers} kept others waiting for {waited[1]}{others}"]
    elif causes := _different_callers(first, endings):
        lines = [f"{workers_text(causes)} of {num_workers} did not make the call that the others made{others}"]
    else:
        lines = [f"worker {first.worker} of {num_workers} {ending_text(first.own_status)}{others}"]
        lines += [hint] if (hint := _hint(first)) else []
    errors = _other_errors(first, endings, causes)
    more = len(errors) - most_errors
    return [*lines, *errors[:most_errors], *([f"and {more} others; --all-tracebacks shows them"] if more > 0 else [])]


def _finished_before(first: Ending, endings: Sequence[Ending]) -> list[int]:
    """Return the workers that exited with status 0 if the first failure is a call that one of them did not make."""
    error = first_exception_line(first.words or first.last_line)
    lost, closed = _LOST.search(error) if first.follows else None, _CLOSED.search(error)
    finished = [ending for ending in endings if ending.status == 0]
    is_cause = any(
        (lost is not None and ending.pid == int(lost[1])) or (closed is not None and ending.worker == int(closed[1]))
        for ending in finished
    )
    return sorted(ending.worker for ending in finished) if is_cause else []


def _uneven_calls(waiting: int, finished: Sequence[int], num_workers: int) -> tuple[str, str]:
    is_one = len(finished) == 1
    line = f"{workers_text(finished)} of {num_workers} {ending_text(0)} while others waited for "
    line += "its next call" if is_one else "their next call"
    hint = "a loop that some leave early, or a call that only some make"
    if is_one and num_workers > 2:
        hint = "a loop that this worker leaves early, or a call that it skips"
    elif not is_one and len(finished) == num_workers - 1:
        line = f"worker {waiting} of {num_workers} made a call that the others, which {ending_text(0)}, did not make"
        hint = "a loop that this worker leaves late, or a call that only it makes"
    return line, f"all workers must make the same calls: look for {hint}"


def _different_callers(first: Ending, endings: Sequence[Ending]) -> list[int]:
    """Return the workers whose call differs from the majority's, if the first failure is about different calls."""
    calls = {
        rank: call
        for ranks, call in (_CALL.findall(first.words) if _CALLS in first.error else [])
        for begin, last in _RANGE.findall(ranks)
        for rank in range(int(begin), int(last or begin) + 1)
    }
    ranks_per_worker, rest = divmod(len(calls), len(endings))
    is_of_workers = ranks_per_worker == 1 or f"the replicas {_CALLS}" in first.error
    # The error of a MirroredStrategy within one worker lists its replicas as ranks, and has a note with their number.
    is_local = f"the ranks {_CALLS}" in first.error and _IN_REPLICA.findall(first.words) == [str(len(calls))]
    if not calls or rest or not is_of_workers or is_local or max(calls) >= len(calls):
        return []  # the ranks of the group are not those of the workers, or the table omits some ranks
    found = {(rank // ranks_per_worker, call) for rank, call in calls.items()}
    (common, most), *others = Counter(call for _, call in found).most_common()
    return sorted({worker for worker, call in found if call != common and all(count < most for _, count in others)})


def interrupted_call(endings: Sequence[Ending]) -> tuple[str, list[Ending]]:
    """Return a text about the call that Ctrl-C interrupted, and the workers that had not made that call."""
    found = next((match for ending in endings if (match := _INTERRUPTED.search(ending.words))), None)
    return ("", []) if found is None else (found[1], _with_pids_in(found[2], endings))


def _with_pids_in(text: str, endings: Sequence[Ending]) -> list[Ending]:
    pids = set(map(int, _PID.findall(text)))
    return sorted((ending for ending in endings if ending.pid in pids), key=lambda ending: ending.worker)


def workers_text(workers: Sequence[int]) -> str:
    """Return the names of workers, joined for a message."""
    if len(workers) == 1:
        return f"worker {workers[0]}"
    *texts, last = number_ranges(workers)
    return f"workers {', '.join(texts)} and {last}" if texts else f"workers {last}"


def _number(count: int) -> str:
    return "worker has" if count == 1 else f"{count} workers have"


def _others(first: Ending, endings: Sequence[Ending]) -> str:
    ended = sorted(e.worker for e in endings if e is not first and not e.is_own and e.status)
    return f"; {workers_text(ended)} {_was(ended)} terminated" if ended else ""


def _was(workers: Sequence[int]) -> str:
    return "was" if len(workers) == 1 else "were"


def _hint(first: Ending) -> str:
    if first.own_status == -signal.SIGKILL:
        return (
            "ringlet did not send this signal: it came from the worker, another program, or the kernel when memory "
            "ran out (see dmesg)"
        )
    if "Unknown backend type ringlet" in (first.error or first.last_line):
        return "write import ringlet.torch before init_process_group: it registers the backend"
    if not first.words and first.last_line:
        return f"its last line on standard error: {first.last_line[:_LONGEST_QUOTE]}"
    if -first.own_status in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS) and not first.words:
        return "PYTHONFAULTHANDLER=1 prints the stack of the crash"
    return ""


def _other_errors(first: Ending, endings: Sequence[Ending], causes: Sequence[int]) -> list[str]:
    """Return the errors of the other workers that failed by themselves, grouped by equal text.

    If there are `causes`, workers that are not among them are reported as failing because of the first failure.
    """
    groups: dict[tuple[bool, str], list[int]] = {}
    for ending in endings:
        if ending is not first and ending.is_own:
            error = ending.error or ending_text(ending.status)
            follows = ending.follows or (bool(causes) and ending.worker not in causes)
            insort(groups.setdefault((follows, error), []), ending.worker)
    return [
        f"{workers_text(workers)} failed {'because of it' if follows else 'too'}: {error[:_LONGEST_QUOTE]}"
        for (follows, error), workers in groups.items()
    ]
