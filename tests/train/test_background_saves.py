"""A save in the background holds the values of its moment, is on the disk at the end, and raises its error later."""

from __future__ import annotations

import logging
import os
import signal
import threading

import numpy as np
import pytest

import ringlet
from ringlet.experimental import PreemptionCheckpointHandler
from ringlet.train import Checkpoint, CheckpointManager, latest_checkpoint, saving
from tests.processes.harness import PATIENCE_SECONDS, eventually
from tests.strategy.workers import Failure


class Disk:
    """A disk that writes when the test says so."""

    def __init__(self, monkeypatch):
        self.may_write, self.writes, self.error, self._real = threading.Event(), 0, None, saving.write_file
        monkeypatch.setattr(saving, "write_file", self._write)

    def _write(self, *arguments):
        self.writes += 1
        assert self.may_write.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error
        self._real(*arguments)


@pytest.fixture
def disk(monkeypatch):
    made = Disk(monkeypatch)
    yield made
    made.may_write.set()


def made(folder, **options):
    checkpoint = Checkpoint(v=ringlet.Variable([1.0, 2.0]), array=np.arange(3.0), number=1)
    return CheckpointManager(checkpoint, folder, 2, in_background=True, **options)


def test_the_values_are_those_of_the_call(tmp_path, disk):
    manager = made(tmp_path)
    path = manager.save()
    assert path == f"{tmp_path}/ckpt-1"
    assert manager.latest_checkpoint is None
    manager.checkpoint.v.assign([7.0, 7.0])
    manager.checkpoint.v.assign_add([7.0, 7.0])
    manager.checkpoint.array[:] = 7.0
    manager.checkpoint.number = 7
    disk.may_write.set()
    manager.sync()
    assert manager.latest_checkpoint == latest_checkpoint(tmp_path) == path
    manager.checkpoint.restore(path).assert_consumed()
    restored = manager.checkpoint
    assert (restored.v.numpy().tolist(), restored.array.tolist(), restored.number) == ([1.0, 2.0], [0.0, 1.0, 2.0], 1)


def test_a_second_save_waits_for_the_first(tmp_path, disk):
    manager = made(tmp_path)
    manager.save()
    assert eventually(lambda: disk.writes == 1)
    threads = [threading.Thread(target=manager.save) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert not eventually(lambda: disk.writes > 1, 0.2)
    disk.may_write.set()
    for thread in threads:
        thread.join()
    manager.sync()
    assert [os.path.basename(path) for path in manager.checkpoints] == ["ckpt-3", "ckpt-4"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-3.safetensors", "ckpt-4.safetensors"]


@pytest.mark.parametrize("call", ["save", "sync", "restore_or_initialize"])
def test_an_error_is_logged_and_raised_by_the_next_call_which_may_be_made_again(tmp_path, disk, call, caplog):
    manager = made(tmp_path)
    disk.may_write.set()
    manager.save()
    manager.sync()
    disk.error = OSError(28, "full")
    with caplog.at_level(logging.WARNING):
        manager.save()
        with pytest.raises(OSError, match=r"No space left on device: .*ckpt-2.*Earlier files are unchanged"):
            getattr(manager, call)()
    assert f"{tmp_path}/ckpt-2 was not saved" in caplog.text
    assert latest_checkpoint(tmp_path) == manager.latest_checkpoint == f"{tmp_path}/ckpt-1"
    disk.error = None
    getattr(manager, call)()
    manager.sync()


def test_what_cannot_be_saved_is_an_error_of_the_call_itself(tmp_path):
    manager = made(tmp_path)
    manager.checkpoint.things = [object()]
    with pytest.raises(ValueError, match="things"):
        manager.save()
    del manager.checkpoint.things
    manager.save()
    manager.sync()
    assert len(manager.checkpoints) == 1


def test_an_interval_counts_from_the_call_unless_it_failed(tmp_path, disk):
    step = ringlet.Variable(1)
    manager = made(tmp_path, step_counter=step, checkpoint_interval=10)
    disk.may_write.set()
    assert manager.save() is not None
    assert manager.save() is None
    step.assign_add(10)
    disk.error = OSError(28, "full")
    assert manager.save() is not None
    with pytest.raises(OSError, match="No space"):
        manager.sync()
    disk.error = None
    assert manager.save() is not None
    manager.sync()


def test_a_preempted_program_waits_for_the_file(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    handler = PreemptionCheckpointHandler(None, made(tmp_path))
    os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit):
        handler.save_checkpoint_if_preempted()
    assert os.path.exists(tmp_path / "ckpt-1.safetensors")
    signal.signal(signal.SIGTERM, before)


SCRIPT = """
import numpy as np, ringlet
from ringlet.train import Checkpoint, CheckpointManager, saving
checkpoint = Checkpoint(v=ringlet.Variable(np.zeros(1 << 20)), number=1)
manager = CheckpointManager(checkpoint, sys.argv[1], 5, in_background=True)
manager.save()
manager.sync()
real, slow = saving.write_file, sys.argv[2] == "kill"
def write(path, *rest):
    if slow:
        with open(path, "wb") as file:
            file.write(b"half")
        tell("writing")
        time.sleep(300)
    real(path, *rest)
saving.write_file = write
checkpoint.number = 2
manager.save()
"""


@pytest.mark.parametrize(("how", "number"), [("exit", 2), ("kill", 1)])
def test_the_end_of_a_program_waits_for_the_file_and_a_kill_leaves_the_one_before(processes, tmp_path, how, number):
    program = processes.start(SCRIPT, tmp_path, how)
    if how == "kill":
        assert program.told() == "writing"
        program.kill()
    assert program.wait() == (-signal.SIGKILL if how == "kill" else 0), program.said()
    checkpoint = Checkpoint(v=ringlet.Variable(np.zeros(1 << 20)), number=0)
    manager = CheckpointManager(checkpoint, tmp_path, 5)
    manager.restore_or_initialize()
    assert checkpoint.number == number
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", *(f"ckpt-{i + 1}.safetensors" for i in range(number))]


def test_workers_save_in_the_background_and_raise_the_chiefs_error_together(workers, tmp_path):
    program = """
import os
from ringlet.train import Checkpoint, CheckpointManager, saving
with strategy.scope():
    weights = ringlet.Variable(np.zeros(3))
files = iter(ringlet.data.Dataset.range(10).shard(2, me))
next(files)
checkpoint = Checkpoint(weights=weights, files=files)
manager = CheckpointManager(checkpoint, folder, 2, in_background=True)
for number in range(3):
    weights.assign(np.full(3, number + 1.0))
    manager.save()
    strategy.run(lambda: replica().all_reduce("SUM", 1.0))   # goes on meanwhile
manager.sync()
real = saving.write_file
def fail(*arguments):
    raise OSError(28, "full")
saving.write_file = fail
try:
    weights.assign(np.full(3, 9.0))
    manager.save()
    manager.sync()
except OSError as error:
    failed = "No space left on device" in str(error)
finally:
    saving.write_file = real
next(files)
manager.restore_or_initialize()
answer = [failed, weights.numpy().tolist(), next(files), sorted(os.listdir(folder))]
"""
    answers = workers.run(program, folder=str(tmp_path))
    assert not any(isinstance(answer, Failure) for answer in answers), answers
    assert answers == [
        [True, [3.0] * 3, 2 + me, ["checkpoint", "ckpt-2.safetensors", "ckpt-3.safetensors"]] for me in range(2)
    ]
