"""A loop over the steps that remain restores, saves, and exits when it is asked to."""

from __future__ import annotations

import os
import signal

import pytest

import ringlet
from ringlet.errors import InvalidArgumentError
from ringlet.experimental import TerminationConfig
from ringlet.train import Checkpoint, CheckpointManager, resume


@pytest.fixture(autouse=True)
def _the_handler_of_the_tests_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def made(folder, keep=2):
    data = iter(ringlet.data.Dataset.range(30).shuffle(30, seed=1).repeat().batch(7).prefetch(2))
    return CheckpointManager(Checkpoint(data=data, rows=[]), folder, keep)


def train(manager, preempted_at=-1, num_steps=8, **options):
    for step in resume(manager, num_steps, **options):
        manager.checkpoint.rows = [*manager.checkpoint.rows, next(manager.checkpoint.data).tolist()]
        if step == preempted_at:
            os.kill(os.getpid(), signal.SIGTERM)


def test_the_steps_before_and_after_a_signal_are_those_of_one_loop(tmp_path):
    undisturbed = made(tmp_path / "undisturbed")
    train(undisturbed)
    for preempted_at in (2, 5):
        with pytest.raises(SystemExit) as end:
            train(made(tmp_path), preempted_at)
        assert end.value.code == 42
    last = made(tmp_path)
    train(last)
    assert last.checkpoint.rows == undisturbed.checkpoint.rows
    assert len(last.checkpoint.rows) == 8


def test_a_signal_in_the_last_step_is_saved_too(tmp_path):
    with pytest.raises(SystemExit):
        train(made(tmp_path), 7)
    assert list(resume(made(tmp_path), 8)) == []


@pytest.mark.parametrize(("num_steps", "saved"), [(8, ["ckpt-1", "ckpt-2", "ckpt-3"]), (2, ["ckpt-1"])])
def test_it_saves_after_so_many_steps_and_after_the_last_one(tmp_path, num_steps, saved):
    manager = made(tmp_path, None)
    train(manager, num_steps=num_steps, save_every=3)
    assert [os.path.basename(path) for path in manager.checkpoints] == saved
    assert list(resume(made(tmp_path), num_steps)) == []


def test_the_exit_is_configured(tmp_path):
    def leave():
        raise SystemExit(75)

    with pytest.raises(SystemExit) as end:
        train(made(tmp_path), 2, termination_config=TerminationConfig(exit_fn=leave))
    assert end.value.code == 75


def test_after_the_loop_a_signal_has_its_previous_effect(tmp_path):
    received = []
    signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    for step in resume(made(tmp_path)):
        if step == 3:
            break
    os.kill(os.getpid(), signal.SIGTERM)
    assert received == [signal.SIGTERM]


def test_a_wrong_interval_is_refused(tmp_path):
    with pytest.raises(ValueError, match="save_every must be None or a number of steps of at least 1, got 0"):
        next(iter(resume(made(tmp_path), 3, save_every=0)))


def test_a_checkpoint_of_another_program_is_refused_and_one_of_an_earlier_version_is_not(tmp_path):
    list(resume(CheckpointManager(Checkpoint(a=ringlet.Variable(1.0)), tmp_path, 2), 4, save_every=2))
    other = CheckpointManager(Checkpoint(b=ringlet.Variable(2.0)), tmp_path, 2)
    words = r"ckpt-2 belongs to another program: it holds a, and this program saves b\. Pass another folder"
    with pytest.raises(InvalidArgumentError, match=words):
        list(resume(other, 6))
    later = CheckpointManager(Checkpoint(a=ringlet.Variable(0.0), b=ringlet.Variable(2.0)), tmp_path, 2)
    assert list(resume(later, 6)) == [4, 5]
    assert float(later.checkpoint.a) == 1.0
