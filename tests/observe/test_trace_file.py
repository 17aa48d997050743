"""Traces: what is in the file, and that it can be read whatever happens to the process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import ringlet
from ringlet.collectives import Group
from ringlet.data import Dataset
from ringlet.observe.trace_file import FIRST_THREAD

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")


def events_of(path):
    """The events of a trace, of which the process may have been killed."""
    text = path.read_text()
    return json.loads(text if text.endswith("]\n") else text + "]")


def select(events, category):
    """The slices of a category, in the order of time."""
    found = [event for event in events if event.get("cat") == category and event["ph"] == "X"]
    return sorted(found, key=lambda event: event["ts"])


def run_python(code, folder, status=0, **variables):
    """Run a traced program; return the events of each file, the first process first, and its errors."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGLET_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment | {"RINGLET_TRACE": str(folder)} | variables,
    )
    assert done.returncode == status, done.stderr
    files = sorted(folder.glob("*.trace.json"), key=lambda path: path.stat().st_ctime_ns)
    return sorted(map(events_of, files), key=lambda events: events[0]["args"]["began"]), done.stderr


def encloses(outer, inner):
    """Whether a slice is nested in another one."""
    return (outer["pid"], outer["tid"]) == (inner["pid"], inner["tid"]) and (
        outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.001
    )


def test_replicas_have_tracks_with_their_calls_waits_and_arrows(tmp_path):
    strategy = ringlet.MirroredStrategy(2)

    def step():
        context = ringlet.replica_context()
        time.sleep(0.1 * int(context.replica_id_in_sync_group))
        return context.all_reduce("SUM", np.ones(3, np.float32))

    with ringlet.observe.trace(tmp_path) as file:
        strategy.run(step)
    (path,) = tmp_path.iterdir()
    assert str(path) == file
    events = json.loads(path.read_text())
    replicas = select(events, "replica")
    assert sorted((event["name"], event["tid"]) for event in replicas) == [("replica 0", 1), ("replica 1", 2)]
    calls = {event["args"]["rank"]: event for event in select(events, "collective")}
    assert {rank: event["tid"] for rank, event in calls.items()} == {0: 1, 1: 2}
    assert calls[0]["name"] == "all_reduce"
    assert calls[0]["args"]["call"] == "all_reduce(SUM, float32[3])"
    assert (calls[0]["args"]["bytes"], calls[0]["args"]["ranks"], calls[0]["args"]["outcome"]) == (12, 2, "returned")
    assert calls[0]["args"]["group"] == calls[1]["args"]["group"]
    (waiting,) = (event for event in select(events, "waiting") if event["dur"] > 50_000)
    assert encloses(calls[0], waiting)
    for call in calls.values():
        assert any(encloses(replica, call) for replica in replicas)
    arrows = [event for event in events if event["ph"] in ("s", "t")]
    assert [(event["ph"], event["tid"]) for event in sorted(arrows, key=lambda event: event["ts"])] == [
        ("s", 2),
        ("t", 1),
    ]
    assert len({event["id"] for event in arrows}) == 1
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert (names[1], names[2]) == ("replica 0", "replica 1")


def test_a_trace_without_events_is_valid_and_calls_before_it_are_not_in_it(tmp_path):
    member = Group(1).member(0)
    member.barrier()
    with ringlet.observe.trace(tmp_path) as file:
        pass
    member.barrier()
    events = json.loads((tmp_path / file).read_text())
    assert [event["name"] for event in events] == ["ringlet", "process_name"]
    assert events[0]["args"]["pid"] == os.getpid()


def test_stages_of_datasets_and_checkpoints_are_traced(tmp_path):
    pytest.importorskip("safetensors")
    dataset = Dataset.range(6).map(lambda x: (time.sleep(0.001), x)[1]).batch(3)
    variable = ringlet.Variable(1.0)
    with ringlet.observe.trace(tmp_path / "traces") as file:
        list(dataset)
        saved = ringlet.train.Checkpoint(v=variable).save(tmp_path / "ckpt")
        ringlet.train.Checkpoint(v=variable).restore(saved)
    events = events_of(tmp_path / file)
    assert [event["name"] for event in select(events, "stage") if event["dur"] >= 1000].count("Map") == 6
    assert [event["name"] for event in select(events, "checkpoint")] == ["save", "restore"]
    inputs = select(events, "input")
    assert len(inputs) == 3, "two elements and the end"
    assert any(encloses(inputs[0], event) for event in select(events, "stage"))
    assert next(iter(dataset)).tolist() == [0, 1, 2], "a pipeline outlives its trace"


def test_asynchronous_calls_have_a_track_of_their_own(tmp_path):
    member = Group(1).member(0)
    with ringlet.observe.trace(tmp_path) as file:
        member.all_reduce_async(np.ones(3)).wait()
        member.barrier()
    events = events_of(tmp_path / file)
    tracks = {event["name"]: event["tid"] for event in select(events, "collective")}
    assert tracks["barrier"] == 1
    assert tracks["all_reduce"] >= FIRST_THREAD
    assert [event["tid"] for event in select(events, "asynchronous")] == [tracks["all_reduce"]]
    assert len(select(events, "wait")) == 1


def test_after_sigkill_the_file_has_the_call_in_progress(tmp_path):
    code = """
import os, signal, threading, time, ringlet.observe.trace_file
ringlet.observe.trace_file._LONG_CALL_SECONDS = 0.01
group = ringlet.collectives.Group(2)
first = threading.Thread(target=group.member(1).barrier)
first.start()
group.member(0).barrier()
first.join()
threading.Thread(target=group.member(1).barrier, args=("stuck",), daemon=True).start()
while '"ph":"B"' not in open(ringlet.observe.trace_hook.current.path).read():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""
    ((events,), _) = run_python(code, tmp_path, -signal.SIGKILL)
    assert not next(tmp_path.iterdir()).read_text().endswith("]\n")
    assert sorted(event["args"]["rank"] for event in select(events, "collective")) == [0, 1]
    (stuck,) = (event for event in events if event["ph"] == "B")
    assert (stuck["name"], stuck["args"]["rank"], stuck["args"]["number"]) == ("barrier", 1, 2)


def test_a_long_call_ends_where_it_began(tmp_path, monkeypatch):
    monkeypatch.setattr("ringlet.observe.trace_file._LONG_CALL_SECONDS", 0.01)
    strategy = ringlet.MirroredStrategy(2)

    def step():
        context = ringlet.replica_context()
        time.sleep(0.6 * int(context.replica_id_in_sync_group))
        context.all_reduce("SUM", 1.0)

    with ringlet.observe.trace(tmp_path) as file:
        strategy.run(step)
    events = events_of(tmp_path / file)
    begin, end = (next(event for event in events if event["ph"] == phase) for phase in "BE")
    assert begin["tid"] == end["tid"] == 1
    assert end["ts"] - begin["ts"] > 500_000
    assert len(select(events, "collective")) == 1


def test_calls_that_were_overwritten_before_they_were_read_are_counted(tmp_path):
    member = Group(1).member(0)
    plan = member.plan_all_reduce(np.ones(2), out=np.empty(2))
    with ringlet.observe.trace(tmp_path) as file:
        for _ in range(100_000):
            plan()
    events = events_of(tmp_path / file)
    lost = sum(event["args"]["lost"] for event in events if event.get("cat") == "lost")
    assert len(select(events, "collective")) + lost == 100_000
    assert len(select(events, "collective")) >= 1000


def test_a_full_disk_ends_the_trace_with_one_warning(tmp_path):
    code = """
import resource, time, ringlet
from ringlet.observe import trace_hook
member = ringlet.collectives.Group(1).member(0)
for _ in range(1024):  # the recorder reserves its memory
    member.barrier()
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
while trace_hook.current is not None:
    time.sleep(0.01)
    member.barrier()
member.barrier()
"""
    ((events,), errors) = run_python(code, tmp_path)
    assert len(events) >= 2
    (line,) = errors.splitlines()
    reason = r"\[Errno \d+\] (No space left on device|File too large)"
    path = rf"{re.escape(str(tmp_path))}/\S+"
    assert re.fullmatch(f"tracing has stopped, because {path} cannot be written: {reason}; the program continues", line)


def test_a_folder_that_cannot_be_made_is_one_warning_or_an_error(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    code = "from ringlet.collectives import Group; Group(1).member(0).barrier(); Group(1).member(0).barrier()"
    (found, errors) = run_python(code, tmp_path, RINGLET_TRACE=str(file / "traces"))
    assert found == []
    assert errors.count("tracing has stopped, because ") == errors.count("; the program continues") == 1
    with pytest.raises(NotADirectoryError), ringlet.observe.trace(file / "traces"):
        pass
    assert ringlet.observe.trace_hook.current is None


def test_the_child_of_a_fork_has_a_file_of_its_own(tmp_path):
    code = """
import os, ringlet
def call(count):
    for _ in range(count):
        ringlet.collectives.Group(1).member(0).barrier()
call(1)
if os.fork() == 0:
    call(2)
    os._exit(ringlet.observe.trace_file.close() or 0)
os.wait()
if os.fork() == 0:  # makes no event
    os._exit(0)
os.wait()
call(3)
"""
    ((parent, child), _) = run_python(code, tmp_path)
    assert (len(select(parent, "collective")), len(select(child, "collective"))) == (4, 2)
    assert parent[0]["pid"] != child[0]["pid"]
    assert {event["pid"] for event in child} == {child[0]["pid"]}
