"""Workers save together: one writes, the others wait for it, and hear of what goes wrong."""

from __future__ import annotations

import os
import uuid

import numpy as np
import pytest
from safetensors.numpy import load_file

from ringlet.train import Checkpoint
from ringlet.train.saving import Saving
from tests.strategy.workers import Failure, environment

# Variables of both kinds, the place in a dataset that differs from worker to worker, and a number.
MAKE = """
import os
from ringlet.train import Checkpoint, CheckpointManager, CheckpointOptions
on_read = dict(synchronization=ringlet.VariableSynchronization.ON_READ, aggregation=ringlet.VariableAggregation.SUM)
with strategy.scope():
    weights = ringlet.Variable(np.zeros(3))
    seen = ringlet.Variable(0, **on_read)
files = iter(ringlet.data.Dataset.range(10).shard(2, me))
checkpoint = Checkpoint(weights=weights, seen=seen, files=files, epoch=3)
def step():
    seen.assign_add(rank() + 1)
    weights.assign(replica().all_reduce("SUM", np.ones(3)))
strategy.run(step)
next(files)
"""


def failures(answers):
    assert all(isinstance(answer, Failure) for answer in answers), answers
    return [(answer.kind, answer.text) for answer in answers]


def test_a_process_by_itself_writes(tmp_path):
    with Saving(Checkpoint(step=3), f"{tmp_path}/a", None) as saving:
        assert saving.writes
        saving.write()
    assert os.listdir(tmp_path) == ["a.safetensors"]


def test_one_worker_writes_and_all_know_the_path(workers, tmp_path):
    answers = workers.run(MAKE + "answer = [checkpoint.save(path), sorted(os.listdir(folder))]",
                          path=f"{tmp_path}/ckpt", folder=str(tmp_path))  # fmt: skip
    assert answers == [[f"{tmp_path}/ckpt-1", ["checkpoint", "ckpt-1.safetensors"]]] * 2
    assert load_file(f"{tmp_path}/ckpt-1.safetensors")["weights"].tolist() == [2.0 * workers.num_local] * 3


def test_each_worker_gets_back_what_was_its_own(workers, tmp_path):
    program = (
        MAKE
        + """
path = checkpoint.save(prefix)
before = [next(files), [int(v) for v in strategy.experimental_local_results(seen)], int(seen)]
strategy.run(step)
next(files)
checkpoint.epoch = 9
checkpoint.restore(path).assert_consumed()
after = [next(files), [int(v) for v in strategy.experimental_local_results(seen)], int(seen)]
answer = [before == after, before, weights.numpy().tolist(), checkpoint.epoch]
"""
    )
    count = workers.num_local
    answers = workers.run(program, prefix=f"{tmp_path}/ckpt")
    replicas = [[worker * count + i + 1 for i in range(count)] for worker in range(2)]
    total = sum(map(sum, replicas))
    assert answers == [[True, [2 + me, replicas[me], total], [2.0 * count] * 3, 3] for me in range(2)]


def test_variables_that_were_let_diverge_are_saved_for_each_worker(workers, tmp_path):
    program = (
        MAKE
        + """
with strategy.scope():
    own = ringlet.Variable(0)
def diverge():
    own.assign(10 + rank())
strategy.run(diverge)
checkpoint = Checkpoint(own=own, weights=weights)
checkpoint.write(path)
own.assign(0)
checkpoint.read(path)
answer = [int(v) for v in strategy.experimental_local_results(own)]
"""
    )
    count = workers.num_local
    expected = [[10 + me * count + i for i in range(count)] for me in range(2)]
    assert workers.run(program, path=f"{tmp_path}/a") == expected
    names = set(load_file(f"{tmp_path}/a.safetensors"))
    assert "own" in names
    assert "/worker_1/own" in names
    assert "/worker_1/weights" not in names, "what is equal is saved once"


def test_what_is_saved_by_workers_is_restored_by_one_process(workers, tmp_path):
    workers.run(MAKE + "checkpoint.write(path)", path=f"{tmp_path}/all")
    import ringlet

    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1", "CPU:2"])
    with strategy.scope():
        weights = ringlet.Variable(np.zeros(3))
        seen = ringlet.Variable(
            0,
            synchronization=ringlet.VariableSynchronization.ON_READ,
            aggregation=ringlet.VariableAggregation.SUM,
        )
    restored = Checkpoint(weights=weights, seen=seen, epoch=0)
    restored.read(f"{tmp_path}/all").expect_partial()
    replicas = 2 * workers.num_local
    assert int(seen) == replicas * (replicas + 1) // 2, "the sum over all workers"
    assert weights.numpy().tolist() == [float(replicas)] * 3
    assert restored.epoch == 3


def test_what_one_process_saved_is_restored_by_all_workers(workers, tmp_path):
    import ringlet

    Checkpoint(weights=ringlet.Variable(np.arange(3.0)), seen=ringlet.Variable(21), epoch=8).write(f"{tmp_path}/one")
    program = (
        MAKE
        + """
restored = Checkpoint(weights=weights, seen=seen, epoch=0)
restored.read(path)
answer = [weights.numpy().tolist(), int(seen), restored.epoch]
"""
    )
    assert workers.run(program, path=f"{tmp_path}/one") == [[[0.0, 1.0, 2.0], 21, 8]] * 2


def test_workers_that_name_folders_of_their_own_write_there(workers, tmp_path):
    program = (
        MAKE
        + """
os.makedirs(f"{folder}/{me}")
path = checkpoint.write(f"{folder}/{me}/mine")
next(files)
checkpoint.read(path)
answer = [os.listdir(f"{folder}/{me}"), next(files)]
"""
    )
    expected = [[["mine.safetensors"], 2 + me] for me in range(2)]
    assert workers.run(program, folder=str(tmp_path)) == expected


@pytest.mark.parametrize("call", ["checkpoint.save(path)", "CheckpointManager(checkpoint, path, 3).save()"])
def test_a_chief_that_cannot_write_tells_the_others_at_once(workers, tmp_path, call):
    program = (
        MAKE
        + f"""
from ringlet.train import saving
real = saving.write_file
def broken(*_):
    raise OSError(28, "No space left on device")
saving.write_file = broken
start = time.monotonic()
try:
    {call}
except OSError as error:
    found = [error.errno, str(error), time.monotonic() - start]
finally:
    saving.write_file = real
answer = [*found, os.path.basename(checkpoint.save(path))]
"""
    )
    first, second = workers.run(program, path=f"{tmp_path}/ckpt")
    assert first[0] == second[0] == 28
    assert second[1].startswith("[Errno 28] worker 0 could not write ckpt-1: OSError: No space left on device: ")
    assert second[2] < 10
    assert first[3] == second[3] == "ckpt-2", "they go on"


def test_an_object_that_cannot_be_saved_on_one_worker_is_an_error_on_all(workers, tmp_path):
    program = (
        MAKE
        + """
class Odd:
    def get_state(self):
        if me == 1:
            raise KeyError("no state here")
        return 1
    def set_state(self, state): pass
checkpoint.odd = Odd()
checkpoint.write(path)
"""
    )
    (first, second) = failures(workers.run(program, path=f"{tmp_path}/ckpt"))
    assert first == ("CollectiveAborted", "worker 1 could not save ckpt: KeyError: 'no state here'")
    assert second == ("KeyError", "'no state here'")
    assert os.listdir(tmp_path) == []


def test_workers_that_save_under_different_names_are_told(workers, tmp_path):
    answers = failures(workers.run(MAKE + "checkpoint.write(f'{folder}/{me}')", folder=str(tmp_path)))
    for kind, text in answers:
        assert kind == "CollectiveMismatchError"
        assert "barrier('save 0')" in text
        assert "barrier('save 1')" in text


def test_who_says_who_the_chief_is_waits_for_nobody(workers, tmp_path):
    program = (
        MAKE
        + """
if me == 1:
    checkpoint.write(f"{folder}/mine", CheckpointOptions(is_chief=True))
    checkpoint.read(f"{folder}/mine", CheckpointOptions(is_chief=True))
answer = sorted(os.listdir(folder)) if me == 1 else None
"""
    )
    assert workers.run(program, folder=str(tmp_path)) == [None, ["mine.safetensors"]]


def test_a_manager_keeps_the_newest_on_all_workers(workers, tmp_path):
    program = (
        MAKE
        + """
manager = CheckpointManager(checkpoint, folder, max_to_keep=2)
for _ in range(4):
    manager.save()
later = CheckpointManager(checkpoint, folder, max_to_keep=2)
answer = [sorted(os.listdir(folder)), manager.checkpoints == later.checkpoints, later.restore_or_initialize()]
"""
    )
    names = ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]
    assert workers.run(program, folder=str(tmp_path)) == [[names, True, f"{tmp_path}/ckpt-4"]] * 2


def test_all_workers_restore_the_last_good_one_where_the_newest_is_damaged(workers, tmp_path):
    program = (
        MAKE
        + """
import warnings
manager = CheckpointManager(checkpoint, folder, max_to_keep=3)
manager.save()
manager.save()
if me == 0:
    with open(f"{folder}/ckpt-2.safetensors", "r+b") as file:
        file.seek(-3, 2)
        file.write(b"???")
strategy.extended._workers.barrier("damaged")
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    answer = [manager.restore_or_initialize(), len(warned)]
"""
    )
    assert workers.run(program, folder=str(tmp_path)) == [[f"{tmp_path}/ckpt-1", 1]] * 2


def test_a_chief_that_is_killed_while_it_saves_is_named_and_leaves_the_last_good_checkpoint(processes, tmp_path):
    script = """
import ringlet
from ringlet.train import Checkpoint, latest_checkpoint, saving
strategy = ringlet.MultiWorkerMirroredStrategy()
folder = sys.argv[1]
with strategy.scope():
    weights = ringlet.Variable([1.0, 2.0])
checkpoint = Checkpoint(weights=weights)
checkpoint.save(f"{folder}/ckpt")
weights.assign([3.0, 4.0])
real = saving.write_file
def slow(path, *rest):
    real(path, *rest)
    tell("writing")
    hear()
if strategy.extended.should_checkpoint:
    saving.write_file = slow
try:
    checkpoint.save(f"{folder}/ckpt")
except Exception as error:
    tell([type(error).__name__, str(error)])
    latest = latest_checkpoint(folder)
    checkpoint.read(latest, ringlet.train.CheckpointOptions(is_chief=True))
    tell([latest, weights.numpy().tolist()])
"""
    job = f"test {uuid.uuid4()}"
    chief, other = [processes.start(script, tmp_path, environ=environment(i, 2, job_id=job)) for i in range(2)]
    assert chief.told() == "writing"
    chief.kill()
    kind, text = other.told()
    assert kind == "WorkerLostError"
    assert "barrier('write ckpt-2')" in text or "rank 0" in text
    assert "SIGKILL" in text
    assert other.told() == [f"{tmp_path}/ckpt-1", [1.0, 2.0]]
