"""Workers are killed or stopped at random during all operations: the others name them, and no resource is leaked.

``RINGLET_KILLS`` sets how many jobs are killed in each way, a twentieth of it (5 by default).
"""

from __future__ import annotations

import os

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

JOBS = max(int(os.environ.get("RINGLET_KILLS", "100")) // 20, 1)
PATIENCE_SECONDS = 20.0
SOON_SECONDS = 1.0

DRIVER = """
import random, signal
import numpy as np
import ringlet
import ringlet.data, ringlet.strategy.multi_worker.multi_worker_extended
from ringlet.errors import DeadlineExceededError, WorkerLostError
from tests.processes.forked import Job, left_behind
from tests.strategy.workers import environment

operation, jobs, kind, patience = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
WORKERS = 4


def victims_of(draw):
    if kind == "chief":
        return [0]
    if kind == "all":
        return list(range(WORKERS))
    return draw.sample(range(WORKERS), int(kind) if kind.isdigit() else 1)


def rank():
    return int(ringlet.get_replica_context().replica_id_in_sync_group)


def steps_of(strategy):
    '''What a program does for ever; each step gives whether it was right.'''
    total = sum(range(1, strategy.num_replicas_in_sync + 1))
    if operation == "assign":
        with strategy.scope():
            v = ringlet.Variable(np.zeros(1000), aggregation=ringlet.VariableAggregation.SUM)
        values = [np.full(1000, i + 1.0) for i in range(strategy.num_replicas_in_sync)]
        while True:
            strategy.run(lambda: v.assign(values[rank()]) is None)
            yield bool((v.read_value() == total).all())
    if operation == "iterator":
        dataset = ringlet.data.Dataset.range(10**9).batch(strategy.num_replicas_in_sync)
        for step, x in enumerate(strategy.experimental_distribute_dataset(dataset)):
            first = int(strategy.experimental_local_results(x)[0][0])
            yield first // strategy.num_replicas_in_sync == step
    while True:
        got = strategy.run(lambda: ringlet.get_replica_context().all_reduce("SUM", np.full(5000, rank() + 1.0)))
        yield all((x == total).all() for x in strategy.experimental_local_results(got))


def body_of(local):
    def body(worker, tell):
        os.environ.update(environment(worker, WORKERS, local, f"kills {os.getppid()}"))
        options = ringlet.experimental.CommunicationOptions(timeout_seconds=2 if kind == "stop" else 60)
        strategy = ringlet.MultiWorkerMirroredStrategy(communication_options=options)
        steps = steps_of(strategy)
        next(steps)
        tell("joined")
        try:
            while next(steps):
                entered = time.monotonic()
            tell(["wrong"])
        except WorkerLostError as error:
            when = time.monotonic()
            try:
                strategy.reduce("SUM", 1.0, axis=None)
                again = ""
            except WorkerLostError as later:
                again = str(later)
            tell([str(error), error.pid, error.reason, when, again])
        except DeadlineExceededError as error:
            tell([str(error)])
    return body


def pauses(job, victim, draw):
    for _ in range(5):
        for number in (signal.SIGSTOP, signal.SIGCONT):
            job.kill(victim, number)
            time.sleep(draw.uniform(0, 0.02))


def stalled(job, victim):
    '''Stop a worker for longer than the time-out; give what is wrong with what the workers raised.'''
    job.kill(victim, signal.SIGSTOP)
    wrong = []
    for worker in sorted({*range(WORKERS)} - {victim}):
        answer = job.told(worker, time.monotonic() + patience)
        if not (isinstance(answer, list) and len(answer) == 1 and f"(pid {job.pids[victim]}, stopped" in answer[0]):
            wrong.append(f"worker {worker} told {answer}")
    job.kill(victim, signal.SIGCONT)
    answer = job.told(victim, time.monotonic() + patience)
    if not (isinstance(answer, list) and len(answer) == 1):
        wrong.append(f"the worker that was stopped told {answer}")
    return wrong


def run(draw):
    local, victims = draw.choice([1, 1, 2]), victims_of(draw)
    job = Job(WORKERS, body_of(local))
    wrong, times = [], []
    try:
        joined = [job.told(worker, time.monotonic() + patience) for worker in range(WORKERS)]
        if joined != ["joined"] * WORKERS:
            return [f"did not join: {joined}"], []
        time.sleep(draw.uniform(0, 0.03))
        if kind == "stop":
            return stalled(job, victims[0]), []
        if kind == "pause":
            pauses(job, victims[0], draw)
        killed = time.monotonic()
        for victim in victims:
            job.kill(victim)
        for worker in sorted({*range(WORKERS)} - {*victims}):
            answer = job.told(worker, killed + patience)
            if not isinstance(answer, list) or len(answer) < 5:
                wrong.append(f"worker {worker} told {answer}")
                continue
            text, pid, reason, when, again = answer
            times.append(when - killed)
            if not any(text.startswith(f"/job:worker/task:{victim} (pid {job.pids[victim]} on ") for victim in victims):
                wrong.append(f"worker {worker} told {text}, of {victims} in {job.pids}")
            if reason != "was killed by SIGKILL (signal 9)" or not again.startswith(text.split(";")[0]):
                wrong.append(f"worker {worker} told {reason}, and then {again}")
        return wrong, times
    finally:
        wrong += job.wrong_ends(patience, [] if kind == "stop" else victims)


before = left_behind()
failures, times = [], []
for seed in range(jobs):
    wrong, seconds = run(random.Random(f"{operation} {kind} {seed}"))
    times += seconds
    failures += [f"seed {seed}: {text}" for text in wrong]
tell({"failures": failures, "times": sorted(times), "before": before, "after": left_behind()})
"""


@pytest.mark.timeout(max(120, JOBS * 10))
@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        # The operation of the workers; the victims: a number of the four, the chief, or all; "pause": one is stopped,
        # continued and then killed; "stop": one is stopped for longer than the time-out, and continued.
        ("run", "1"),
        ("run", "2"),
        ("run", "chief"),
        ("run", "all"),
        ("assign", "1"),
        ("iterator", "1"),
        *[(operation, kind) for operation in ("run", "assign", "iterator") for kind in ("pause", "stop")],
    ],
)
def test_survivors_name_a_worker_that_was_killed_nothing_is_left_and_the_next_job_of_the_name_starts(operation, kind):
    with Processes() as processes:
        driver = processes.start(DRIVER, operation, JOBS, kind, PATIENCE_SECONDS)
        seen = driver.told(JOBS * PATIENCE_SECONDS)
    assert not seen["failures"], "\n".join(seen["failures"][:10])
    assert all(seconds < PATIENCE_SECONDS for seconds in seen["times"])
    late = [seconds for seconds in seen["times"] if seconds > SOON_SECONDS]
    assert len(late) <= len(seen["times"]) // 10, seen["times"]
    assert seen["after"] == seen["before"], "shared memory and descriptors are as before"
