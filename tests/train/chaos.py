"""Programs that save checkpoints all the time, disturbed at random moments (`tests.chaos`).

One program, two that share a folder, or two workers of a strategy. After any disturbance, the last checkpoint whose
save returned, or a newer one, is restored; every file is complete; the next save removes leftover files.
"""

from __future__ import annotations

import logging
import mmap
import os
import random
import signal
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ringlet
import ringlet.strategy.multi_worker.multi_worker_extended  # loaded once for all jobs
from ringlet import VariableAggregation, VariableSynchronization
from ringlet.errors import DeadlineExceededError, WorkerLostError
from ringlet.train import Checkpoint, CheckpointManager, latest_checkpoint
from tests.processes.forked import Job
from tests.strategy.workers import environment

__all__ = ["EVENTS", "run_round"]

# Longer than this, an answer counts as a hang, however busy the machine is.
PATIENCE_SECONDS = 120.0
STALL_SECONDS = 2.0  # the time-out of jobs in which a worker stays stopped


@dataclass(frozen=True)
class Event:
    """The programs that save, and their disturbance."""

    signals: tuple[int, ...]
    programs: int = 1
    are_workers: bool = False
    victim: int = 0

    @property
    def is_kill(self) -> bool:
        return signal.SIGKILL in self.signals

    @property
    def is_stall(self) -> bool:
        return self.signals[-1:] == (signal.SIGSTOP,)


PAUSE = (signal.SIGSTOP, signal.SIGCONT) * 5
KILL, KILL_STOPPED, STALL = (signal.SIGKILL,), (signal.SIGSTOP, signal.SIGKILL), (signal.SIGSTOP,)
TABLE = {
    "kill": Event(KILL),
    "kill stopped": Event(KILL_STOPPED),
    "pause": Event(PAUSE),
    "kill one of two": Event(KILL, programs=2),
    "kill one of two stopped": Event(KILL_STOPPED, programs=2),
    "pause one of two": Event(PAUSE, programs=2),
    "kill chief": Event(KILL, programs=2, are_workers=True),
    "kill worker": Event(KILL, programs=2, are_workers=True, victim=1),
    "pause chief": Event(PAUSE, programs=2, are_workers=True),
    "stall chief": Event(STALL, programs=2, are_workers=True),
    "stall worker": Event(STALL, programs=2, are_workers=True, victim=1),
}
EVENTS = list(TABLE)


class NoMessages(logging.Handler):
    """Rejects log records: no event of these jobs may log a message."""

    def emit(self, record: logging.LogRecord) -> None:
        raise AssertionError(record.getMessage())


class Program:
    """The saved objects: the number of the save, in several forms."""

    def __init__(self, seed: int, folder: Path, name: str) -> None:
        logging.getLogger("ringlet.train").handlers = [NoMessages()]
        chance = random.Random(seed)
        self.count = int(2 ** chance.uniform(0, 19))
        self.keep = chance.randint(1, 3)
        self.values = ringlet.Variable(np.zeros(self.count))
        # Of which each worker saves its own part.
        self.shares = ringlet.Variable(
            0, synchronization=VariableSynchronization.ON_READ, aggregation=VariableAggregation.SUM
        )
        self.checkpoint = Checkpoint(values=self.values, shares=self.shares, number=0, parts=[b"", {"text": ""}])
        self.manager = CheckpointManager(self.checkpoint, folder, self.keep, checkpoint_name=name)

    def save(self, number: int, workers: int = 1) -> None:
        """Save a number, the sum of the shares of all workers."""
        self.values.assign(np.full(self.count, float(number)))
        ringlet.get_strategy().run(lambda: self.shares.assign(_share(number, workers)) is None)
        self.checkpoint.number = number
        self.checkpoint.parts = [bytes([number % 256]) * 1000, {"text": str(number) * 1000}]
        self.manager.save()

    def restored(self) -> int:
        """Restore the newest checkpoint; return its number, or -1 if it mixes several saves."""
        self.manager.restore_or_initialize()
        number = int(self.checkpoint.number)
        parts = [bytes([number % 256]) * 1000, {"text": str(number) * 1000}] if number else [b"", {"text": ""}]
        is_whole = (self.values.numpy() == number).all() and self.checkpoint.parts == parts
        return number if is_whole and int(self.shares.numpy()) == number else -1


def _share(number: int, workers: int) -> int:
    """Return this replica's share: 1, except the last, which has the remainder."""
    replica = int(ringlet.get_replica_context().replica_id_in_sync_group)
    return number - workers + 1 if replica == workers - 1 else 1


def body_of(seed: int, event: Event, folder: Path, phase: mmap.mmap) -> Callable[[int, Callable[[Any], None]], None]:
    def body(index: int, tell: Callable[[Any], None]) -> None:
        if not event.are_workers:
            program = Program(seed, folder, f"program{index}")
            for number in range(1, 10**9):
                program.save(number)
                tell(number)
                if phase[0]:
                    break
            tell("done")
            return
        os.environ.update(environment(index, event.programs, 1, f"saves {os.getppid()}"))
        seconds = STALL_SECONDS if event.is_stall else 2 * PATIENCE_SECONDS
        options = ringlet.experimental.CommunicationOptions(timeout_seconds=seconds)
        strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
        try:
            with strategy.scope():
                program = Program(seed, folder, "program0")
                for number in range(1, 10**9):
                    program.save(number, event.programs)
                    tell(number)
                    if strategy.reduce("SUM", np.int64(phase[0]), axis=None):
                        break
            tell("done")
        except (WorkerLostError, DeadlineExceededError) as error:
            tell([type(error).__name__, str(error)])

    return body


def check_body(seed: int, event: Event, folder: Path, saved: list[int]) -> Callable[[int, Callable[[Any], None]], None]:
    """Return a function that checks the checkpoints afterwards, and that saving continues."""

    def body(index: int, tell: Callable[[Any], None]) -> None:
        warnings.simplefilter("error")
        wrong = []
        names = [f"program{i}" for i in range(1 if event.are_workers else event.programs)]
        floors = [max(saved)] if event.are_workers else saved
        if max(saved) and latest_checkpoint(folder) is None:
            wrong.append("there is no newest checkpoint")
        for file in sorted(folder.glob("*.safetensors")):
            program = Program(seed, folder / "none", "none")
            program.checkpoint.read(file).expect_partial()
            number = int(program.checkpoint.number)
            if not (program.values.numpy() == number).all() or int(program.shares.numpy()) != number:
                wrong.append(f"{file.name} is not whole")
        for name, floor in zip(names, floors, strict=True):
            program = Program(seed, folder, name)
            restored = program.restored()
            if not (floor <= restored <= floor + 1 or (event.programs > 1 and not event.are_workers)):
                wrong.append(f"{name}: {floor} was saved, {restored} is restored")
            if restored < 0:
                wrong.append(f"{name}: what is restored is of several saves")
            program.save(floor + 10)
            again = Program(seed, folder, name)
            if again.restored() != floor + 10:
                wrong.append(f"{name}: what was saved afterwards is not restored, but {again.checkpoint.number}")
        left = sorted(path.name for path in folder.iterdir())
        # A program that was killed between a file and the note of it has left a whole file that only the same name, in
        # its next life, replaces.
        most = program.keep + 1 + (event.is_kill and len(names) > 1)
        if [name for name in left if name.startswith(".")] or len(left) > most:
            wrong.append(f"left in the folder, of which {program.keep} are kept: {left}")
        tell(wrong)

    return body


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run programs that save in one folder; return their faults, and those of the checkpoints."""
    phase = mmap.mmap(-1, 1)
    each, chance = TABLE[event], random.Random(f"{seed} {event}")
    saves = folder / "saves"
    saves.mkdir()
    job = Job(each.programs, body_of(seed, each, saves, phase))
    saved = [0] * each.programs
    try:
        wrong = _disturb(each, job, saved, phase, chance)
    finally:
        job.kill(each.victim, signal.SIGCONT)
        statuses = job.wait(PATIENCE_SECONDS)
        phase.close()
    expected = [-signal.SIGKILL if each.is_kill and i == each.victim else 0 for i in range(each.programs)]
    if statuses != expected:
        wrong.append(f"the exit statuses are {statuses}")
    if not wrong:
        checker = Job(1, check_body(seed, each, saves, saved))
        answer = checker.told(0, time.monotonic() + PATIENCE_SECONDS)
        wrong += answer if isinstance(answer, list) else [f"the checks told {answer}"]
        checker.wait(PATIENCE_SECONDS)
    return wrong


def _disturb(event: Event, job: Job, saved: list[int], phase: mmap.mmap, chance: random.Random) -> list[str]:
    """Disturb the job, and record the last saves; return the faults of how the programs ended."""

    def told(index: int) -> Any:
        """Return the message of a program that is not the number of a save."""
        while isinstance(answer := job.told(index, time.monotonic() + PATIENCE_SECONDS), int):
            saved[index] = answer
        return answer

    for index in range(event.programs):
        if (answer := job.told(index, time.monotonic() + PATIENCE_SECONDS)) != 1:
            return [f"program {index} told {answer}"]
        saved[index] = 1
    time.sleep(chance.uniform(0, 0.1))
    for number in event.signals:
        job.kill(event.victim, number)
        time.sleep(chance.uniform(0, 0.05))
    if not event.is_stall and not (event.is_kill and event.are_workers):
        phase[0] = 1
    answers = {index: told(index) for index in range(event.programs) if index != event.victim}
    if event.is_stall:
        job.kill(event.victim, signal.SIGCONT)
    answer = told(event.victim)
    wrong = [f"program {index} told {answer}" for index, answer in answers.items() if _is_wrong(event, answer, job)]
    if event.is_kill:
        is_right = answer is None
    elif event.is_stall:  # it may raise what its own clock says, or what the other has left
        is_right = isinstance(answer, list) and answer[0] != "raised"
    else:
        is_right = answer == "done"
    return wrong if is_right else [*wrong, f"the disturbed program told {answer}"]


def _is_wrong(event: Event, answer: Any, job: Job) -> bool:
    """Return whether the message of an undisturbed program is wrong."""
    if not event.are_workers or not (event.is_kill or event.is_stall):
        return bool(answer != "done")
    kind, fact = ("WorkerLostError", "SIGKILL") if event.is_kill else ("DeadlineExceededError", "stopped")
    return not (
        isinstance(answer, list)
        and answer[0] == kind
        and fact in answer[1]
        and f"(pid {job.pids[event.victim]}" in answer[1]
    )
