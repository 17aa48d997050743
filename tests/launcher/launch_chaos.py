"""Random calls of `ringlet.launch`, whose workers or caller are disturbed (`tests.chaos`)."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ringlet
import ringlet.launcher.launch_job  # loaded once for all jobs
from ringlet.errors import DeadlineExceededError, WorkerLostError
from tests.processes.forked import Job, footprint
from tests.processes.harness import eventually

__all__ = ["EVENTS", "run_round", "train"]

# Longer than this, an answer counts as a hang, however busy the machine is.
PATIENCE_SECONDS = 120.0
STALL_SECONDS = 10.0  # longer than workers start one after the other on a busy machine
KILL, KILL_STOPPED, STALL = (signal.SIGKILL,), (signal.SIGSTOP, signal.SIGKILL), (signal.SIGSTOP,)
PAUSE = (signal.SIGSTOP, signal.SIGCONT) * 5
# Signals, whether the caller gets them rather than a worker, and what `launch` raises.
TABLE: dict[str, tuple[tuple[int, ...], bool, str]] = {
    "kill worker": (KILL, False, "WorkerLostError"),
    "kill stopped worker": (KILL_STOPPED, False, "WorkerLostError"),
    "pause worker": (PAUSE, False, ""),
    "stall worker": (STALL, False, "DeadlineExceededError"),
    "raise": ((), False, "ValueError"),
    "kill caller": (KILL, True, "killed"),
    "pause caller": (PAUSE, True, ""),
    "interrupt": ((signal.SIGINT,), True, "KeyboardInterrupt"),
}
EVENTS = list(TABLE)


def train(folder: Path, fails_on: int) -> float:
    """Train on all workers until the folder contains "end"; write the pid of this process to the folder."""
    strategy = ringlet.MultiWorkerMirroredStrategy()
    worker = strategy.cluster_resolver.task_id

    def step() -> Any:
        return ringlet.get_replica_context().all_reduce("SUM", np.array([1.0, (folder / "end").exists()]))

    while True:
        total = strategy.experimental_local_results(strategy.run(step))[0]
        if total[0] != strategy.num_replicas_in_sync:
            return -1.0
        if not (folder / str(worker)).exists():
            (folder / "new").mkdir(exist_ok=True)
            (folder / "new" / str(worker)).write_text(str(os.getpid()), "ascii")
            (folder / "new" / str(worker)).rename(folder / str(worker))
        if worker == fails_on:
            raise ValueError("chaos")
        if total[1]:
            return float(total[0])


def body_of(folder: Path, event: str, size: int, replicas: int, victim: int) -> Callable[[int, Any], None]:
    def body(index: int, tell: Callable[[Any], None]) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stalls = {"RINGLET_TIMEOUT_SECONDS": str(STALL_SECONDS)} if "stall" in event else {}
        arguments = folder, victim if event == "raise" else -1
        before = footprint()
        try:
            tell(ringlet.launch(train, n=size, args=arguments, replicas=replicas, environment=stalls))
        except (WorkerLostError, DeadlineExceededError, ValueError, KeyboardInterrupt) as error:
            notes = "\n".join(getattr(error, "__notes__", ()))
            tell([type(error).__name__, f"{error}\n{notes}", getattr(error, "rank", -1), getattr(error, "reason", "")])

        def is_clean() -> bool:
            return footprint() | {"threads": 0} == before | {"threads": 0}

        tell("clean" if eventually(is_clean) else f"left behind: {before} -> {footprint()}")

    return body


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run one job; return its faults."""
    chance = random.Random(f"{seed} {event}")
    signals, is_caller, kind = TABLE[event]
    size, replicas = chance.randint(2, 3), chance.choice([1, 1, 2])
    victim = chance.randrange(size)
    files = [folder / str(worker) for worker in range(size)]
    job = Job(1, body_of(folder, event, size, replicas, victim))
    wrong = []
    try:
        if event != "raise" and not eventually(lambda: all(file.exists() for file in files), PATIENCE_SECONDS):
            return [f"did not start: {job.told(0, 0.0)}"]
        time.sleep(chance.uniform(0, 0.2))
        for number in signals:
            os.kill(job.pids[0] if is_caller else int(files[victim].read_text("ascii")), number)
            time.sleep(chance.uniform(0, 0.2))
        if not kind:
            (folder / "end").touch()
        if kind == "killed":
            expected = -signal.SIGKILL
        else:
            expected = 0
            answer = job.told(0, time.monotonic() + PATIENCE_SECONDS)
            if not _is_right(answer, kind, size * replicas, victim, files):
                wrong.append(f"victim {victim} of {size} with {replicas}: {answer}")
            elif (answer := job.told(0, time.monotonic() + PATIENCE_SECONDS)) != "clean":
                wrong.append(answer)
    finally:
        status = job.wait(0.0 if wrong else PATIENCE_SECONDS)[0]
    return wrong if status == expected or wrong else [f"the exit status is {status}"]


def _is_right(answer: Any, kind: str, total: int, victim: int, files: list[Path]) -> bool:
    if not kind:
        return bool(answer == [float(total)] * len(files))
    if not isinstance(answer, list) or len(answer) != 4 or answer[0] != kind:
        return False
    _, text, lost, reason = answer
    if kind == "WorkerLostError":
        return bool(lost == victim and reason == "was killed by SIGKILL (signal 9)")
    if kind == "DeadlineExceededError":
        return f"(pid {files[victim].read_text('ascii')}, stopped" in text
    return kind == "KeyboardInterrupt" or f"worker {victim}" in text
