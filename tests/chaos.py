"""Random jobs of every kind, disturbed at random moments by signals, errors and hangs.

    python -m tests.chaos strategies --minutes 30 --seed 1

A kind is a module with `EVENTS`, the possible disturbances of a job, and ``run_round(seed, event, folder)``, which runs
one job and returns its faults; everything else about the job is drawn from the seed. Each round must leave processes,
threads, descriptors and files as they were before it.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.processes.forked import footprint
from tests.processes.harness import eventually

__all__ = ["KINDS", "main", "run", "run_round"]

KINDS = {
    "processes": "tests.processes.chaos",
    "strategies": "tests.strategy.chaos",
    "launcher": "tests.launcher.chaos",
    "launch": "tests.launcher.launch_chaos",
    "coordinator": "tests.coordinator.chaos",
    "saves": "tests.train.chaos",
    "resumes": "tests.train.resume_chaos",
    "torch": "tests.frameworks.chaos",
}
_LEFT_SECONDS = 30.0
_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>


def run_round(kind: str, seed: int, event: str) -> list[str]:
    """Run one job; return its faults, and what it has left behind."""
    module: Any = importlib.import_module(KINDS[kind])
    before = footprint()
    try:
        with tempfile.TemporaryDirectory(prefix="chaos") as folder:
            wrong = list(module.run_round(seed, event, Path(folder)))
    except Exception:
        wrong = [traceback.format_exc()]
    left: dict[str, Any] = {}

    def is_clean() -> bool:
        left.update(footprint())
        # Those of OpenBLAS end when this process forks.
        return left["threads"] <= before["threads"] and left == before | {"threads": left["threads"]}

    if not eventually(is_clean, _LEFT_SECONDS):
        wrong.append(f"left behind: {before} -> {left}")
    for pid in left["children"].keys() - before["children"].keys():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return [f"{kind} seed {seed} {event!r}: {text}" for text in wrong]


def run(kind: str, rounds: int, events: Sequence[str] = ()) -> list[str]:
    """Run rounds with each event in turn, by default all events; return the faults."""
    events = events or importlib.import_module(KINDS[kind]).EVENTS
    with _own_world():
        return [text for seed in range(rounds) for text in run_round(kind, seed, events[seed % len(events)])]


@contextlib.contextmanager
def _own_world() -> Any:
    """Use a separate folder for temporary files, adopt orphaned processes, and ignore no signal."""
    for number in (signal.SIGINT, signal.SIGHUP):  # as under nohup, and in the background of a shell
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # which ends all jobs
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TMPDIR"] = tempfile.tempdir = folder
        yield


def main() -> int:
    """Run rounds of one kind for some time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the next ones follow")
    parser.add_argument("--event", default="", help="the only thing that happens; by default each round draws one")
    options = parser.parse_args()
    events = [options.event] if options.event else importlib.import_module(KINDS[options.kind]).EVENTS
    rounds, failed, longest = Counter[str](), Counter[str](), 0.0
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    with _own_world():
        while (begin := time.monotonic()) < end:
            event = random.Random(f"{seed} event").choice(events)
            wrong = run_round(options.kind, seed, event)
            print(*(text[-4000:] for text in wrong), sep="\n", end="\n" if wrong else "", flush=True)
            rounds[event] += 1
            failed[event] += bool(wrong)
            longest = max(longest, time.monotonic() - begin)
            seed += 1
    print(f"{options.kind}, seeds {options.seed} to {seed - 1}, the longest round {longest:.1f} s: {dict(rounds)}")
    print(f"{failed.total()} of {rounds.total()} rounds failed: {dict(+failed)}")
    return int(failed.total() > 0)


if __name__ == "__main__":
    sys.exit(main())
