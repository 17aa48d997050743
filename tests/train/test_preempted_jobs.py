"""Jobs of `ringlet run` that are asked to end: one worker, the launcher, all processes, once and twice."""

from __future__ import annotations

import os
import signal

import pytest

import ringlet
from ringlet.train import Checkpoint
from tests.launcher.jobs import Launcher

pytestmark = pytest.mark.slow

SCRIPT = """
import numpy as np
import ringlet
from ringlet.train import Checkpoint, CheckpointManager

num_steps, pause = int(sys.argv[2]), float(sys.argv[3])
strategy = ringlet.MultiWorkerMirroredStrategy()
with strategy.scope():
    weights = ringlet.Variable(np.zeros(3))
rows = ringlet.data.Dataset.range(400).shuffle(400, seed=5).repeat().batch(8).prefetch(2)
data = iter(strategy.distribute_dataset(rows))
manager = CheckpointManager(Checkpoint(weights=weights, data=data), sys.argv[1], 2)

def step(batch):
    mean = ringlet.replica_context().all_reduce("MEAN", np.mean(batch))
    weights.assign(weights * 0.9 + np.array([mean, 1.0, np.sqrt(mean)]))

disturbed = {"1": (7, signal.SIGKILL), "2": (12, signal.SIGTERM)} if sys.argv[4:] else {}
disturbed_at, number_of_signal = disturbed.get(os.environ["RINGLET_ATTEMPT"], (-1, 0))

for number in ringlet.train.resume(manager, num_steps, save_every=5):
    if number == disturbed_at and index == 1:
        os.kill(os.getpid(), number_of_signal)
    strategy.run(step, args=(next(data),))
    if number == 2:
        print("pid", os.getpid())
    time.sleep(pause)
print(weights.numpy().tobytes().hex())
"""


@pytest.fixture
def launcher(tmp_path):
    started = Launcher(tmp_path)
    yield started
    started.close()


def bits(job):
    """Return what the workers have printed at the end: the bits of the weights."""
    assert job.status == 0, job.err.decode()
    (found,) = {line.partition("] ")[2] for line in job.lines if "pid" not in line}
    return found


def steps_saved(folder):
    count = Checkpoint(checkpointed_runs=ringlet.Variable(0))
    count.restore(ringlet.train.latest_checkpoint(folder)).expect_partial()
    return int(count.checkpointed_runs)


# Whom the signals reach: a worker (its index), the launcher, the process group of the workers, or all; and how often.
@pytest.mark.parametrize(
    ("target", "times", "num_workers"),
    [(0, 2, 2), (3, 1, 4), ("launcher", 2, 2), ("group", 1, 2), ("all", 1, 2)],
)
def test_every_worker_saves_the_same_step_and_the_next_run_ends_with_the_same_bits(
    launcher, tmp_path, target, times, num_workers
):
    folder = tmp_path / "saves"
    options = ("-n", num_workers, "--grace-seconds", 60)
    job = launcher.start(SCRIPT, *options, arguments=[folder, 100_000, 0.002])
    job.wait_for_lines(num_workers)
    pids = {int(line[2]): int(line.split()[2]) for line in job.lines}
    for _ in range(times):
        if target in pids:
            os.kill(pids[target], signal.SIGTERM)
        if target in ("group", "all"):
            os.killpg(os.getpgid(pids[0]), signal.SIGTERM)
        if target in ("launcher", "all"):
            job.send(signal.SIGTERM)
    assert job.end().status == (143 if target in ("launcher", "all") else 42), job.err.decode()
    assert job.leaves_nothing()
    assert sum("] termination was requested: saved" in line for line in job.errors) == 1, job.err.decode()
    saved = steps_saved(folder)
    assert saved >= 3
    again = launcher.run(SCRIPT, *options, arguments=[folder, saved + 20, 0])
    assert bits(again) == bits(launcher.run(SCRIPT, *options, arguments=[tmp_path / "none", saved + 20, 0]))


def test_restarts_continue_after_a_kill_and_after_a_signal_and_end_with_the_same_bits(launcher, tmp_path):
    job = launcher.run(SCRIPT, "-n", 2, "--restarts", 2, arguments=[tmp_path / "saves", 20, 0, "disturbed"])
    assert bits(job) == bits(launcher.run(SCRIPT, "-n", 2, arguments=[tmp_path / "none", 20, 0]))
    report = [line for line in job.errors if line.startswith("ringlet run: attempt ")]
    assert ["worker 1 of 2 was killed by SIGKILL" in report[-3], "status 42" in report[-2]] == [True, True], report
    assert sum("after 13 runs" in line and "] termination was requested" in line for line in job.errors) == 1


ROWS_SCRIPT = """
import numpy as np
import ringlet
from ringlet.train import Checkpoint, CheckpointManager

strategy = ringlet.MultiWorkerMirroredStrategy()
rows = ringlet.data.Dataset.range(401).shuffle(401, seed=5).batch(8).prefetch(2)
data = iter(strategy.distribute_dataset(rows))
manager = CheckpointManager(Checkpoint(data=data), sys.argv[1], 2)
for number in ringlet.train.resume(manager, save_every=1):
    if number == int(sys.argv[2]):
        break
    batch = next(data, None)
    if batch is None:
        break
    print("rows", *strategy.experimental_local_results(batch)[0])
"""


def test_another_number_of_workers_continues_the_epoch_where_it_was(launcher, tmp_path):
    rows = []
    for num_workers, last_step in ((2, 11), (3, 30), (1, 37), (4, -1)):
        options = ("-n", num_workers, "--grace-seconds", 60)
        job = launcher.run(ROWS_SCRIPT, *options, arguments=[tmp_path / "saves", last_step])
        assert job.status == 0, job.err.decode()
        rows += [int(row) for line in job.lines for row in line.partition("rows")[2].split()]
    assert sorted(rows) == list(range(401))
