"""`ringlet run --restarts`: what starts again, what does not, and what is printed about it."""

from __future__ import annotations

import re
import signal
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ringlet.launcher.commands import run_command
from ringlet.launcher.commands.run_command import run_with_restarts
from ringlet.launcher.run_workers import Job, Outcome

pytestmark = pytest.mark.slow

JOB = Job(["python"], 2)


class Attempts:
    """Stands in for a job: attempts end with the planned statuses, each after its seconds."""

    def __init__(self, monkeypatch):
        self.planned, self.numbers, self.delays, self.now = [], [], [], 0.0
        monkeypatch.setattr(run_command, "run_workers", self.run)
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self.delays.append)
        monkeypatch.setattr(run_command, "time", clock)  # threads of other tests may use the module

    def run(self, job):
        assert replace(job, attempt=1) == JOB
        self.numbers.append(job.attempt)
        status, seconds = self.planned.pop(0)
        self.now += seconds
        return Outcome(status, f"worker 1 exited with status {status}", status >= 128)


@pytest.fixture
def attempts(monkeypatch):
    return Attempts(monkeypatch)


@pytest.mark.parametrize(
    ("statuses", "num_restarts", "made", "delays"),
    [
        ([0], 3, 1, []),
        ([1], 0, 1, []),
        ([1, 42, 0], 3, 3, [1, 2]),
        ([1] * 9, 8, 9, [1, 2, 4, 8, 16, 32, 60, 60]),
        ([1, 3, 1], 5, 2, [1]),
        ([1, 143, 1], 5, 2, [1]),
        ([1, 1, 700, 1, 0], 5, 5, [1, 2, 1, 2]),
    ],
)
def test_a_failure_is_run_again_with_back_off_unless_it_is_final(attempts, statuses, num_restarts, made, delays):
    attempts.planned = [(1, 700.0) if status == 700 else (status, 2.5) for status in statuses]
    assert run_with_restarts(JOB, num_restarts, [2, 3]) == statuses[made - 1]
    assert attempts.numbers == list(range(1, made + 1))
    assert attempts.delays == delays


def test_every_attempt_is_reported(attempts, capsys):
    attempts.planned = [(1, 2.5), (3, 0.25)]
    run_with_restarts(JOB, 4, [3])
    assert capsys.readouterr().err.splitlines() == [
        "ringlet run: attempt 1 of 5 failed after 2.5 s; the next one starts in 1 s",
        "ringlet run: no restart after status 3 (--no-restart)",
        "ringlet run: attempt 1, 2.5 s: worker 1 exited with status 1",
        "ringlet run: attempt 2, 0.2 s: worker 1 exited with status 3",
    ]


def test_a_job_without_restarts_says_nothing(attempts, capsys):
    attempts.planned = [(2, 1.0)]
    assert run_with_restarts(JOB, 0, [2]) == 2
    assert capsys.readouterr().err == ""


ATTEMPTS = """
attempt = int(os.environ["RINGLET_ATTEMPT"])
print("attempt", attempt, os.environ["RINGLET_JOB_ID"], flush=True)
if attempt == 1 and index == 1:
    sys.exit(7)
if attempt == 2 and index == 0:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0 if attempt == 3 else 300)
"""


@pytest.mark.job(ATTEMPTS, "-n", 2, "--restarts", 3)
def test_each_attempt_is_a_new_job_and_the_report_names_the_worker_that_failed_first(job):
    assert job.status == 0
    told = {(line.split()[2], line.split()[3]) for line in job.lines}
    assert sorted(attempt for attempt, _ in told) == ["1", "2", "3"]
    assert len({job_id for _, job_id in told}) == 3
    report = [line for line in job.errors if re.match(r"ringlet run: attempt \d, ", line)]
    assert [re.sub(r", [\d.]+ s", "", line) for line in report] == [
        "ringlet run: attempt 1: worker 1 of 2 exited with status 7; worker 0 was terminated",
        "ringlet run: attempt 2: worker 0 of 2 was killed by SIGKILL (signal 9); worker 1 was terminated",
        "ringlet run: attempt 3: all workers exited with status 0",
    ]
    assert job.leaves_nothing()


@pytest.mark.job("sys.exit(int(os.environ['RINGLET_ATTEMPT']))", "-n", 2, "--restarts", 9, "--no-restart", "2,9")
def test_a_status_may_be_final(job):
    assert job.status == 2
    assert "ringlet run: no restart after status 2 (--no-restart)" in job.errors


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_job_that_is_told_to_end_does_not_start_again(launcher, number):
    job = launcher.start("print('ready', flush=True); time.sleep(300)", "-n", 2, "--restarts", 5)
    job.wait_for_lines(2)
    job.send(number)
    assert job.end().status == 128 + number
    assert not any("attempt" in line for line in job.errors)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_attempts_ends_the_launcher(launcher, number):
    job = launcher.start("sys.exit(3)", "-n", 1, "--restarts", 50)
    assert job.popen.stderr is not None
    while b"the next one starts in 2 s" not in job.popen.stderr.readline():
        pass
    time.sleep(0.2)
    job.send(number)
    assert job.end().status in (128 + number, -number)
    assert job.leaves_nothing()
