"""Reports of stalls: once for each call, with the missing ranks and what every rank executes."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import ringlet
from ringlet.collectives import Group
from ringlet.errors import CollectiveMismatchError, DeadlineExceededError
from ringlet.observe.stall_reports import stall_seconds
from ringlet.testing import run_on_ranks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("text", "seconds"), [("", 30.0), (" ", 30.0), ("2.5", 2.5), ("0", float("inf"))])
def test_the_time_comes_from_the_environment(text, seconds):
    assert stall_seconds({"RINGLET_STALL_SECONDS": text}) == seconds


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_a_time_that_is_not_one_is_named(text):
    with pytest.raises(
        ValueError, match=f"^RINGLET_STALL_SECONDS is '{text}': expected a positive number of seconds, or 0 for"
    ):
        stall_seconds({"RINGLET_STALL_SECONDS": text})


@pytest.mark.parametrize(
    "create",
    [lambda: ringlet.MirroredStrategy(1), ringlet.MultiWorkerMirroredStrategy, lambda: Group(2)],
    ids=["one replica", "one worker", "group"],
)
def test_a_wrong_value_is_an_error_at_the_first_strategy_or_group(monkeypatch, create):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "-1")
    with pytest.raises(ValueError, match=r"^RINGLET_STALL_SECONDS is '-1': expected a positive number of seconds"):
        create()


def reports(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "ringlet.observe.stall_reports"]


def late_step(seconds, calls=1):
    """The program of a rank: rank 1 sleeps before its last call."""

    def step(member):
        for _ in range(calls - 1):
            member.barrier()
        if member.rank == 1:
            time.sleep(seconds)
        return member.all_reduce(np.ones((2, 3)))[0, 0]

    return step


GOLDEN = """\
all_reduce(SUM, float64[2,3]), call 3 of rank R, has waited 0.2 s for rank 1 (after 2 calls).
  rank 1:
    FILE:N in step: time.sleep(seconds)
    FILE:N in run: results[member.rank] = program(member)
  ranks 0, 2, waiting in this call:
    FILE:N in step: return member.all_reduce(np.ones((2, 3)))[0, 0]
    FILE:N in run: results[member.rank] = program(member)
This is reported once for each call, after RINGLET_STALL_SECONDS. The call fails after LIMIT."""


def normalised(text):
    text = re.sub(r"of rank \d", "of rank R", text.replace("600 s (RINGLET_TIMEOUT_SECONDS)", "LIMIT"))
    return re.sub(r"\S+:\d+ in ", "FILE:N in ", text)


def threads_of(program, num_ranks=3, **options):
    """Run a program on ranks whose threads have no frames of the caller."""
    group, results = Group(num_ranks, **options), [None] * num_ranks

    def run(member):
        results[member.rank] = program(member)

    threads = [threading.Thread(target=run, args=(group.member(rank),)) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_a_late_rank_is_named_once_with_the_lines_of_all_ranks(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.2")
    assert threads_of(late_step(1.0, calls=3)) == [3, 3, 3]
    (text,) = reports(caplog)
    assert normalised(text) == GOLDEN


def test_each_stalled_call_is_reported(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.1")

    def step(member):
        for _ in range(2):
            if member.rank == 1:
                time.sleep(0.5)
            member.barrier()

    threads_of(step)
    assert len(reports(caplog)) == 2


@pytest.mark.parametrize("seconds", ["0", "5"])
def test_nothing_is_reported_before_the_time(monkeypatch, caplog, seconds):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", seconds)
    threads_of(late_step(0.5))
    assert reports(caplog) == []


ERROR = """\
barrier(), call 2 of rank R, waited 0.6 s for rank 1 (after 1 call).
After WAIT, the ranks executed:
  rank 1:
    FILE:N in step: released.wait(60)
    FILE:N in run: results[member.rank] = program(member)
  rank 0, waiting in this call:
    FILE:N in step: member.barrier()
    FILE:N in run: results[member.rank] = program(member)
Allow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS."""


@pytest.mark.parametrize("seconds", ["0.1", "5", "0"])
def test_the_error_of_a_time_out_has_what_the_report_had_even_if_none_was_made(monkeypatch, caplog, seconds):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", seconds)
    released, errors = threading.Event(), []

    def step(member):
        member.barrier()
        if member.rank == 1:
            released.wait(60)
            return
        try:
            member.barrier()
        except DeadlineExceededError as error:
            errors.append(str(error))
        finally:
            released.set()

    threads_of(step, num_ranks=2, timeout_seconds=0.6)
    assert normalised(errors[0]) == ERROR.replace("WAIT", "0.1 s" if seconds == "0.1" else "0.6 s")
    texts = reports(caplog)
    assert len(texts) == (seconds == "0.1")
    for text in texts:
        assert "barrier(), call 2 of rank 0, has waited 0.1 s for rank 1 (after 1 call)." in text
        assert text.endswith("The call fails after 0.6 s (RINGLET_TIMEOUT_SECONDS).")


def test_a_replica_is_described_before_its_first_call(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.2")
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])

    def load_batch():
        time.sleep(1.0)

    def step():
        context = ringlet.get_replica_context()
        if context.replica_id_in_sync_group == 1:
            load_batch()
        return context.all_reduce(ringlet.ReduceOp.SUM, np.ones(2))

    strategy.run(step)
    (text,) = reports(caplog)
    missing, waiting = text.split("rank 0, waiting in this call:")
    assert "load_batch" in missing
    assert "time.sleep(1.0)" in missing
    assert "return context.all_reduce" in waiting


def test_a_mismatch_names_the_lines_of_both_sides():
    def step(member):
        if member.rank == 1:
            return member.barrier()
        return member.all_reduce(np.ones(2))

    with pytest.raises(CollectiveMismatchError) as caught:
        run_on_ranks(2, step)
    text = str(caught.value)
    first = step.__code__.co_firstlineno
    for rank, call, line in ((0, r"all_reduce\(SUM, float64\[2\]\)", first + 3), (1, r"barrier\(\)", first + 2)):
        assert re.search(rf"rank {rank}: {call}, in step \(\S*test_stall_reports.py:{line}\)", text)


def test_a_receive_without_a_message_is_reported(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.2")

    def step(member):
        if member.rank == 1:
            time.sleep(1.0)
            member.send(np.ones(2), 0, tag=7)
            return None
        return member.recv(1, tag=7)

    threads_of(step, num_ranks=2)
    (text,) = reports(caplog)
    assert text.startswith("recv from rank 1 with tag 7, of rank 0, has waited 0.2 s.\n  rank 1:")
    assert "time.sleep(1.0)" in text
    assert "return member.recv(1, tag=7)" in text.split("rank 0, waiting in this call:")[1]


# --- between processes ------------------------------------------------------------------------------------------------

JOB = """
import os, signal, sys, time
import numpy as np
import ringlet

def load_batch():
    if sys.argv[1] == "sleep":
        time.sleep(1.5)
    elif sys.argv[1] == "compute":
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            pass
    elif sys.argv[1] == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)

member = ringlet.collectives.init_process_group()
for _ in range(4):
    member.barrier()
if member.rank == 1:
    load_batch()
member.all_reduce(np.ones(3))
"""


def job(tmp_path, how, **environment):
    (tmp_path / "train.py").write_text(JOB, encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "3", str(tmp_path / "train.py"), how]
    variables = {**os.environ, "RINGLET_STALL_SECONDS": "0.3", **environment}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, re.sub(r"(?m)^\[w\d\] ", "", done.stderr)


@pytest.mark.parametrize(
    ("how", "missing"),
    [
        (
            "sleep",
            r"  rank 1:\n    \S*train.py:8 in load_batch: time.sleep\(1.5\)\n    \S*train.py:20 in <module>: load_",
        ),
        (
            "compute",
            r"  rank 1:\n    \S*train.py:1[12] in load_batch: .*\n    \S*train.py:20 in <module>: load_batch\(\)\n",
        ),
    ],
)
def test_a_late_process_is_named_with_its_lines(tmp_path, how, missing):
    status, text = job(tmp_path, how)
    assert status == 0, text
    assert re.search(
        r"all_reduce\(SUM, float64\[3\]\), call 5 of rank \d, has waited 0.3 s for rank 1 \(pid \d+, after 4", text
    )
    assert re.search(missing, text), text
    assert re.search(r"  ranks 0, 2, waiting in this call:\n    \S*train.py:21 in <module>: member.all_reduce", text), (
        text
    )


def test_a_stopped_process_is_named_as_stopped(tmp_path):
    status, text = job(tmp_path, "stop", RINGLET_TIMEOUT_SECONDS="2")
    assert status == 1
    assert "  rank 1: stopped, by a signal or a debugger\n" in text
    assert "  ranks 0, 2, waiting in this call:\n" in text
    assert "DeadlineExceededError: all_reduce(SUM, float64[3]), call 5 of rank" in text


def run_program(tmp_path, program, num_ranks, **environment):
    """Run a program as the ranks of a job in a folder of its own; return what it printed as errors."""
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", str(num_ranks), "train.py"]
    variables = {**os.environ, **environment}
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    return re.sub(r"(?m)^\[w\d\] ", "", done.stderr)


# Rank 1 is in a handler of a signal, rank 2 in what precedes a fork, rank 3 in the hands of a debugger.
ELSEWHERE = """
import ctypes, os, signal, time
import ringlet

member = ringlet.collectives.init_process_group()
member.barrier()
if member.rank == 1:
    signal.signal(signal.SIGUSR1, lambda *_: time.sleep(1.2))
    os.kill(os.getpid(), signal.SIGUSR1)
elif member.rank == 2:
    os.register_at_fork(before=lambda: time.sleep(1.2))
    if not os.fork():
        os._exit(0)
elif member.rank == 3:
    libc, parent = ctypes.CDLL(None), os.getpid()
    libc.prctl(0x59616D61, ctypes.c_long(-1))  # PR_SET_PTRACER: any process
    if not (child := os.fork()):
        PTRACE_ATTACH, PTRACE_DETACH = 16, 17
        assert libc.ptrace(PTRACE_ATTACH, parent, None, None) == 0
        os.waitpid(parent, 0)
        time.sleep(1.2)
        libc.ptrace(PTRACE_DETACH, parent, None, None)
        os._exit(0)
    time.sleep(0.3)
    os.waitpid(child, 0)
member.barrier()
"""


def test_ranks_in_a_signal_handler_in_a_fork_and_under_a_debugger_are_described(tmp_path):
    text = run_program(tmp_path, ELSEWHERE, 4, RINGLET_STALL_SECONDS="0.4")
    assert text.count("has waited 0.4 s for rank 1 (pid ") == 1, text
    assert re.search(r"  rank 1:\n    train.py:8 in <lambda>: .*\n    train.py:9 in <module>: os.kill", text), text
    assert re.search(r"  rank 2:\n    train.py:11 in <lambda>: .*\n    train.py:12 in <module>: if not", text), text
    assert "  rank 3: stopped, by a signal or a debugger\n  rank 0, waiting in this call:\n" in text, text


CRASHES = """
import faulthandler, os, resource
import numpy as np
import ringlet

member = ringlet.collectives.init_process_group()
if member.rank == 1:
    resource.setrlimit(resource.RLIMIT_CORE, 2 * resource.getrlimit(resource.RLIMIT_CORE)[1:])
    memory = np.ones(20_000_000)
member.barrier()
if member.rank == 1:
    faulthandler.disable()  # its output would delay the dump
    os.abort()
member.barrier()
"""


def writes_core_files():
    pattern = Path("/proc/sys/kernel/core_pattern")
    is_file = pattern.exists() and not pattern.read_text(encoding="utf-8").startswith(("|", "/"))
    return is_file and resource.getrlimit(resource.RLIMIT_CORE)[1] != 0


@pytest.mark.skipif(not writes_core_files(), reason="core dumps go elsewhere, or are not allowed")
def test_a_rank_that_dumps_core_is_named_as_crashed(tmp_path):
    texts = []
    for _ in range(5):  # the report may come after the dump, if the machine is busy
        texts.append(run_program(tmp_path, CRASHES, 3, RINGLET_STALL_SECONDS="0.03"))
        for file in tmp_path.glob("core*"):
            file.unlink()
        assert "WorkerLostError: rank 1 (pid " in texts[-1]
        if "  rank 1: has crashed, and is writing a core dump\n  ranks 0, 2, waiting in this call:\n" in texts[-1]:
            break
    else:
        pytest.fail("\n".join(texts))


@pytest.mark.parametrize("text", ["9", "11", "1000", "-3", "soon"])
def test_a_signal_that_cannot_be_handled_is_named(text):
    program = "import ringlet; ringlet.collectives.Group(1)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "RINGLET_STACK_SIGNAL": text},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (
        f"ValueError: RINGLET_STACK_SIGNAL is '{text}': expected the number of a signal that a program" in done.stderr
    )


def test_silent_processes_together_delay_a_time_out_by_one_limit_at_most(tmp_path):
    """Two of three ranks hold their interpreter; the report waits once for both, and counts for the time-out."""
    program = """
import ctypes, sys, time
import ringlet

member = ringlet.collectives.init_process_group()
if member.rank:
    ctypes.PyDLL(None).sleep(10)
began = time.monotonic()
try:
    member.barrier()
except ringlet.errors.DeadlineExceededError:
    print(time.monotonic() - began)
"""
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    variables = {"RINGLET_STALL_SECONDS": "0.3", "RINGLET_TIMEOUT_SECONDS": "3", "RINGLET_STACK_SIGNAL": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "ringlet", "run", "-n", "3", "--grace-seconds", "0", str(tmp_path / "train.py")],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("[w0]")]
    assert 2.9 <= float(line.split()[1]) < 4.0


# Until the report of rank 0, rank 1 holds its interpreter lock, and rank 2 waits for its child of vfork.
SILENT = """
import ctypes, logging, os
import ringlet

class Release(logging.StreamHandler):
    def emit(self, record):
        super().emit(record)  # first, because the program may end before a thread that reports
        for name in ("held", "spawned"):
            with open(name, "w") as file:
                file.write("x")

member = ringlet.collectives.init_process_group()
if member.rank == 0:
    os.mkfifo("held")
    os.mkfifo("spawned")
    logging.getLogger("ringlet.observe.stall_reports").addHandler(Release())
member.barrier()
if member.rank == 1:
    file = os.open("held", os.O_RDWR)
    ctypes.PyDLL(None).read(file, ctypes.create_string_buffer(1), 1)
elif member.rank == 2:
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, "spawned", os.O_RDONLY, 0)])
member.barrier()
"""


def test_ranks_that_do_not_answer_are_named_with_what_keeps_them(tmp_path):
    text = run_program(tmp_path, SILENT, 3, RINGLET_STALL_SECONDS="0.3")
    printed = "; its process prints its stacks on standard error\n"
    assert f"  rank 1: no answer, perhaps because C code holds the interpreter lock{printed}" in text, text
    reasons = "a disk, a network file system, or memory that was swapped out"
    assert f"  rank 2: no answer, in uninterruptible sleep: it waits for {reasons}{printed}" in text, text
    assert re.search(r"  rank 0, waiting in this call:\n    train.py:23 in <module>: member.barrier", text), text
    for line in (20, 22):
        assert re.search(rf'File "\S*train.py", line {line} in <module>', text), text


def test_a_program_that_handles_the_signal_keeps_it(tmp_path):
    program = (
        "import signal, ringlet; signal.signal(signal.SIGRTMAX - 4, print); ringlet.collectives.Group(1); "
        "print(signal.getsignal(signal.SIGRTMAX - 4) is print)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


def load(element):
    time.sleep(0.5)
    return element


@pytest.mark.parametrize(
    "pipeline",
    [
        lambda dataset: dataset.map(load).prefetch(1),
        lambda dataset: dataset.map(load, num_parallel_calls=2),
        lambda dataset: dataset.map(load, num_parallel_calls=2, deterministic=False).prefetch(2),
    ],
    ids=["prefetch", "parallel map", "both"],
)
def test_a_dataset_names_what_its_threads_execute(pipeline, monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0.1")
    assert sorted(pipeline(ringlet.data.Dataset.range(2))) == [0, 1]
    made_by = "a dataset has waited 0.1 s for an element, which is computed by\n  ringlet-"
    assert any(text.startswith(made_by) for text in reports(caplog))
    assert any("test_stall_reports.py:" in text and "in load: time.sleep(0.5)" in text for text in reports(caplog))


def test_a_dataset_that_is_fast_enough_reports_nothing(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "0")
    assert list(ringlet.data.Dataset.range(2).map(load, num_parallel_calls=2).prefetch(1)) == [0, 1]
    monkeypatch.setenv("RINGLET_STALL_SECONDS", "30")
    assert list(ringlet.data.Dataset.range(2).map(load, num_parallel_calls=2).prefetch(1)) == [0, 1]
    assert not reports(caplog)
