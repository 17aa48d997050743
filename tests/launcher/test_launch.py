"""`ringlet.launch` as notebooks and tests call it."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import pytest

import ringlet
from ringlet.launcher.supervisor import Supervisor
from tests.launcher import tasks
from tests.processes.harness import children, descriptors_of, eventually, threads_of


@pytest.fixture(autouse=True)
def _nothing_is_left():
    gc.collect()  # what other tests have left ends now
    before, threads = (descriptors_of(), children()), threads_of()
    yield
    # Threads of the core end by themselves when they are idle.
    assert eventually(lambda: (descriptors_of(), children()) == before and threads_of() <= threads, seconds=5.0)


def test_the_results_come_in_the_order_of_the_workers():
    assert ringlet.launch(tasks.index_of_this_worker, n=3) == [0, 1, 2]


def test_arguments_arrive_and_one_worker_is_enough():
    assert ringlet.launch(max, n=1, args=(1, 5), kwargs={"key": abs}) == [5]


def test_workers_have_the_environment_of_this_process_and_what_is_added(monkeypatch):
    monkeypatch.setenv("RINGLET_TEST_MARK", "here")
    (told,) = ringlet.launch(tasks.environment_of_this_worker, n=1, replicas=3, environment={"ADDED": "too"})
    assert (told["RINGLET_TEST_MARK"], told["ADDED"], told["RINGLET_NUM_DEVICES"]) == ("here", "too", "3")
    assert {"TF_CONFIG", "RINGLET_JOB_ID", "OMP_NUM_THREADS"} <= told.keys()


def test_the_workers_of_a_job_share_a_port_for_torch_and_jobs_do_not():
    first, second = (ringlet.launch(os.getenv, n=2, args=("MASTER_PORT",)) for _ in range(2))
    assert len(set(first)) == len(set(second)) == 1
    assert first != second


def test_what_workers_print_appears_here(capsys):
    ringlet.launch(tasks.say, n=2, args=("hello",))
    out, err = capsys.readouterr()
    assert sorted(out.splitlines()) == ["[w0] hello", "[w1] hello"]
    assert sorted(err.splitlines()) == ["[w0] trouble", "[w1] trouble"]


def test_what_a_stream_cannot_encode_is_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    ringlet.launch(tasks.say, n=1, args=("ü",), environment={"PYTHONUTF8": "1"})
    assert stream.buffer.getvalue() == b"[w0] \\xfc\n"


def test_entries_of_the_path_that_imports_ignore_are_no_trouble(monkeypatch):
    monkeypatch.setattr(sys, "path", [Path("/"), *sys.path])
    assert ringlet.launch(max, n=1, args=(1, 5)) == [5]


def test_large_arrays_come_back():
    (ones,) = ringlet.launch(np.ones, n=1, args=((1 << 22,),))
    assert ones.nbytes == 1 << 25
    assert ones.all()


def test_the_exception_of_the_worker_that_failed_first_is_raised_here():
    with pytest.raises(KeyError, match="weights") as caught:
        ringlet.launch(tasks.fail_on_worker_1, n=3)
    shown = "".join(traceback.format_exception(caught.value))
    assert "worker 1 of 3 raised it:" in shown
    assert "in fail_on_worker_1" in shown
    assert "worker 1 of 3 raised this" in caught.value.__notes__


def test_an_exception_that_follows_from_another_one_is_not_the_one_that_is_raised(tmp_path):
    with pytest.raises(ValueError, match="bad data"):
        ringlet.launch(tasks.fail_on_worker_1_with_others, n=3, args=(tmp_path,))


def test_who_failed_first_is_known_also_where_nobody_has_looked_for_a_while(monkeypatch, tmp_path):
    turn = Supervisor.turn

    def late_turn(self, longest_seconds):
        assert eventually((tmp_path / "0").exists)
        turn(self, longest_seconds)

    monkeypatch.setattr(Supervisor, "turn", late_turn)
    with pytest.raises(ValueError, match="bad data"):
        ringlet.launch(tasks.fail_on_worker_1_then_on_worker_0, n=2, args=(tmp_path,))


def test_the_first_failure_is_the_one_that_was_raised_first_and_not_the_one_that_arrived_first(tmp_path):
    with pytest.raises(ValueError, match="raised first"):
        ringlet.launch(tasks.fail_on_worker_0_slowly_then_on_worker_1, n=2, args=(tmp_path,))


@pytest.mark.parametrize("end", [0, 3])
def test_a_worker_that_ends_before_its_function_has_returned_is_lost(end):
    with pytest.raises(ringlet.errors.WorkerLostError, match=f"worker 1 of 2 .* exited with status {end}") as caught:
        ringlet.launch(tasks.end_on_worker_1, n=2, args=(end,))
    assert (caught.value.rank, caught.value.reason) == (1, f"exited with status {end}")


def test_at_the_deadline_those_that_have_not_returned_are_named():
    with pytest.raises(ringlet.errors.DeadlineExceededError, match="workers 0 and 1 of 2 had not returned"):
        ringlet.launch(time.sleep, n=2, args=(300,), timeout_seconds=0.5)


def test_ctrl_c_ends_the_workers():
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ringlet.launch(time.sleep, n=2, args=(300,))
    timer.join()


def test_nothing_outlives_a_program_that_was_killed_while_it_waits_for_its_workers(launcher):
    program = "import ringlet, time; print('ready', flush=True); ringlet.launch(time.sleep, n=2, args=(300,))"
    job = launcher.start_command([sys.executable, "-c", program])
    job.wait_for_lines(1)
    assert eventually(lambda: len(job.processes()) == 3)
    job.send(signal.SIGKILL)
    job.end()
    assert job.leaves_nothing()


def test_another_thread_may_launch():
    results = []
    thread = threading.Thread(target=lambda: results.append(ringlet.launch(tasks.index_of_this_worker, n=2)))
    thread.start()
    thread.join()
    assert results == [[0, 1]]


def test_what_a_worker_has_started_ends_with_it():
    (pid,) = ringlet.launch(tasks.leave_a_child, n=1)
    status = Path(f"/proc/{pid}/stat")  # gone, or not yet waited for by the system
    assert eventually(lambda: not status.exists() or ") Z" in status.read_text("utf-8"), seconds=5.0)


def test_a_strategy_finds_its_workers():
    for result in ringlet.launch(tasks.train, n=2, replicas=2):
        np.testing.assert_array_equal(result, [10, 10])


def test_the_workers_of_a_strategy_learn_why_one_has_failed():
    with pytest.raises(ValueError, match="bad data"):
        ringlet.launch(tasks.train, n=2, args=(1,))


def test_lambdas_are_run_where_cloudpickle_is():
    pytest.importorskip("cloudpickle")
    assert ringlet.launch(lambda: 5, n=1) == [5]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # arguments, part of the message
        ({"fn": max, "n": 0}, "n must be an integer from 1 to 1000, got 0"),
        ({"fn": max, "n": 1001}, "n must be an integer from 1 to 1000, got 1001"),
        ({"fn": max, "n": 2.0}, "n must be an integer from 1 to 1000, got 2.0"),
        ({"fn": max, "n": True}, "n must be an integer from 1 to 1000, got True"),
        ({"fn": max, "n": 4, "replicas": 1025}, "replicas must be an integer from 1 to 1024, got 1025"),
        (
            {"fn": 3, "n": 1},
            "fn must be the function that each worker calls, but 3 is not callable: write "
            "ringlet.launch(fn, n, args=(value,)), without calling the function",
        ),
        (
            {"fn": max, "n": 1, "timeout_seconds": 0},
            "timeout_seconds must be a positive number, or None for no limit, got 0",
        ),
        (
            {"fn": max, "n": 1, "timeout_seconds": "9"},
            "timeout_seconds must be a positive number, or None for no limit, got '9'",
        ),
        ({"fn": max, "n": 1, "args": 5}, "args must be a sequence of arguments, such as args=(5,); got 5"),
        ({"fn": max, "n": 1, "args": "ab"}, "args must be a sequence of arguments, such as args=('ab',); got 'ab'"),
        ({"fn": max, "n": 1, "kwargs": [1]}, "kwargs must be a dictionary whose keys are strings; got [1]"),
        ({"fn": max, "n": 1, "environment": {"A": 1}}, "environment['A'] must be a string, got 1"),
    ],
)
def test_a_wrong_argument_is_named(arguments, said):
    with pytest.raises(ringlet.errors.InvalidArgumentError) as caught:
        ringlet.launch(**arguments)
    assert str(caught.value) == said
