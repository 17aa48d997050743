"""A rank is killed at any moment of any collective: the others say who and how, soon, and nothing is left.

``RINGLET_KILLS`` sets the number of kills in all-reduce (100 by default); the others take a fifth of it each.
"""

from __future__ import annotations

import os

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RINGLET_KILLS", "100"))
# Nothing but a hang lets a survivor take so long; the figure to keep, 1 s, is asked of nearly all of them.
PATIENCE_SECONDS = 20.0
SOON_SECONDS = 1.0

DRIVER = """
import random
import numpy as np
import ringlet
from ringlet.collectives import Algorithm, Op, init_process_group
from ringlet.errors import WorkerLostError
from tests.processes.forked import Job, left_behind

RANKS = 4
PATIENCE = float(sys.argv[4])
DTYPES = ["int8", "int32", "float32", "float64", "uint16", "complex64", "float16"]


class Plan:
    '''What all ranks of one job do, drawn from one seed.'''

    def __init__(self, operation, seed):
        draw = random.Random(f"{operation} {seed}")
        self.operation = operation
        self.seed = seed
        self.dtype = np.dtype(draw.choice(DTYPES))
        self.count = max(1, int(2 ** draw.uniform(0, 24)) // self.dtype.itemsize)
        self.count -= self.count % RANKS if operation == "reduce_scatter" and self.count >= RANKS else 0
        self.count = max(self.count, RANKS)
        self.is_shared = [draw.random() < 0.5 for _ in range(RANKS)]
        self.algorithm = draw.choice([Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING])
        self.victims = draw.sample(range(RANKS), int(sys.argv[3]))
        self.pause = draw.uniform(0, 0.03)
        self.crosses = draw.choice("110")

        # Small whole numbers, so that every sum is exact in every dtype.
        self.base = (np.arange(self.count) % 5).astype(self.dtype)

    def values(self, rank, step):
        # Other ones on every rank and in every step.
        return self.base + self.dtype.type(rank + step % 3)

    def total(self, step):
        return self.base * self.dtype.type(RANKS) + self.dtype.type(sum(range(RANKS)) + RANKS * (step % 3))

    def joined(self, step):
        return np.concatenate([self.values(rank, step) for rank in range(RANKS)])

    def call(self, member, x, step):
        '''Make one call; give what it gave and what it should have.'''
        if self.operation == "all_reduce":
            return member.all_reduce(x, algorithm=self.algorithm), self.total(step)
        if self.operation == "batch":
            got = member.all_reduce_many([x, x[:3]])
            return got[0], self.total(step)
        if self.operation == "broadcast":
            return member.broadcast(x if member.rank == 1 else None, root=1), self.values(1, step)
        if self.operation == "all_gather":
            return member.all_gather(x), self.joined(step)
        if self.operation == "gather":
            got = member.gather(x, root=2)
            return (got, self.joined(step)) if member.rank == 2 else (x, x)
        if self.operation == "reduce_scatter":
            share = self.count // RANKS
            return member.reduce_scatter(x), self.total(step)[member.rank * share :][:share]
        member.barrier()
        return x, x


def body_of(plan):
    def body(rank, tell):
        os.environ["RINGLET_CROSS_MEMORY"] = plan.crosses
        member = init_process_group(rank, RANKS, name=f"kills {os.getppid()}", timeout_seconds=60)
        x = ringlet.empty_shared(plan.count, plan.dtype) if plan.is_shared[rank] else np.empty(plan.count, plan.dtype)
        tell("joined")
        step = 0
        try:
            while True:
                x[...] = plan.values(rank, step)
                entered = time.monotonic()
                got, expected = plan.call(member, x, step)
                if not np.array_equal(got, expected):
                    tell(["wrong", step])
                    return
                del got
                step += 1
        except WorkerLostError as error:
            when = time.monotonic()
            try:
                member.barrier()
                again = "nothing"
            except WorkerLostError as later:
                again = [later.rank, (later.pid, later.reason) == (error.pid, error.reason)]
            tell(["lost", error.rank, error.pid, error.reason, str(error), entered, when, again])

    return body


def run(plan):
    '''Kill the victims of one job; give what is wrong with how the others took it, and how long they took.'''
    job = Job(RANKS, body_of(plan))
    wrong, times = [], []
    try:
        joined = [job.told(rank, time.monotonic() + PATIENCE) for rank in range(RANKS)]
        if joined != ["joined"] * RANKS:
            wrong.append(f"did not join: {joined}")
            return wrong, []
        time.sleep(plan.pause)
        killed = time.monotonic()
        for victim in plan.victims:
            job.kill(victim)
        for rank in sorted({*range(RANKS)} - {*plan.victims}):
            answer = job.told(rank, killed + PATIENCE)
            if not (isinstance(answer, list) and answer[0] == "lost"):
                wrong.append(f"rank {rank} told {answer}")
                continue
            _, lost, pid, reason, text, entered, when, again = answer
            times.append((entered, when))
            named = f"rank {lost} (pid {pid} on "
            if lost not in plan.victims or pid != job.pids[lost] or named not in text:
                wrong.append(f"rank {rank} blamed {answer} for {plan.victims}")
            if reason != "was killed by SIGKILL (signal 9)":
                wrong.append(f"rank {rank} gave the reason {reason}")
            if again != [lost, True]:
                wrong.append(f"rank {rank}'s next call did not raise the first cause: {again}")
        # No rank raises before all that live have heard of it: the time runs from when the last of them made its call.
        start = max([killed, *(entered for entered, _ in times)])
        return wrong, [when - start for _, when in times]
    finally:
        wrong += job.wrong_ends(PATIENCE, plan.victims)


before = left_behind()
failures, times = [], []
for seed in range(int(sys.argv[2])):
    plan = Plan(sys.argv[1], seed)
    wrong, seconds = run(plan)
    times += seconds
    about = f"seed {seed} ({plan.dtype}[{plan.count}], {plan.algorithm}, kill {plan.victims})"
    failures += [f"{about}: {text}" for text in wrong]
after = left_behind()
tell({"failures": failures, "times": sorted(times), "before": before, "after": after})
"""


def check(operation, kills, victims=1):
    """Run one driver and look at what it saw."""
    with Processes() as processes:
        driver = processes.start(DRIVER, operation, kills, victims, PATIENCE_SECONDS)
        seen = driver.told(kills * PATIENCE_SECONDS)
    assert not seen["failures"], "\n".join(seen["failures"][:10])
    times = seen["times"]
    print(f"seconds until survivors knew: median {times[len(times) // 2]:.4f}, largest {times[-1]:.4f}")
    assert len(times) == kills * (4 - victims)
    assert times[len(times) * 95 // 100] < SOON_SECONDS, times
    assert times[-1] < PATIENCE_SECONDS
    assert seen["after"] == seen["before"], "shared memory and descriptors are as before"


@pytest.mark.timeout(max(120, KILLS * 3))
def test_survivors_of_a_kill_in_all_reduce_name_the_rank_and_get_no_wrong_value():
    check("all_reduce", KILLS)


@pytest.mark.timeout(max(120, KILLS))
@pytest.mark.parametrize("operation", ["broadcast", "all_gather", "reduce_scatter", "barrier", "gather", "batch"])
def test_survivors_of_a_kill_in_any_collective_name_the_rank_and_get_no_wrong_value(operation):
    check(operation, max(KILLS // 5, 1))


@pytest.mark.timeout(max(120, KILLS))
@pytest.mark.parametrize("victims", [2, 3])
def test_survivors_of_several_kills_name_one_of_the_ranks(victims):
    check("all_reduce", max(KILLS // 5, 1), victims)


ALL_AT_ONCE = """
import signal
import numpy as np
from ringlet.collectives import init_process_group
from tests.processes.forked import Job

def body(rank, tell):
    member = init_process_group(rank, 4, name=sys.argv[1], timeout_seconds=60)
    tell("joined")
    while True:
        member.all_reduce(np.ones(100_000))

for _ in range(int(sys.argv[2])):
    job = Job(4, body)
    joined = [job.told(rank, time.monotonic() + 30) for rank in range(4)]
    assert joined == ["joined"] * 4, joined
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: a rank must not raise an error before it is killed
        for rank in range(4):
            job.kill(rank, number)
    assert job.wait(10) == [-9] * 4
tell("all started")
"""


@pytest.mark.timeout(max(120, KILLS))
def test_after_a_kill_of_all_ranks_at_once_the_next_job_of_the_name_starts():
    with Processes() as processes:
        driver = processes.start(ALL_AT_ONCE, f"all at once {os.getpid()}", max(KILLS // 5, 1))
        assert driver.told(KILLS * 10) == "all started"
