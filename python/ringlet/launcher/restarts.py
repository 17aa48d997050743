"""Restarts: runs a job again after a failure, with back-off, and reports what each attempt did."""

from __future__ import annotations

import dataclasses
import signal
import sys
import time
from collections.abc import Collection

from ringlet.launcher.run_workers import Job, Outcome, run_workers

__all__ = ["run_with_restarts"]

# The delay doubles with each failure, and begins anew after an attempt that lasted long.
_FIRST_DELAY_SECONDS = 1.0
_LONGEST_DELAY_SECONDS = 60.0
_LONG_SECONDS = 600.0


def run_with_restarts(job: Job, restarts: int, final: Collection[int]) -> int:
    """Run a job, and run it again after a failure, `restarts` times at most; return the last exit status.

    A job that a signal has stopped, or that ends with a status of `final`, is not run again.
    """
    delay, attempts = _FIRST_DELAY_SECONDS, list[tuple[float, Outcome]]()
    while True:
        begin = time.monotonic()
        outcome = _run(dataclasses.replace(job, attempt=len(attempts) + 1))
        seconds = time.monotonic() - begin
        attempts.append((seconds, outcome))
        if outcome.status == 0 or outcome.is_stopped or outcome.status in final or len(attempts) > restarts:
            break
        delay = _FIRST_DELAY_SECONDS if seconds > _LONG_SECONDS else delay
        _print(f"attempt {len(attempts)} of {restarts + 1} failed after {seconds:.1f} s; the next in {delay:g} s")
        try:
            time.sleep(delay)
        except KeyboardInterrupt:
            _report(attempts)
            return 128 + signal.SIGINT
        delay = min(2 * delay, _LONGEST_DELAY_SECONDS)
    if restarts and outcome.status in final:
        _print(f"status {outcome.status} is not restarted (--no-restart)")
    if len(attempts) > 1:
        _report(attempts)
    return outcome.status


def _run(job: Job) -> Outcome:
    if not job.hosts:
        return run_workers(job)
    from ringlet.launcher.run_on_hosts import run_on_hosts

    return run_on_hosts(job)


def _report(attempts: list[tuple[float, Outcome]]) -> None:
    for number, (seconds, outcome) in enumerate(attempts, 1):
        _print(f"attempt {number}, {seconds:.1f} s: {outcome.reason}")


def _print(line: str) -> None:
    print(f"ringlet run: {line}", file=sys.stderr, flush=True)
