"""Worker processes and their group."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from ringlet.ipc import worker_process
from ringlet.ipc.worker_process import Keeper, Worker, ending_text, shell_status
from tests.processes.harness import descriptors_of, eventually


@pytest.fixture
def keeper():
    keeper = Keeper()
    yield keeper
    keeper.close()


def start(keeper, program):
    return Worker(0, keeper.start([sys.executable, "-c", program], os.environ))


def test_a_worker_tells_how_it_has_ended(keeper):
    worker = start(keeper, "raise SystemExit(3)")
    assert eventually(worker.has_ended)
    assert worker.status == 3
    worker.close()


def test_closing_the_group_ends_its_processes(keeper):
    worker = start(keeper, "import time; time.sleep(300)")
    assert eventually(lambda: os.getpgid(worker.process.pid) == keeper.group)
    keeper.close()
    worker.close()
    assert worker.status == -signal.SIGKILL


def test_no_signal_is_sent_to_a_number_that_may_belong_to_others(keeper, monkeypatch):
    worker = start(keeper, "")
    assert eventually(worker.has_ended)
    monkeypatch.setattr("os.kill", lambda *_: pytest.fail("sent"))
    worker.signal(signal.SIGTERM)
    worker.close()


def test_nothing_is_left_of_a_group_that_was_closed():
    before = descriptors_of()
    for _ in range(3):
        keeper = Keeper()
        worker = start(keeper, "")
        keeper.close()
        worker.close()
        keeper.close()
        worker.close()
    assert descriptors_of() == before


def test_a_keeper_that_cannot_start_is_an_error_that_says_so(monkeypatch, tmp_path):
    (tmp_path / "broken.py").write_text("raise SystemExit(5)", encoding="utf-8")
    monkeypatch.setattr(worker_process.keeper, "__file__", str(tmp_path / "broken.py"))
    before = descriptors_of()
    with pytest.raises(ChildProcessError, match=r"did not start: .* exited with status 5"):
        Keeper()
    assert descriptors_of() == before


@pytest.mark.parametrize(
    ("status", "text", "shell"),
    [
        # as Popen tells it, in words, as a shell tells it
        (0, "exited with status 0", 0),
        (7, "exited with status 7", 7),
        (-15, "was killed by SIGTERM (signal 15)", 143),
        (-40, "was killed by signal 40 (signal 40)", 168),
    ],
)
def test_an_end_is_told_in_words_and_as_shells_do(status, text, shell):
    assert ending_text(status) == text
    assert shell_status(status) == shell
