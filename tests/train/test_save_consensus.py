"""What workers tell each other while they save and restore, and how errors travel."""

from __future__ import annotations

import os
import threading

import pytest

import ringlet
from ringlet.errors import (
    CheckpointCorruptError,
    CollectiveAborted,
    CollectiveMismatchError,
    FailedPreconditionError,
    NotFoundError,
)
from ringlet.testing import run_on_ranks
from ringlet.train import save_consensus
from ringlet.train.checkpoint_options import CheckpointOptions
from ringlet.train.save_consensus import chief_choice, exchange_messages, folder_of, restore_together, saving_workers


class Stand:
    """A worker that is a thread: what it needs of its member."""

    def __init__(self, member):
        self._member = member
        self.num_workers, self.worker_index = member.num_ranks, member.rank
        self.is_chief = member.rank == 0

    def barrier(self, name):
        self._member.barrier(name)

    def exchange(self, data):
        box = boxes.setdefault(self._member.num_ranks, {})
        with lock:
            box[self.worker_index] = data
        self._member.barrier("in")
        every = [box[rank] for rank in range(self.num_workers)]
        self._member.barrier("out")
        return every


boxes: dict = {}
lock = threading.Lock()


def on_workers(count, step):
    """What each of so many workers gives, or raises."""

    def outcome(member):
        try:
            return step(Stand(member))
        except Exception as error:
            return error

    return run_on_ranks(count, outcome)


def test_nobody_is_joined_without_workers_or_by_who_says_who_writes(monkeypatch):
    assert saving_workers() is None

    class Two:
        num_workers, is_chief = 2, False

    monkeypatch.setattr(save_consensus, "current_workers", Two)
    assert saving_workers() is not None
    assert saving_workers(CheckpointOptions()) is not None
    assert saving_workers(CheckpointOptions(is_chief=False)) is None
    assert saving_workers(CheckpointOptions(barrier=print)) is None


def test_folders_are_the_same_however_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.symlink(tmp_path, "link")
    real = os.path.realpath(tmp_path)
    assert {folder_of("ckpt"), folder_of("./ckpt"), folder_of("link/ckpt"), folder_of(f"{tmp_path}/ckpt")} == {real}


def test_all_hear_what_each_says_in_order():
    answers = on_workers(3, lambda workers: exchange_messages(workers, "a", {"n": workers.worker_index}, data=b"x" * 3))
    assert answers == [[({"n": rank}, b"xxx") for rank in range(3)]] * 3


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        # what one worker raises, what the others do, with which text
        (ValueError("odd"), ValueError, "worker 1 could not save a: ValueError: odd"),
        (NotFoundError("gone"), NotFoundError, "worker 1 could not save a: NotFoundError: gone"),
        (CheckpointCorruptError("bad", "f", 3), CheckpointCorruptError, "CheckpointCorruptError: bad"),
        (KeyError("weights"), CollectiveAborted, "KeyError: 'weights'"),
        (PermissionError(13, "Permission denied"), PermissionError, "worker 1 could not save a: PermissionError: Perm"),
        (FileNotFoundError(2, "No such file", "/a/b"), OSError, "FileNotFoundError: No such file: '/a/b'"),
        (UnicodeError("bad text"), ValueError, "UnicodeError: bad text"),
        (ZeroDivisionError(), CollectiveAborted, "ZeroDivisionError"),
    ],
)
def test_an_error_of_one_is_raised_by_all(error, kind, text):
    answers = on_workers(3, lambda w: exchange_messages(w, "save a", {}, error if w.worker_index == 1 else None))
    assert answers[1] is error
    for other in (answers[0], answers[2]):
        assert type(other) is kind or (kind is OSError and type(other) is type(error))
        assert text in str(other)
    if isinstance(error, OSError):
        assert (answers[0].errno, answers[0].filename) == (error.errno, error.filename)


def test_an_error_is_raised_even_when_the_others_do_something_else():
    error = ValueError("first")
    answers = on_workers(
        2, lambda w: exchange_messages(w, f"do {w.worker_index}", {}, None if w.worker_index else error)
    )
    assert answers[0] is error
    assert type(answers[1]) is CollectiveMismatchError


def test_files_of_different_moments_are_refused():
    changed = []

    def read(workers):
        return lambda: ("what", workers.worker_index, lambda: changed.append(1))

    answers = on_workers(2, lambda workers: restore_together(workers, "/tmp/ckpt", read(workers)))
    assert all(type(answer) is FailedPreconditionError for answer in answers)
    assert "workers 0 and 1 have read different files from /tmp/ckpt" in str(answers[0])
    assert changed == []


def test_nobody_changes_anything_unless_all_could_read():
    changed = []

    def read(workers):
        def reading():
            if workers.worker_index == 1:
                raise NotFoundError("there is no checkpoint")
            return "what", 5, lambda: changed.append(1)

        return reading

    answers = on_workers(2, lambda workers: restore_together(workers, "/tmp/ckpt", read(workers)))
    assert [type(answer) for answer in answers] == [NotFoundError] * 2
    assert changed == []


def test_all_take_the_choice_of_the_chief_in_their_folder(tmp_path):
    def choose(workers):
        name = ["ckpt-3", "ckpt-2", None][workers.worker_index]
        return chief_choice(workers, None if name is None else f"{tmp_path}/{name}", str(tmp_path))

    assert on_workers(3, choose) == [f"{tmp_path}/ckpt-3"] * 3


def test_who_looks_elsewhere_chooses_for_itself(tmp_path):
    def choose(workers):
        folder = f"{tmp_path}/{workers.worker_index}"
        return chief_choice(workers, f"{folder}/ckpt-{workers.worker_index}", folder)

    assert on_workers(2, choose) == [f"{tmp_path}/0/ckpt-0", f"{tmp_path}/1/ckpt-1"]


def test_workers_that_restore_different_things_are_told(workers, tmp_path):
    ringlet.train.Checkpoint(step=3).write(f"{tmp_path}/a")
    program = """
    checkpoint = ringlet.train.Checkpoint(step=0)
    checkpoint.restore(path if me else None)
    """
    for answer in workers.run(program, path=f"{tmp_path}/a"):
        assert answer.kind == "CollectiveMismatchError"
        assert "restore nothing" in answer
        assert "restore a" in answer
