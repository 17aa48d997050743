"""Random jobs of random collectives, disturbed at random moments by SIGKILL, SIGSTOP and SIGCONT (`tests.chaos`).

Every round is one job: ranks, arrays, calls and the disturbance are drawn from its seed. A job that is only paused must
return correct values. If ranks are killed, or stopped for longer than the time-out, the others must raise an error that
names one of them; they free their arrays, allocate the memory again and fill it; stopped ranks are then continued, and
must raise, end, and leave every byte of the reused memory unchanged. Nothing may be left behind. A report must name a
rank that is stopped, hangs or is slow, with the line that it executes; a slow rank is not an error.
"""

from __future__ import annotations

import logging
import mmap
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np

import ringlet
from ringlet.collectives import Algorithm, Member, init_process_group
from ringlet.errors import CollectiveAborted, DeadlineExceededError, WorkerLostError
from tests.processes.forked import Job

__all__ = ["EVENTS", "Plan", "run_plan", "run_round"]

Array = np.ndarray[Any, Any]

# Longer than this, an answer counts as a hang, however busy the machine is.
PATIENCE_SECONDS = 120.0
STALL_SECONDS = 1.5  # the time-out of jobs in which a rank stays stopped, or hangs
REPORT_SECONDS = 0.4  # until a stall is reported there
# What a report has of the rank that the others wait for, and of what it executes.
REPORTS = {
    "stall": ("(pid {pid}, stopped", ": stopped, by a signal or a debugger\n"),
    "stall two": ("(pid {pid}, stopped", ": stopped, by a signal or a debugger\n"),
    "hang": ("(pid {pid}, after ", " in _hang: lock.acquire(timeout=0.05)\n"),
    "slow": ("(pid {pid}, after ", " in _be_slow: time.sleep(3 * REPORT_SECONDS)\n"),
}
EVENTS = [*REPORTS, "kill", "kill two", "pause", "kill stopped", "kill beside stopped"]
DTYPES = ["int8", "uint16", "int32", "float16", "float32", "float64", "complex64", ml_dtypes.bfloat16]
OPERATIONS = ["all_reduce", "all_reduce", "many", "broadcast", "all_gather", "gather", "reduce_scatter"]
OPERATIONS += ["all_to_all", "permute", "scan", "reduce", "plan", "barrier"]
PATTERN = 0x77


@dataclass
class Plan:
    """The program and the disturbance of one job."""

    seed: int
    event: str
    num_ranks: int
    dtype: np.dtype[Any]
    count: int
    crosses: str
    is_split: bool
    calls: int  # made before something happens
    pause: float
    victims: list[int]

    @classmethod
    def draw(cls, seed: int, event: str, most_ranks: int = 5) -> Plan:
        chance = random.Random(f"{seed} {event}")
        num_ranks = chance.randint(3 if event.endswith("two") or "beside" in event else 2, most_ranks)
        dtype = np.dtype(chance.choice(DTYPES))
        blocks = int(2 ** chance.uniform(0, 23)) // dtype.itemsize // num_ranks
        return cls(
            seed,
            event,
            num_ranks,
            dtype,
            max(blocks, 1) * num_ranks,
            chance.choice("110"),
            num_ranks > 2 and chance.random() < 0.4,
            chance.choice([0, 1, chance.randrange(30)]),
            chance.uniform(0, 0.02),
            chance.sample(range(num_ranks), 2 if event.endswith("two") or "beside" in event else 1),
        )

    @property
    def stops(self) -> list[int]:
        """The ranks that are stopped or hang, and continue once the others have raised."""
        if "stall" in self.event or self.event == "hang":
            return self.victims
        return self.victims[:1] if "beside" in self.event else []

    @property
    def timeout_seconds(self) -> float:
        return STALL_SECONDS if self.event in REPORTS and self.stops else 2 * PATIENCE_SECONDS

    @property
    def kills(self) -> list[int]:
        if self.event.startswith("kill two"):
            return self.victims
        return self.victims[-1:] if self.event.startswith("kill") else []


class Program(Protocol):
    """The program of one process of a job, which runs until it ends or raises."""

    replicas: int  # of each process

    def __init__(self, plan: Plan, rank: int) -> None:
        """Join the job."""

    def make(self, step: int) -> bool:
        """Make one call; return whether its result is correct."""

    def is_over(self, is_asked: bool) -> bool:
        """Return whether rank 0 was asked to end, on all ranks after the same call."""


class Calls:
    """One rank's calls, each compared with the expected result."""

    replicas = 1

    def __init__(self, plan: Plan, rank: int) -> None:
        os.environ["RINGLET_CROSS_MEMORY"] = plan.crosses
        member = init_process_group(
            rank, plan.num_ranks, name=f"chaos {os.getppid()}", timeout_seconds=plan.timeout_seconds
        )
        self.plan, self.member = plan, member
        self.base = (np.arange(plan.count) % 5).astype(plan.dtype)
        ranks = list(range(plan.num_ranks))
        self.groups = [(member, ranks)]
        if plan.is_split:
            part = member.split(member.rank % 2)
            assert part is not None
            self.groups.append((part, ranks[member.rank % 2 :: 2]))
        self.plans: dict[Member, tuple[Array, Callable[[], Array]]] = {}

    def values(self, rank: int, step: int) -> Array:
        return self.base + self.plan.dtype.type(rank + step % 3)

    def array(self, chance: random.Random, values: Array) -> Array:
        """Return values in a shared or a private array."""
        x = ringlet.empty_shared(values.shape, values.dtype) if chance.random() < 0.5 else np.empty_like(values)
        x[...] = values
        return x

    def make(self, step: int) -> bool:
        """Make one call; return whether its result is correct."""
        same = random.Random(f"{self.plan.seed} {step}")  # alike on all ranks
        own = random.Random(f"{self.plan.seed} {step} {self.member.rank}")
        member, ranks = same.choice(self.groups)
        name, root = same.choice(OPERATIONS), same.randrange(2) % len(ranks)
        x = self.array(own, self.values(ranks[member.rank], step))
        equal = x[: len(x) // len(ranks) * len(ranks)]
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: self.all_reduce(member, x, same, own),
            "plan": lambda: self.planned(member, self.values(ranks[member.rank], step)),
            "many": lambda: member.all_reduce_many([x, x[:1]])[0],
            "broadcast": lambda: member.broadcast(x if member.rank == root else None, root=root, out=out),
            "all_gather": lambda: member.all_gather(x, out=out),
            "gather": lambda: member.gather(x, root=root, out=out),
            "reduce_scatter": lambda: member.reduce_scatter(equal, out=out),
            "all_to_all": lambda: member.all_to_all(equal, out=out),
            "permute": lambda: member.collective_permute(
                x, [(source, (source + 1) % len(ranks)) for source in range(len(ranks))], out=out
            ),
            "scan": lambda: member.exclusive_scan(x, out=out),
            "reduce": lambda: member.reduce(x, root=root, out=out),
            "barrier": member.barrier,
        }
        expected = self.expected(name, step, ranks, member.rank, root)
        out = self.array(own, np.zeros_like(expected)) if expected is not None and same.random() < 0.5 else None
        got = calls[name]()
        return (got is None and expected is None) or np.array_equal(got, expected)

    def is_over(self, is_asked: bool) -> bool:
        """Return whether rank 0 was asked to end."""
        return bool(self.member.broadcast(np.array([is_asked]) if self.member.rank == 0 else None)[0])

    def all_reduce(self, member: Member, x: Array, same: random.Random, own: random.Random) -> Array:
        out = own.choice([x, self.array(own, self.base)]) if same.random() < 0.6 else None
        return member.all_reduce(x, algorithm=same.choice([Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING]), out=out)

    def planned(self, member: Member, values: Array) -> Array:
        if member not in self.plans:
            x = values.copy()
            self.plans[member] = x, member.plan_all_reduce(x)
        x, run = self.plans[member]
        x[...] = values
        return run()

    def expected(self, name: str, step: int, ranks: list[int], index: int, root: int) -> Array | None:
        """Return the result of a call: small whole numbers, so that every sum is exact in every dtype."""
        share = self.plan.count // len(ranks)

        def total(summed: list[int]) -> Array:
            number = self.plan.dtype.type
            return self.base * number(len(summed)) + number(sum(rank + step % 3 for rank in summed))

        def joined(start: int, stop: int) -> Array:
            return np.concatenate([self.values(rank, step)[start:stop] for rank in ranks])

        others: dict[str, Callable[[], Array | None]] = {
            "barrier": lambda: None,
            "broadcast": lambda: self.values(ranks[root], step),
            "all_gather": lambda: joined(0, self.plan.count),
            "gather": lambda: joined(0, self.plan.count) if index == root else None,
            "all_to_all": lambda: joined(index * share, (index + 1) * share),
            "permute": lambda: self.values(ranks[index - 1], step),
            "reduce_scatter": lambda: total(ranks)[index * share :][:share],
            "reduce": lambda: total(ranks) if index == root else None,
            "scan": lambda: total(ranks[:index]),
        }
        return others.get(name, lambda: total(ranks))()


def reused_memory(plan: Plan) -> Iterator[Array]:
    """Allocate shared and private arrays like those of the calls, and set all bytes."""
    for size in (1, 1, 1, 1, plan.num_ranks, plan.num_ranks):
        for make in (ringlet.empty_shared, np.empty):
            x = make(plan.count * plan.dtype.itemsize * size, np.uint8)
            x[...] = PATTERN
            yield x


def body_of(plan: Plan, program: type[Program], phase: mmap.mmap) -> Callable[[int, Callable[[Any], None]], None]:
    def body(rank: int, tell: Callable[[Any], None]) -> None:
        reports = _collect_reports() if plan.event in REPORTS else []
        calls = program(plan, rank)
        tell("joined")
        step = 0
        try:
            while True:
                if rank in plan.victims and step == plan.calls and plan.event in LINGERS:
                    LINGERS[plan.event](phase)
                if step % 8 == 0 and calls.is_over(phase[0] == 1):
                    break
                if not calls.make(step):
                    tell(["wrong", step])
                    return
                step += 1
                if rank == 0:
                    phase[1] = min(step, 255)
            tell(["done", step])
            tell(reports)
            return
        except (WorkerLostError, DeadlineExceededError, CollectiveAborted) as error:
            lost = getattr(error, "rank", -1) // calls.replicas
            answer = [type(error).__name__, str(error), lost, getattr(error, "pid", None)]
        except ValueError as error:  # its own
            tell([type(error).__name__, str(error), rank, os.getpid()])
            return
        try:
            calls.is_over(False)
            answer[1] += ", but the next call returned"
        except (WorkerLostError, DeadlineExceededError, CollectiveAborted) as error:
            if type(error).__name__ != answer[0]:
                answer[1] += f", and the next call raised {error!r}"
        del calls
        reused = list(reused_memory(plan))
        tell(answer)
        if rank in plan.stops:
            return
        end = time.monotonic() + PATIENCE_SECONDS
        while phase[0] != 2 and time.monotonic() < end:
            time.sleep(0.001)
        tell(["changed", sum(int((x != PATTERN).sum()) for x in reused)])
        tell(reports)

    return body


def _hang(phase: mmap.mmap) -> None:
    lock = threading.Lock()
    lock.acquire()
    while phase[0] == 0:  # for ever, but for the end of the test
        lock.acquire(timeout=0.05)


def _be_slow(phase: mmap.mmap) -> None:
    time.sleep(3 * REPORT_SECONDS)


LINGERS = {"hang": _hang, "slow": _be_slow}


def _collect_reports() -> list[str]:
    """Return a list to which the stall reports of this process are added."""
    os.environ["RINGLET_STALL_SECONDS"] = str(REPORT_SECONDS)
    texts: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: texts.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("ringlet.observe.stall_reports")
    logger.handlers, logger.propagate = [handler], False
    return texts


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run one job; return its faults."""
    return run_plan(Plan.draw(seed, event), Calls)


def run_plan(plan: Plan, program: type[Program]) -> list[str]:
    """Run a program as the ranks of one job; return its faults."""
    phase = mmap.mmap(-1, 2)  # what to do, and how many calls rank 0 has made
    job = Job(plan.num_ranks, body_of(plan, program, phase))
    try:
        wrong = _disturb(plan, job, phase)
    finally:
        phase[0] = 2
        for rank in plan.stops:
            job.kill(rank, signal.SIGCONT)
        statuses = job.wait(PATIENCE_SECONDS)
        phase.close()
    if wrong is None:
        return []
    expected = [-signal.SIGKILL if rank in plan.kills else 0 for rank in range(plan.num_ranks)]
    if statuses != expected:
        wrong.append(f"the exit statuses are {statuses}")
    return [f"{plan}: {text}" for text in wrong]


def _disturb(plan: Plan, job: Job, phase: mmap.mmap) -> list[str] | None:
    """Disturb the job as the event defines; return the faults; None if a busy machine did not start the job in time."""

    def told(rank: int) -> Any:
        return job.told(rank, time.monotonic() + PATIENCE_SECONDS)

    everyone = range(plan.num_ranks)
    joined = [told(rank) for rank in everyone]
    if "stall" in plan.event and "DeadlineExceededError" in str(joined):
        return None
    if joined != ["joined"] * plan.num_ranks:
        return [f"did not join: {joined}"]
    _await_calls(plan, phase)
    if plan.event in ("pause", "slow"):
        _pause(plan, job)
        phase[0] = 1
        answers = [told(rank) for rank in everyone]
        if not all(answer and answer[0] == "done" and answer == answers[0] for answer in answers):
            return [f"{answers}"]
        return _unreported(plan, job.pids, [told(rank) for rank in everyone])
    for rank in plan.stops if plan.event != "hang" else []:
        job.kill(rank, signal.SIGSTOP)
    for rank in plan.kills if plan.event == "kill stopped" else []:
        job.kill(rank, signal.SIGSTOP)
    time.sleep(plan.pause / 4)
    for rank in plan.kills:
        job.kill(rank)
    survivors = [rank for rank in everyone if rank not in plan.victims]
    if plan.event == "raise" and (text := _refused(plan, job.pids, plan.victims[0], told(plan.victims[0]))):
        return [text]
    wrong = [text for rank in survivors if (text := _refused(plan, job.pids, rank, told(rank)))]
    phase[0] = 3  # a rank that hangs goes on
    for rank in plan.stops:
        job.kill(rank, signal.SIGCONT)
    wrong += [text for rank in plan.stops if (text := _refused(plan, job.pids, rank, told(rank)))]
    phase[0] = 2
    if not wrong:
        changed = [told(rank) for rank in survivors]
        if changed != [["changed", 0]] * len(survivors):
            wrong.append(f"bytes of reused memory: {changed}")
        wrong += _unreported(plan, job.pids, [told(rank) for rank in survivors])
    return wrong


def _pause(plan: Plan, job: Job) -> None:
    """Stop and continue a rank several times, unless it is slow by itself."""
    chance = random.Random(plan.seed)
    for _ in range(10 if plan.event == "pause" else 0):
        for number in (signal.SIGSTOP, signal.SIGCONT):
            job.kill(plan.victims[0], number)
            time.sleep(chance.uniform(0, 0.02))


def _unreported(plan: Plan, pids: list[int], reports: list[list[str]]) -> list[str]:
    """Return faults if no rank has reported a victim with the lines that all ranks execute."""
    if plan.event not in REPORTS:
        return []
    texts = [text for each in reports for text in each]
    expected = [[words.format(pid=pids[victim]) for words in REPORTS[plan.event]] for victim in plan.victims]
    expected = [[*words, ", waiting in this call:\n"] for words in expected]
    is_reported = any(all(word in text for word in words) for text in texts for words in expected)
    return [] if is_reported else [f"no report has {expected}: {texts}"]


def _await_calls(plan: Plan, phase: mmap.mmap) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while phase[1] < plan.calls and plan.event != "raise" and time.monotonic() < end:
        time.sleep(0.0005)
    time.sleep(plan.pause)


def _refused(plan: Plan, pids: list[int], rank: int, answer: Any) -> str:
    """Return the fault of the error that a rank has raised."""
    if not isinstance(answer, list) or len(answer) != 4:
        return f"rank {rank} told {answer}"
    kind, text, lost, pid = answer
    if plan.event == "raise" and rank in plan.victims:
        right = (kind, text) == ("ValueError", "chaos")
    elif plan.event == "raise" and kind == "CollectiveAborted":  # other replicas of that process waited
        right = (
            f"(pid {pids[plan.victims[0]]}) cannot continue: replica " in text and "raised ValueError: chaos" in text
        )
    elif plan.event == "raise":  # the process has caught its error, and ended
        right = kind == "WorkerLostError" and pid == pids[lost] and lost in plan.victims and "with status 0" in text
    elif plan.kills:
        right = kind == "WorkerLostError" and lost in plan.kills and pid == pids[lost] and "SIGKILL" in text
    else:
        # Ranks of a part have numbers of their own there: the pid tells them apart.
        words = REPORTS[plan.event]
        right = kind == "DeadlineExceededError" and any(
            words[0].format(pid=pids[victim]) in text and words[1] in text for victim in plan.stops
        )
    right = right and "the next call" not in text
    # A rank that was stopped may raise what its own clock says, or what the others have left.
    return "" if right or (rank in plan.stops and text) else f"rank {rank} raised {kind}: {text}"
