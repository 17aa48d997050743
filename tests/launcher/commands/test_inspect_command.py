"""``ringlet inspect``: what it shows of running jobs and of files, and its errors."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ringlet.launcher.command_line import main
from ringlet.launcher.commands import inspect_command
from ringlet.launcher.commands.inspect_command import missing_ranks
from tests.launcher.commands.test_top_command import CALL, snapshot
from tests.launcher.test_recorder_files import DIVERGES, GROUP, WAITS
from tests.processes.harness import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")


# A program that writes the recorder file of its own process.
_WRITES = """
import pathlib, sys
import numpy as np
from ringlet import _core
from ringlet.collectives import Group
from ringlet.observe.recorder import copy_memory
Group(1).member(0).all_reduce(np.ones(3))
pathlib.Path(sys.argv[1]).write_bytes(copy_memory(_core.recorder(), "self"))
"""


@pytest.fixture
def file(tmp_path):
    """A recorder file of a process that has exited."""
    path = tmp_path / "rank-0.recorder"
    subprocess.run([sys.executable, "-c", _WRITES, str(path)], check=True)
    return path


def test_a_running_job_is_shown_by_the_pid_of_any_process_or_its_id(launcher, capsys):
    job = launcher.start(GROUP + "print(os.getpid(), os.environ['RINGLET_JOB_ID'])" + WAITS, "-n", 3)
    job.wait_for_lines(4)
    words = dict(line.split()[1:3] for line in job.lines if "ready" not in line)
    job_id = next(iter(words.values()))

    def shown(subject):
        assert main(["inspect", str(subject), "--last", "2"]) == 0
        return capsys.readouterr().out

    assert eventually(lambda: shown(job_id).count("waits for rank 1") == 2)
    for subject in (job.popen.pid, *words, job_id):
        lines = shown(subject).splitlines()
        assert lines[0].startswith(f"3 processes of job {job_id} on ")
        assert [line.split()[:2] for line in lines[2:5]] == [
            [str(rank), pid] for rank, pid in enumerate(sorted_pids(job))
        ]
        assert lines[3].split(maxsplit=2)[2].startswith("idle for ")
        assert re.search(r" after call 3, all_reduce\(SUM, float32\[3\]\), in <module> \(\S*script.py:\d+\)$", lines[3])
        assert lines[8].split()[:3] == ["3", "all", "returned"]
        assert lines[9].split()[:4] == ["4", "0,", "2", "in"]
    os.kill(job.popen.pid, signal.SIGKILL)
    assert job.leaves_nothing()


def sorted_pids(job):
    """The pids of the workers, in worker order."""
    lines = sorted(line for line in job.lines if "ready" not in line)
    return [line.split()[1] for line in lines]


REPORT = """\
3 processes of job 8f0c on vm: python train.py
rank  pid         state
0     7           for 1.5 s in call 6, barrier(), in step (train.py:9), waits for ranks 1, 2
1     7           idle for 2 s after call 5, all_reduce(SUM, float32[3]), which raised an error, in step (train.py:7)
2     8 (exited)  idle for 500 ms after call 5, all_gather(float32[3], axis=0)
                  2 records were being written and are omitted
-     9           has made no call

group ffffffff, ranks 0 to 2
call  ranks  outcome      time    waiting  last to call  operation                       place
5     0      returned     1 s     500 ms   rank 2        all_reduce(SUM, float32[3])     in step (train.py:7)
5     1      raised       1 s              rank 2        all_reduce(SUM, float32[3])     in step (train.py:7)
5     2      returned     500 ms           rank 2        all_gather(float32[3], axis=0)
6     0      in progress                                 barrier()                       in step (train.py:9)
the ranks' calls differ first at call 5: rank 2 made all_gather(float32[3], axis=0), the others \
all_reduce(SUM, float32[3]) in step (train.py:7)
"""


def test_the_whole_report(monkeypatch, capsys):
    reduced = replace(
        CALL, group=16 * "f", sequence=5, text="all_reduce(SUM, float32[3])", began=98.0, ended=99.0,
        arrived=98.5, outcome="returned", place="in step (train.py:7)", has_buffers=True,
    )  # fmt: skip
    raised = replace(reduced, rank=1, outcome="raised", arrived=None)
    gathered = replace(
        reduced, rank=2, text="all_gather(float32[3], axis=0)", fingerprints=(2, 1), began=99.0, ended=99.5, place="",
        arrived=None,
    )  # fmt: skip
    waits = replace(CALL, group=reduced.group, began=99.5, place="in step (train.py:9)")
    first = snapshot(7, [], 101, (0, 0, 0))
    first.process.threads[:] = [[reduced, waits], [raised]]
    last = snapshot(8, [gathered], 100, (0, 0, 0))
    shots = [first, replace(last, process=replace(last.process, num_half_written=2), has_exited=True)]
    shots.append(snapshot(9, [], 101, (0, 0, 0)))
    monkeypatch.setattr(inspect_command, "read_subject", lambda subject: shots)
    assert main(["inspect", "7"]) == 1
    assert capsys.readouterr().out == REPORT


def test_without_running_jobs_the_list_is_an_error(monkeypatch, capsys):
    monkeypatch.setattr(inspect_command, "_memories", lambda: iter(()))
    assert main(["inspect"]) == main(["top"]) == 2
    assert "no running process of this user has a flight recorder: start" in capsys.readouterr().err


# A program that holds a recorder of another version until its input ends.
_HOLDS = """
import os, sys
os.write(os.memfd_create("ringlet-recorder"), b"RNGLTREC" + bytes([7]) + bytes(4087))
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_strangers_recorder_of_another_version_does_not_matter(launcher, capsys):
    with subprocess.Popen([sys.executable, "-c", _HOLDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout.readline() == b"ready\n"
        job = launcher.start(GROUP + WAITS, "-n", 2)
        job.wait_for_lines(1)
        assert main(["inspect", str(job.popen.pid)]) == 0
        headline, pids = capsys.readouterr().out.split("\n")[0], job.processes()
        for command in ("inspect", "top"):
            assert main([command]) == 0
            head, *lines = capsys.readouterr().out.splitlines()
            assert head.split() == ["job", "pid", "processes", "command"]
            # The names of other jobs may have spaces.
            listed = [re.fullmatch(r"(.+?) +(\d+) +(\d+) *(.*)", line).groups() for line in lines]
            [(name, _, count, words)] = [row for row in listed if int(row[1]) in pids]
            assert count == "2"
            assert headline.startswith(f"2 processes of job {name} on ")
            assert headline.endswith(f": {words}")
        assert main(["inspect", str(stranger.pid)]) == 2
        assert "has version 7 of the recorder's format" in capsys.readouterr().err
        stranger.communicate()


def test_a_divergence_is_named_and_sets_the_exit_status(launcher, tmp_path, capsys):
    launcher.run(GROUP + DIVERGES, "-n", 4, "--log-dir", "logs")
    folder = tmp_path / "logs"
    assert main(["inspect", str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert re.sub(r"\(\S*script.py:\d+\)", "(PLACE)", lines[-1]) == (
        "the ranks' calls differ first at call 4: rank 2 made all_gather(float32[3], axis=0) in <module> (PLACE), "
        "the others all_reduce(SUM, float32[3]) in <module> (PLACE)"
    )
    assert main(["inspect", *map(str, sorted(folder.iterdir())), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["divergence"]["sequence"] == 4
    assert found["divergence"]["text"] == lines[-1]
    assert [process["threads"][0][-1]["outcome"] for process in found["processes"]] == ["raised"] * 4


def test_one_file_is_shown_with_what_is_known_of_it(file, capsys):
    assert main(["inspect", str(file), "--last", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 process on " in out
    assert "all_reduce(SUM, float64[3])" in out


# A program that keeps the memory of a child that has exited, and inspects itself.
_KEEPS = """
import os, subprocess, sys
from ringlet.launcher.command_line import main
descriptor = os.memfd_create("ringlet-recorder", os.MFD_ALLOW_SEALING)
status = os.fstat(descriptor)
code = "from ringlet.collectives import Group; Group(1).member(0).barrier()"
variables = {"RINGLET_RECORDER_FD": f"{descriptor}:{status.st_dev}:{status.st_ino}"}
subprocess.run([sys.executable, "-c", code], check=True, pass_fds=(descriptor,), env=os.environ | variables)
sys.exit(main(["inspect", str(os.getpid())]))
"""


def test_a_process_that_has_exited_is_marked():
    found = subprocess.run([sys.executable, "-c", _KEEPS], check=True, capture_output=True, text=True)
    assert "(exited)  idle for " in found.stdout


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        # subject, words of the error
        ("99999999", "no process has the pid 99999999"),
        (
            "8f0c2a6de15b9347",
            "is neither a pid, nor a file or folder, nor the RINGLET_JOB_ID of a running process of this user",
        ),
        (__file__, "is not a recorder file: it does not begin with RNGLTREC"),
        (str(Path(__file__).parent), "contains no *.recorder files"),
    ],
)
def test_a_wrong_subject_is_a_named_error(subject, expected, capsys):
    assert main(["inspect", subject]) == 2
    error = capsys.readouterr().err
    assert error.startswith("ringlet inspect: ")
    assert expected in error
    assert error.count("\n") == 1


def test_a_process_without_a_recorder_is_a_named_error(capsys):
    with subprocess.Popen(["sleep", "300"]) as process:
        try:
            assert main(["inspect", str(process.pid)]) == 2
        finally:
            process.kill()
    assert f"process {process.pid} has no flight recorder: it has not created a group" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user")
def test_a_process_of_another_user_is_a_named_error(capfd):
    process = os.getpid()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        os._exit(main(["inspect", str(process)]))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert f"process {process} cannot be read: it belongs to another user" in capfd.readouterr().err


def test_a_truncated_file_and_another_version_are_named_errors(file, capsys):
    data = file.read_bytes()
    for damaged, expected in (
        (data[:5000], "is truncated: it has 5000 bytes"),
        (data[:8] + b"\7" + data[9:], "has version 7 of the recorder's format"),
    ):
        file.write_bytes(damaged)
        assert main(["inspect", str(file)]) == 2
        error = capsys.readouterr().err
        assert str(file) in error
        assert expected in error


def test_last_must_be_a_positive_number(file, capsys):
    assert main(["inspect", str(file), "--last", "0"]) == 2
    assert "--last must be an integer of at least 1, got '0'" in capsys.readouterr().err


def test_a_call_that_began_after_the_first_process_was_read_waits_for_no_known_rank():
    assert missing_ranks(CALL, [0, 2], oldest=102.0) == [1]
    assert missing_ranks(CALL, [0, 2], oldest=101.0) == []
