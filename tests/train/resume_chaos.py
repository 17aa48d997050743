"""Training that is asked to end, or killed, at random moments, and restarted (`tests.chaos`).

Threads, processes, and processes with threads, over a shuffled, prefetched dataset, also with forked loader processes.
Each round ends with the same bits as an undisturbed training; a job that was asked to end has saved its last step. If
the number of workers changes after each signal, every row of an epoch is used once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import random
import signal
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ringlet
import ringlet.strategy.multi_worker.multi_worker_extended  # loaded once for all jobs
from ringlet.data import Dataset
from ringlet.errors import WorkerLostError
from ringlet.experimental import PreemptionCheckpointHandler
from ringlet.train import Checkpoint, CheckpointManager, latest_checkpoint, protect_loader_process, resume
from tests.processes.forked import Job
from tests.strategy.workers import environment

__all__ = ["EVENTS", "run_round"]

PATIENCE_SECONDS = 120.0
EXIT_STATUS = 42

# Workers and replicas of each.
PLACES = {"threads": (1, 2), "processes": (2, 1), "both": (2, 2), "four processes": (4, 1)}
EVENTS = [*PLACES, "other numbers of workers"]
NUM_ROWS = 401


@dataclass(frozen=True)
class Plan:
    """A training job, and how it saves."""

    seed: int
    workers: int
    replicas: int
    num_steps: int
    save_every: int
    is_in_background: bool
    uses_handler: bool  # TensorFlow's, which takes the batch before the run
    has_loaders: bool

    @classmethod
    def draw(cls, seed: int, event: str) -> Plan:
        chance = random.Random(f"{seed} {event} plan")
        flags = [chance.random() < 0.5 for _ in range(3)]
        return cls(seed, *PLACES[event], chance.randint(30, 60), chance.randint(2, 9), *flags)


class Loaders:
    """Two forked processes that compute rows, like the workers of a DataLoader."""

    def __init__(self) -> None:
        self._free = queue.Queue[socket.socket]()
        mine: list[socket.socket] = []
        for _ in range(2):
            each, other = socket.socketpair()
            mine.append(each)
            if os.fork() == 0:
                for inherited in mine:
                    inherited.close()
                protect_loader_process()
                with contextlib.suppress(ConnectionError):  # the worker was killed
                    while text := other.recv(8):
                        other.send(struct.pack("d", struct.unpack("q", text)[0] * 0.1))
                os._exit(0)
            other.close()
            self._free.put(each)

    def __call__(self, row: Any) -> np.float64:
        loader = self._free.get()
        loader.send(struct.pack("q", int(row)))
        value = np.float64(struct.unpack("d", loader.recv(8))[0])
        self._free.put(loader)
        return value


def start(index: int, workers: int, replicas: int, job_id: str) -> Any:
    """Return the strategy of a worker."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setpgid(0, 0)
    logging.getLogger("ringlet.train").setLevel(logging.ERROR)
    if workers == 1:
        return ringlet.MirroredStrategy(replicas)
    os.environ.update(environment(index, workers, replicas, f"resumes {os.getppid()} {job_id}"))
    options = ringlet.experimental.CommunicationOptions(timeout_seconds=PATIENCE_SECONDS)
    return ringlet.MultiWorkerMirroredStrategy(communication_options=options)


def body_of(plan: Plan, folder: Path, attempt: int) -> Callable[[int, Callable[[Any], None]], None]:
    def body(index: int, tell: Callable[[Any], None]) -> None:
        strategy = start(index, plan.workers, plan.replicas, f"{folder.name} {attempt}")
        try:
            tell(train(plan, strategy, folder, tell))
        except WorkerLostError:
            tell("lost")

    return body


def train(plan: Plan, strategy: Any, folder: Path, tell: Callable[[Any], None]) -> str:
    """Make the steps that remain; return the bits of the weights."""
    with strategy.scope():
        weights = ringlet.Variable(np.zeros(3))
    compute = Loaders() if plan.has_loaders else lambda row: row * 0.1
    rows = Dataset.range(97).shuffle(50, seed=plan.seed).map(compute, num_parallel_calls=2)
    batches = rows.repeat().batch(2 * strategy.num_replicas_in_sync, drop_remainder=True).prefetch(2)
    data = iter(strategy.experimental_distribute_dataset(batches))
    checkpoint = Checkpoint(weights=weights, data=data)
    manager = CheckpointManager(checkpoint, folder, 2, in_background=plan.is_in_background)

    def step(batch: Any) -> None:
        mean = ringlet.get_replica_context().all_reduce("MEAN", np.mean(batch))
        weights.assign(weights * 0.9 + np.array([mean, 1.0, np.sqrt(mean)]))

    if plan.uses_handler:
        handler = PreemptionCheckpointHandler(getattr(strategy, "cluster_resolver", None), manager)
        for number in range(handler.total_run_calls, plan.num_steps):
            handler.run(strategy.run, step, args=(next(data),))
            tell(number)
            if (number + 1) % plan.save_every == 0:
                manager.save()
    else:
        for number in resume(manager, plan.num_steps, save_every=plan.save_every):
            strategy.run(step, args=(next(data),))
            tell(number)
    manager.sync()
    return weights.numpy().tobytes().hex()


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Train undisturbed, then disturbed several times; return the faults."""
    if event not in PLACES:
        return _change_the_number(seed, folder)
    plan, chance = Plan.draw(seed, event), random.Random(f"{seed} {event}")
    undisturbed = _finish(plan, folder / "undisturbed", 0)
    saves, wrong = folder / "saves", []
    attempts = chance.randint(2, 4)
    for attempt in range(attempts):
        wrong += _disturb(plan, saves, attempt, chance)
    bits = _finish(plan, saves, attempts)
    if bits != undisturbed:
        wrong.append(f"{plan}: the bits are {bits} instead of {undisturbed}")
    return wrong


def _change_the_number(seed: int, folder: Path) -> list[str]:
    """Read one epoch with several numbers of workers, one after the other; return the faults of the rows."""
    chance, rows, numbers, workers = random.Random(seed), list[int](), list[int](), 0
    while len(numbers) < 50:
        workers = chance.choice([number for number in (1, 2, 3, 4) if number != workers])
        numbers.append(workers)
        job = Job(workers, _reader_of(seed, workers, folder, len(numbers)))
        victim = chance.randrange(workers)
        told = [job.told(victim, time.monotonic() + PATIENCE_SECONDS) for _ in range(chance.randint(1, 6))]
        job.kill(victim, signal.SIGTERM)
        every = [*(answer for answer in told if answer is not None), *_told(job, victim)]
        every += [answer for index in range(workers) if index != victim for answer in _told(job, index)]
        statuses = job.wait(PATIENCE_SECONDS)
        rows += [row for answer in every for row in answer if isinstance(row, int)]
        if statuses in ([0] * workers, [-signal.SIGTERM if index == victim else 0 for index in range(workers)]):
            break
        if statuses != [EXIT_STATUS] * workers:
            return [f"after {numbers} workers the statuses are {statuses}, and {every} was told"]
    return [] if sorted(rows) == list(range(NUM_ROWS)) else [f"with {numbers} workers the rows are {sorted(rows)}"]


def _reader_of(seed: int, workers: int, folder: Path, attempt: int) -> Callable[[int, Callable[[Any], None]], None]:
    def body(index: int, tell: Callable[[Any], None]) -> None:
        strategy = start(index, workers, 1, str(attempt))
        dataset = Dataset.range(NUM_ROWS).shuffle(NUM_ROWS, seed=seed).batch(8).prefetch(2)
        data = iter(strategy.distribute_dataset(dataset))
        manager = CheckpointManager(Checkpoint(data=data), folder / "saves", 2)
        for _ in resume(manager):
            batch = next(data, None)
            if batch is None:
                break
            tell(strategy.local_results(batch)[0].tolist())
            time.sleep(0.002)  # so that the signal arrives before the end of the epoch
        os._exit(0)

    return body


def _told(job: Job, index: int) -> list[Any]:
    told, end = [], time.monotonic() + PATIENCE_SECONDS
    while (answer := job.told(index, end)) not in (None, "nothing"):
        told.append(answer)
    return told


def _finish(plan: Plan, folder: Path, attempt: int) -> list[Any]:
    """Train to the end; return the last message of each worker, and the exit statuses."""
    job = Job(plan.workers, body_of(plan, folder, attempt))
    told = [_told(job, index)[-1:] for index in range(plan.workers)]
    return [*told, job.wait(PATIENCE_SECONDS)]


def _disturb(plan: Plan, folder: Path, attempt: int, chance: random.Random) -> list[str]:
    """Start a training and signal one of its workers, or all; return the faults of its end."""
    is_kill, victim = chance.random() < 0.4, chance.randrange(plan.workers)
    victims = range(plan.workers) if chance.random() < 0.2 else [victim]
    signals = [signal.SIGKILL] if is_kill else [signal.SIGTERM] * chance.randint(1, 2)
    send = os.killpg if chance.random() < 0.5 else os.kill
    job = Job(plan.workers, body_of(plan, folder, attempt))
    end = time.monotonic() + PATIENCE_SECONDS
    told = [job.told(victim, end) for _ in range(chance.randint(1, 8))]
    time.sleep(chance.uniform(0, 0.01))
    for number in signals:
        for index in victims:
            with contextlib.suppress(ProcessLookupError):  # all of the group have ended
                send(job.pids[index], number)
    every = [(told if index == victim else []) + _told(job, index) for index in range(plan.workers)]
    statuses = job.wait(PATIENCE_SECONDS)
    numbers = [answer for answers in every for answer in answers if isinstance(answer, int)]
    cause = f"{send.__name__} of {signals} to {list(victims)}"
    what = f"{plan}: after {cause} the statuses are {statuses}, and {every} was told"
    if any(isinstance(answers[-1:][0], list) for answers in every if answers):
        return [what]
    made = max(numbers, default=-1) + 1
    if made == plan.num_steps or statuses == [0] * plan.workers:
        return []  # it had made all steps before, or in this attempt
    if not is_kill:
        least, is_right = made, statuses == [EXIT_STATUS] * plan.workers
    else:
        behind = plan.save_every * (1 + plan.is_in_background)
        least, is_right = made - behind, all(statuses[index] in (-signal.SIGKILL, 0) for index in victims)
    saved = _steps_saved(folder)
    return [] if is_right and saved >= least else [f"{what}; {saved} steps are saved"]


def _steps_saved(folder: Path) -> int:
    """Return the number of steps in the newest checkpoint, read in a separate process."""

    def body(_: int, tell: Callable[[Any], None]) -> None:
        checkpoint = Checkpoint(checkpointed_runs=ringlet.Variable(0))
        checkpoint.restore(latest_checkpoint(folder)).expect_partial()
        tell(int(checkpoint.checkpointed_runs))

    job = Job(1, body)
    (saved,) = _told(job, 0)
    job.wait(PATIENCE_SECONDS)
    return int(saved)
