"""Flight recorders that the launcher keeps: after a failure, on request, and what is printed of them."""

from __future__ import annotations

import re
import signal
import sys

import pytest

import ringlet
from ringlet.launcher.recorder_files import RecorderFiles
from ringlet.observe.recorder import read_process
from tests.processes.harness import PATIENCE_SECONDS, descriptors_of, eventually

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")]

GROUP = """
import numpy as np
import ringlet
member = ringlet.collectives.init_process_group()
for _ in range(3):
    member.all_reduce(np.ones(3, np.float32))
"""
KILLED = """
if index == 1:
    os.kill(os.getpid(), signal.SIGKILL)
member.barrier()
"""
# Calls that begin after the end of a rank fail without a record, so the other ranks must have begun theirs.
WAITS_FOR_THE_OTHERS = """
from ringlet.launcher.commands.inspect_command import read_subject
def begun_barriers():
    threads = [thread for each in read_subject(os.environ["RINGLET_JOB_ID"]) for thread in each.process.threads]
    return sum(operation.text == "barrier()" for thread in threads for operation in thread)
while index == 1 and begun_barriers() < member.num_ranks - 1:
    time.sleep(0.01)
"""
DIVERGES = """
if index == 2:
    member.all_gather(np.ones(3, np.float32))
else:
    member.all_reduce(np.ones(3, np.float32))
"""
WAITS = """
if index == 1:
    print("ready")
    time.sleep(300)
member.barrier()
"""
REPORTS_ITS_CALL = """
import threading
def report():
    while member._core.calls == 3:
        time.sleep(0.001)
    print("waits")
if index == 1:
    time.sleep(300)
threading.Thread(target=report).start()
member.barrier()
"""


def read_folder(folder):
    """The processes of a folder, by file name."""
    return {file.name: read_process(file.read_bytes(), str(file)) for file in folder.glob("*.recorder")}


def test_the_last_calls_of_a_killed_rank_can_be_read(launcher, tmp_path):
    script = GROUP + WAITS_FOR_THE_OTHERS + KILLED
    job = launcher.run(script, "-n", 4, "--log-dir", "logs/first", "--grace-seconds", PATIENCE_SECONDS)
    assert job.status == 128 + signal.SIGKILL
    assert "ringlet run: wrote 4 flight recorders to logs/first: ringlet inspect logs/first shows them" in job.errors
    assert not any("calls differ" in line for line in job.errors)
    found = read_folder(tmp_path / "logs" / "first")
    assert sorted(found) == [f"rank-{rank}.recorder" for rank in range(4)]
    for rank in range(4):
        (operations,) = found[f"rank-{rank}.recorder"].threads
        assert [op.text for op in operations[:3]] == ["all_reduce(SUM, float32[3])"] * 3
        assert [(op.text, op.outcome) for op in operations[3:]] == ([("barrier()", "raised")] if rank != 1 else [])
        assert {op.rank for op in operations} == {rank}
    assert len({process.job for process in found.values()}) == 1
    assert len({op.group for process in found.values() for op in process.threads[0]}) == 1


def test_a_divergence_is_one_line(launcher, tmp_path):
    job = launcher.run(GROUP + DIVERGES, "-n", 4, "--grace-seconds", PATIENCE_SECONDS)
    lines = [line for line in job.errors if "calls differ" in line]
    assert [re.sub(r"\(\S*script.py:\d+\)", "(PLACE)", line) for line in lines] == [
        "ringlet run: the ranks' calls differ first at call 4: rank 2 made all_gather(float32[3], axis=0) "
        "in <module> (PLACE), the others all_reduce(SUM, float32[3]) in <module> (PLACE)"
    ]
    assert not list(tmp_path.glob("**/*.recorder"))


def test_the_divergence_of_a_strategy_has_one_name_and_number(launcher):
    program = """
import numpy as np, ringlet
strategy = ringlet.MultiWorkerMirroredStrategy()
strategy.run(lambda: ringlet.replica_context().all_reduce("SUM", np.ones(2 + ringlet.rank())))
"""
    job = launcher.run(program, "-n", 2, "--grace-seconds", PATIENCE_SECONDS)
    assert any("the workers did not make the same call (their call number 1)" in line for line in job.errors)
    assert not any("calls differ" in line for line in job.errors)


def test_ctrl_c_names_the_ranks_that_a_group_waits_for(launcher):
    job = launcher.start(GROUP + REPORTS_ITS_CALL, "-n", 2)
    job.wait_for_lines(1)
    job.send(signal.SIGINT)
    assert job.end().status == 128 + signal.SIGINT
    assert any("rank 0 waited for rank 1 in barrier() in <module> (" in line for line in job.errors)


def test_on_request_the_recorders_of_running_workers_are_written(launcher, tmp_path):
    job = launcher.start(GROUP + WAITS, "-n", 2, "--grace-seconds", 0.1, environ={"RINGLET_RECORDER_SIGNAL": "USR2"})
    job.wait_for_lines(1)
    job.send(signal.SIGUSR2)
    assert eventually(lambda: len(list(tmp_path.glob("rank-*.recorder"))) == 2)
    assert len(job.processes()) >= 2, "SIGUSR2 would have ended the workers"
    job.send(signal.SIGTERM)
    assert job.end().status == 128 + signal.SIGTERM
    assert len(read_folder(tmp_path)) == 2


def test_another_signal_than_those_is_refused(launcher):
    job = launcher.run("", "-n", 1, environ={"RINGLET_RECORDER_SIGNAL": "KILL"})
    assert (job.status, job.errors) == (2, ["ringlet run: RINGLET_RECORDER_SIGNAL must be USR1 or USR2, got 'KILL'"])


def test_a_folder_that_cannot_be_written_is_reported(launcher, tmp_path):
    (tmp_path / "logs").write_text("")
    job = launcher.run("sys.exit(3)", "-n", 1, "--log-dir", "logs")
    assert job.status == 3
    assert "ringlet run: cannot write the flight recorders to logs: File exists" in job.errors


def test_workers_without_a_group_or_recorder_have_no_file(launcher, tmp_path):
    job = launcher.run("sys.exit(3)", "-n", 2, "--log-dir", "logs")
    assert job.status == 3
    job = launcher.run(GROUP + KILLED, "-n", 2, "--log-dir", "logs", environ={"RINGLET_RECORDER": "0"})
    assert job.status == 128 + signal.SIGKILL
    assert list(tmp_path.glob("logs/*")) == []


def test_programs_that_a_worker_starts_do_not_use_its_memory(launcher, tmp_path):
    child = """
code = "from ringlet.collectives import Group; Group(1).member(0).barrier()"
subprocess.run([sys.executable, "-c", code], check=True, close_fds=False)
import ringlet
member = ringlet.collectives.Group(1).member(0)
member.barrier()
subprocess.run([sys.executable, "-c", code], check=True, close_fds=False)
if os.fork() == 0:
    ringlet.collectives.Group(1).member(0).barrier()
    os._exit(0)
os.wait()
sys.exit(3)
"""
    assert launcher.run(child, "-n", 1, "--log-dir", "logs").status == 3
    (process,) = read_folder(tmp_path / "logs").values()
    assert sum(map(len, process.threads)) == 1


def diverging_task():
    """Make different calls on each worker."""
    import numpy as np

    member = ringlet.collectives.init_process_group()
    member.all_reduce(np.ones(2 + member.rank))


def test_launch_notes_a_divergence():
    before = descriptors_of()
    with pytest.raises(ringlet.errors.CollectiveMismatchError) as caught:
        ringlet.launch(diverging_task, n=2)
    place = rf" in diverging_task \(\S*:{diverging_task.__code__.co_firstlineno + 5}\)"
    calls = [rf"rank {rank} made all_reduce\(SUM, float64\[{2 + rank}\]\){place}" for rank in range(2)]
    expected = f"the ranks' calls differ first at call 1: {', '.join(calls)}"
    assert any(re.fullmatch(expected, note) for note in caught.value.__notes__)
    assert descriptors_of() == before


def one_differs():
    """Make another call on worker 1."""
    ringlet.collectives.init_process_group().all_reduce([0.0] * (2 + (ringlet.rank() == 1)))


def test_launch_raises_the_error_of_the_worker_whose_call_differs():
    with pytest.raises(ringlet.errors.CollectiveMismatchError) as caught:
        ringlet.launch(one_differs, n=3)
    raised, divergence, headline, others = caught.value.__notes__
    assert raised == "worker 1 of 3 raised this"
    assert divergence.startswith("the ranks' calls differ first at call 1: rank 1 made ")
    assert headline == "worker 1 of 3 did not make the call that the others made"
    assert others.startswith("workers 0 and 2 failed because of it: ringlet.errors.CollectiveMismatchError: ")
    assert "\n" not in others


def test_scarce_descriptors_are_left_to_the_workers(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda which: (128, 128))
    files = RecorderFiles(20, {})
    assert files.add() == ((), {"RINGLET_RECORDER_FD": ""})
    assert files.divergence() is None
    files.close()
