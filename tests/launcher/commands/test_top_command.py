"""``ringlet top``: the table of a running job, in which form it is repeated, and its end."""

from __future__ import annotations

import os
import re
import signal
import sys
from dataclasses import replace

import pytest

from ringlet.launcher.command_line import CommandError, main
from ringlet.launcher.commands import top_command
from ringlet.launcher.commands.inspect_command import Snapshot
from ringlet.observe.recorder import Operation, OperationStats, Process
from tests.launcher.test_recorder_files import GROUP, WAITS
from tests.processes.harness import eventually

CALL = Operation(
    group="ff",
    sequence=6,
    rank=0,
    num_ranks=3,
    text="barrier()",
    bytes=0,
    has_buffers=False,
    fingerprints=(1, 1),
    began=101.0,
    arrived=None,
    ended=None,
    outcome="in progress",
)


def snapshot(pid, calls, at, totals, num_runs=0):
    """A running process of a job; `totals` are calls, bytes and seconds of waiting."""
    process = Process(
        source="here",
        pid=pid,
        start_ticks=1,
        wall_minus_monotonic=0.0,
        job="8f0c",
        host="vm",
        command="python train.py",
        threads=[[call] for call in calls],
        num_half_written=0,
        num_runs=num_runs,
        totals={"barrier": OperationStats(totals[0], totals[1], totals[2], totals[2])},
    )
    return Snapshot(process, at, False)


@pytest.fixture
def job(monkeypatch):
    """Two processes: one with two replicas, of which one waits, and one that computes; each second, until it ends."""
    ended = replace(CALL, rank=1, sequence=5, ended=101.0, outcome="returned")
    late = replace(CALL, rank=2, sequence=5, ended=101.0, outcome="returned")
    readings = [
        [snapshot(8, [late], 100, (10, 0, 0)), snapshot(7, [ended, ended], 100, (1000, 0, 1.0), 20)],
        [snapshot(8, [late], 102, (20, 10_000_000, 0.1)), snapshot(7, [CALL, ended], 102, (4000, 24_000, 2.0), 45)],
    ]

    def read(subject):
        subjects.append(subject)
        if not readings:
            raise CommandError("gone")
        return readings.pop(0)

    subjects = []
    monkeypatch.setattr(top_command, "read_subject", read)
    monkeypatch.setattr(top_command, "_resident", lambda pid: pid * 10_000_000)
    return subjects


TABLE = """\
2 processes of job 8f0c on vm: python train.py
ranks  pid  runs/s  calls/s  bytes/s  waiting  memory   now
0, 1   7    12.5    1,500.0  12.0 kB  50%      70.0 MB  for 1 s in barrier(), waits for ranks 1, 2
2      8            5.0      5.0 MB   5%       80.0 MB
"""


def test_the_table_has_rates_waits_and_memory_and_the_command_ends_with_the_job(job, capsys):
    assert main(["top", "7", "--interval", "0.001"]) == 0
    assert capsys.readouterr().out == TABLE + "\nthe job has ended\n"
    assert job == ["7", "8f0c", "8f0c"], "the job outlives the process that was named"


def test_one_table_can_be_printed(job, capsys):
    assert main(["top", "7", "--interval", "0.001", "--once"]) == 0
    assert capsys.readouterr().out == TABLE + "\n"


def test_on_a_terminal_the_table_stays_in_place(job, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["top", "7", "--interval", "0.001"]) == 0
    assert capsys.readouterr().out == "\x1b[H\x1b[J" + TABLE + "the job has ended\n"


def test_rich_draws_the_table_if_it_is_installed(job, capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["top", "7", "--interval", "0.001"]) == 0
    out = re.sub(r"\x1b\[[^a-zA-Z]*[a-zA-Z]", "", capsys.readouterr().out)
    row = next(line for line in out.splitlines() if "barrier" in line)
    assert row.replace("│", " ").split()[:8] == ["0,", "1", "7", "12.5", "1,500.0", "12.0", "kB", "50%"]
    assert out.endswith("the job has ended\n")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        # arguments, words of the error
        (["99999999"], "no process has the pid 99999999"),
        (["8f0c2a6de15b9347"], "is neither a pid, nor a file or folder, nor the RINGLET_JOB_ID of a running process"),
        ([__file__], f"{__file__} is a file: ringlet inspect {__file__} shows it"),
        (["1", "--interval", "0"], "--interval must be a positive number of seconds, got 0.0"),
        (["1", "--interval", "nan"], "--interval must be a positive number of seconds, got nan"),
    ],
)
def test_a_wrong_argument_is_a_named_error(arguments, expected, capsys):
    assert main(["top", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ringlet top: ")
    assert expected in error


@pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")
def test_a_running_job_is_shown_until_it_ends(launcher, capsys):
    job = launcher.start(GROUP + WAITS, "-n", 3)
    job.wait_for_lines(1)

    def shown():
        assert main(["top", "--once", "--interval", "0.1", str(job.popen.pid)]) == 0
        return capsys.readouterr().out

    assert eventually(lambda: shown().count("in barrier(), waits for rank 1") == 2)
    rows = [line.split() for line in shown().splitlines()[2:5]]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert [row[row.index("B") + 1] for row in rows] == ["100%", "0%", "100%"]
    os.kill(job.popen.pid, signal.SIGKILL)
    assert job.leaves_nothing()
