"""``ringlet trace``: the table, the merged timeline, and files that are not whole traces."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from ringlet.launcher.command_line import main
from tests.launcher.test_recorder_files import GROUP, KILLED, WAITS_FOR_THE_OTHERS
from tests.processes.harness import PATIENCE_SECONDS

CALL = {"call": "all_reduce(SUM, float32[3])", "group": "00ff", "ranks": 2, "bytes": 12, "outcome": "returned"}


def write_trace(path, events, *, pid=7, host="vm", job="8f0c", began=0.0, wall=1e15, end="\n]\n", version=1):
    """Write a trace as the library does; times are in milliseconds."""
    about = {"version": version, "host": host, "pid": pid, "job": job, "command": "python train.py"}
    about |= {"began": began * 1e3, "wall_minus_monotonic": wall}
    head = [{"ph": "M", "pid": pid, "tid": 0, "name": "ringlet", "args": about}]
    lines = [json.dumps({"pid": pid} | event) for event in head + events]
    path.parent.mkdir(exist_ok=True)
    path.write_text("[\n" + ",\n".join(lines) + end)
    os.utime(path, ns=(0, int((wall + began * 1e3 + 1e6) * 1e3)))


def piece(track, start, end, category, name="", **args):
    """A slice, in milliseconds."""
    times = {"ts": start * 1e3, "dur": (end - start) * 1e3}
    return {"ph": "X", "tid": track, **times, "cat": category, "name": name or category, "args": args}


def call_of(rank, number, start, end, waits_until=None):
    """A call of a rank, and its wait."""
    call = piece(rank + 1, start, end, "collective", "all_reduce", **CALL, rank=rank, number=number)
    return [call, *([] if waits_until is None else [piece(rank + 1, start, waits_until, "waiting")])]


@pytest.fixture
def folder(tmp_path):
    """Two processes with a replica each, of which rank 1 is late twice; an asynchronous call, half of it in wait()."""
    folder = tmp_path / "traces"
    asynchronous = piece(10_001, 60, 80, "collective", "all_reduce", **CALL | {"group": "a"}, rank=0, number=1)
    write_trace(
        folder / "vm-7.trace.json",
        [
            piece(1, 0, 100, "replica", "replica 0"),
            *call_of(0, 1, 10, 31, 30),
            *call_of(0, 2, 40, 50, 49),
            asynchronous,
            piece(1, 70, 80, "wait"),
            {"ph": "s", "tid": 1, "ts": 30e3, "cat": "collective", "name": "call", "id": 5},
        ],
    )
    write_trace(
        folder / "vm-8.trace.json",
        [
            piece(10_000, 0, 5, "input", "next"),
            piece(2, 5, 100, "replica", "replica 1"),
            *call_of(1, 1, 30, 31),
            *call_of(1, 2, 49, 50),
            {"ph": "i", "tid": 2, "ts": 60e3, "cat": "lost", "name": "3 calls lost", "args": {"lost": 3}},
        ],
        pid=8,
        end="",
    )
    return folder


TABLE = """\
2 processes of job 8f0c on vm: python train.py
rank  pid  time    compute  communication  waiting  input  calls  bytes  waits mostly for
0     7    100 ms  59.0%    2.0%           29.0%    0.0%   2      24     rank 1 (100%)
1     8    100 ms  93.0%    2.0%           0.0%     5.0%   2      24
the others waited longest for rank 1: 29 ms in total
asynchronous calls took 20 ms, 50% of which overlapped with the program
3 events are missing, because there were too many to write
1 of 2 files are incomplete: their processes are running, or were killed
"""


def test_the_table_shows_where_the_time_of_each_rank_went(folder, capsys):
    assert main(["trace", str(folder)]) == 0
    assert capsys.readouterr().out == TABLE
    assert main(["trace", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["slowest_rank"] == 1
    assert found["ranks"][0]["waits_for"] == {"1": pytest.approx(0.029)}
    assert found["asynchronous"] == {"seconds": pytest.approx(0.02), "overlapped": pytest.approx(0.01)}
    assert [process["pid"] for process in found["processes"]] == [7, 8]


def test_files_are_merged_on_one_clock_for_each_host(folder, tmp_path, capsys):
    # Another host, whose clock starts elsewhere; its trace begins 50 ms after the first one of the other host.
    write_trace(folder / "b-7.trace.json", call_of(2, 1, 900, 910), host="b", began=850, wall=1e15 - 800e3)
    output = tmp_path / "job.json"
    assert main(["trace", str(folder), "--output", str(output)]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "3 processes of job 8f0c on b, vm: python train.py"
    assert out.splitlines()[-1] == f"wrote {output}: open it at https://ui.perfetto.dev"
    events = json.loads(output.read_text())
    times = {event["pid"]: event["ts"] for event in events if event.get("cat") == "collective" and event["ph"] == "X"}
    assert times[3] == 100e3
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {1: "vm rank 0 (7)", 2: "vm rank 1 (8)", 3: "b rank 2 (7)"}
    assert [event["id"] for event in events if event["ph"] == "s"] == [5]


def test_a_call_in_progress_waits_for_the_rank_that_has_not_made_it(tmp_path, capsys):
    begin = {"ph": "B", "tid": 1, "ts": 20e3, "cat": "collective", "name": "all_reduce"}
    write_trace(tmp_path / "vm-7.trace.json", [begin | {"args": CALL | {"rank": 0, "number": 3}}], end="")
    write_trace(tmp_path / "vm-8.trace.json", [piece(2, 0, 100, "replica", "replica 1")], pid=8, end="")
    assert main(["trace", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert " ".join(lines[2].split()) == "0 7 100 ms 20.0% 0.0% 80.0% 0.0% 1 12 rank 1 (100%)"
    assert lines[4] == "the others waited longest for rank 1: 80 ms in total"


def test_without_a_launcher_the_processes_that_ran_at_the_same_time_are_a_job(tmp_path, capsys):
    for pid, began in ((1, 0), (2, 100), (3, 50_000), (4, 50_500)):
        write_trace(tmp_path / f"vm-{pid}.trace.json", [], pid=pid, job="", began=began)
    assert main(["trace", str(tmp_path), "--json"]) == 0
    assert [process["pid"] for process in json.loads(capsys.readouterr().out)["processes"]] == [3, 4]


def test_a_half_written_last_line_is_left_out(folder, capsys):
    with (folder / "vm-8.trace.json").open("a") as file:
        file.write(',\n{"ph":"X","pid":8,"ti')
    assert main(["trace", str(folder)]) == 0
    assert capsys.readouterr().out == TABLE


def test_other_files_and_earlier_jobs_of_a_folder_are_skipped_with_a_line(folder, capsys):
    (folder / "empty.trace.json").write_text("")
    (folder / "other.trace.json").write_text('[\n{"ph":"X"}\n]\n')
    write_trace(folder / "new.trace.json", [], version=2)
    write_trace(folder / "old.trace.json", [], job="", wall=1e15 - 1e10)
    write_trace(folder / "job.trace.json", [], job="1111", began=-1)
    assert main(["trace", str(folder)]) == 0
    out, errors = capsys.readouterr()
    assert out == TABLE
    assert errors.splitlines() == [
        f"ringlet trace: skipped {folder}/empty.trace.json: the file is empty",
        f"ringlet trace: skipped {folder}/new.trace.json: the trace has version 2, but this installation reads version "
        "1: use the version of ringlet that wrote it",
        f"ringlet trace: skipped {folder}/other.trace.json: the file is not a trace written with RINGLET_TRACE",
        f"ringlet trace: skipped 2 files of earlier jobs in {folder}",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # content of the file, words of the error
        ("", "the file is empty"),
        ("{}", "the file is not a trace written with RINGLET_TRACE"),
        (b"\xff\xfe\x00", "the file is not a trace"),
        ('[\n{"ph":"M","name":"ringlet","args":{"version":2}}', "has version 2, but this installation reads version 1"),
        ("{DAMAGED", "is damaged at line 3"),
        ('{"ph":"X","ts":1}', "is damaged: an event lacks 'tid'"),
        ("3", "is damaged at line 3"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_named_error(tmp_path, text, expected, capsys):
    file = tmp_path / "vm-7.trace.json"
    write_trace(file, [])
    if expected.startswith("is damaged"):
        text = file.read_text().replace("\n]", f",\n{text},\n{{}}\n]")
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["trace", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"ringlet trace: {file}")
    assert expected in error
    assert error.count("\n") == 1


def test_without_a_trace_there_is_an_error_or_an_empty_table(tmp_path, capsys):
    assert main(["trace", str(tmp_path)]) == 2
    expected = f"{tmp_path} contains no *.trace.json files. Run a job with RINGLET_TRACE={tmp_path} to write them"
    assert expected in capsys.readouterr().err
    assert main(["trace", str(tmp_path / "none")]) == 2
    assert "No such file or directory" in capsys.readouterr().err
    write_trace(tmp_path / "vm-7.trace.json", [])
    assert main(["trace", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["no rank has made a call"]


@pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")
def test_a_job_with_a_killed_worker_leaves_a_file_for_each_worker(launcher, tmp_path, capsys):
    script = GROUP + WAITS_FOR_THE_OTHERS + KILLED
    job = launcher.run(script, "-n", 3, "--grace-seconds", PATIENCE_SECONDS, environ={"RINGLET_TRACE": "traces"})
    assert job.status == 128 + signal.SIGKILL
    assert main(["trace", str(tmp_path / "traces"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["processes"]) == 3
    assert len({process["job"] for process in found["processes"]}) == 1
    assert found["open_files"] >= 1
    assert {rank["rank"] for rank in found["ranks"]} >= {0, 2}
    assert {rank["num_calls"] for rank in found["ranks"] if rank["rank"] != 1} == {4}
