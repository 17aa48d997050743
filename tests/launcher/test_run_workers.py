"""`ringlet run` with real processes: what they print, and how they end."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# Within which all processes of a job have ended, once one has failed or the launcher was asked to end.
END_SECONDS = 2.0

SLEEPS = """
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"])  # outlives its worker
print("ready")
time.sleep(300)
"""
STUBBORN = """
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
"""


def best_of_some(seconds):
    """The time that something takes where the machine is not busy with something else."""
    taken = [seconds()]
    while taken[-1] >= END_SECONDS and len(taken) < 4:
        taken.append(seconds())
    return min(taken)


# --- output -----------------------------------------------------------------------------------------------------------


@pytest.mark.job("print('one'); print('two')", "-n", 3)
def test_every_line_says_which_worker_has_written_it(job):
    assert job.status == 0
    assert sorted(job.lines) == sorted(f"[w{worker}] {word}" for worker in range(3) for word in ("one", "two"))
    assert job.errors == []


@pytest.mark.job("print('out'); print('err', file=sys.stderr)", "-n", 1)
def test_standard_output_and_standard_error_stay_apart(job):
    assert (job.lines, job.errors) == (["[w0] out"], ["[w0] err"])


TOLD = "print(index, os.environ['RINGLET_JOB_ID'], os.environ.get('RINGLET_NUM_DEVICES'), *sys.argv[1:])"


@pytest.mark.job(TOLD, "-n", 2, "--replicas", 3, arguments=["-n", 7, "--help"])
def test_workers_are_told_their_place_and_their_arguments(job):
    told = sorted(line.split() for line in job.lines)
    assert [[line[1], *line[3:]] for line in told] == [[str(i), "3", "-n", "7", "--help"] for i in range(2)]
    assert told[0][2] == told[1][2]


LINE_SECONDS = "print(os.environ['RINGLET_PROGRESS_SECONDS'])"


@pytest.mark.job("print(os.environ['RINGLET_TIMEOUT_SECONDS'])", "-n", 1, "--timeout", 7)
def test_calls_wait_as_long_as_the_option_says(job):
    assert job.lines == ["[w0] 7.0"]


@pytest.mark.job(LINE_SECONDS, "-n", 1)
def test_loops_are_told_to_write_a_line_each_30_seconds_where_there_is_no_terminal(job):
    assert job.lines == ["[w0] 30"]


@pytest.mark.job(LINE_SECONDS, "-n", 1, environ={"RINGLET_PROGRESS_SECONDS": "7"})
def test_how_often_loops_write_lines_stays_as_the_user_has_set_it(job):
    assert job.lines == ["[w0] 7"]


def test_loops_are_told_to_write_a_line_each_2_seconds_on_a_terminal(launcher):
    master, terminal = map(os.fdopen, pty.openpty())
    with master, terminal:
        assert launcher.run(LINE_SECONDS, "-n", 1, stderr=terminal).lines == ["[w0] 2"]


def test_a_worker_that_writes_50_megabytes_loses_none_of_them(launcher):
    script = """
line = b"%d " % index + b"x" * 96 + b"\\n"
for _ in range(500):
    sys.stdout.buffer.write(line * 1000)
"""
    with (launcher.folder / "out").open("wb") as file:
        job = launcher.run(script, "-n", 2, stdout=file.fileno())
    assert job.status == 0
    written = (launcher.folder / "out").read_bytes()
    lines = [b"[w%d] %d " % (index, index) + b"x" * 96 for index in range(2)]
    assert [written.count(line + b"\n") for line in lines] == [500_000, 500_000]
    assert len(written) == 500_000 * sum(len(line) + 1 for line in lines)


@pytest.mark.job("print('done'); sys.stdout.write('no line end'); os._exit(0)", "-n", 1)
def test_what_was_written_before_a_hard_exit_is_shown(job):
    assert (job.status, job.lines) == (0, ["[w0] done", "[w0] no line end"])


@pytest.mark.job("os.close(1); os.close(2); time.sleep(0.1 * index)", "-n", 2)
def test_a_worker_may_close_its_output(job):
    assert (job.status, job.out, job.err) == (0, b"", b"")


def test_lines_appear_while_their_worker_runs(launcher):
    job = launcher.start("print('ready'); time.sleep(300)", "-n", 2)
    job.wait_for_lines(2)
    assert job.popen.poll() is None


def test_a_reader_that_goes_away_ends_the_job_as_it_would_end_a_program(launcher):
    job = launcher.start("while True: print('tick'); time.sleep(0.01)", "-n", 2)
    job.wait_for_lines(2)
    job.popen.stdout.close()
    job.popen.stdout = None
    assert job.popen.wait(30) == 128 + signal.SIGPIPE
    assert job.popen.stderr.read() == b""
    assert job.leaves_nothing()


def test_output_that_cannot_be_written_is_a_failure_with_its_reason(launcher):
    with Path("/dev/full").open("wb") as full:
        job = launcher.run("print('lost')", "-n", 2, stdout=full)
    assert (job.status, job.errors) == (1, ["ringlet run: cannot write to standard output: No space left on device"])


def test_standard_input_goes_to_worker_0_alone(launcher):
    job = launcher.start("print(sys.stdin.read())", "-n", 2, stdin=subprocess.PIPE)
    job.popen.stdin.write(b"numbers")
    job.popen.stdin.close()
    job.popen.stdin = None
    assert sorted(job.end().lines) == ["[w0] numbers", "[w1] "]


def test_it_runs_without_standard_streams(launcher):
    command = f"exec {sys.executable} -m ringlet run -n 2 script.py <&- >&- 2>&-"
    (launcher.folder / "script.py").write_text("import sys\nprint(1)\nprint(2, file=sys.stderr)", encoding="utf-8")
    assert launcher.start_command(["sh", "-c", command]).end().status == 0


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.job("time.sleep(0.2 * index); print('done')", "-n", 3)
def test_workers_may_end_one_after_the_other(job):
    assert (job.status, sorted(job.lines)) == (0, ["[w0] done", "[w1] done", "[w2] done"])


@pytest.mark.job(f"if index == 1:\n    raise ValueError('bad weights')\n{SLEEPS}", "-n", 3)
def test_an_exception_in_one_worker_ends_all_and_its_traceback_comes_last_and_once(job):
    assert job.status == 1
    assert job.errors[0] == "ringlet run: worker 1 of 3 exited with status 1; workers 0 and 2 were terminated"
    assert job.errors[1] == "[w1] Traceback (most recent call last):"
    assert job.errors[-1] == "[w1] ValueError: bad weights"
    assert job.err.count(b"Traceback") == 1
    assert job.leaves_nothing()


def test_all_have_ended_within_two_seconds_of_the_first_failure(launcher):
    script = f"{STUBBORN}\nif index == 1:\n    print('ready'); sys.stdin.read(); sys.exit(3)\n{SLEEPS}"

    def seconds():
        job = launcher.start(script, "-n", 3)
        job.wait_for_lines(3)
        assert job.end().status == 3
        return job.seconds

    assert best_of_some(seconds) < END_SECONDS


LOGS = """
import traceback
try:
    raise KeyError("lost")
except KeyError:
    traceback.print_exc()
"""


@pytest.mark.job(LOGS, "-n", 2)
def test_a_logged_traceback_is_no_failure(job):
    assert job.status == 0
    assert job.err.count(b"KeyError: 'lost'") == 2


HANGS = {
    "atexit": "import atexit; atexit.register(time.sleep, 300 - 240 * index)",
    "thread": "import threading; threading.Thread(target=time.sleep, args=(300 - 240 * index,)).start()",
}

RAISES_IN_ORDER = """
from pathlib import Path
mine, other = (Path(sys.argv[1], f"ready-{one}") for one in (index, 1 - index))
if index == 0:
    while not other.exists(): time.sleep(0.01)
    mine.touch()
else:
    mine.touch()
    while not other.exists(): time.sleep(0.01)
    time.sleep(0.5)
raise ValueError(f"bad {index}")
"""


@pytest.mark.parametrize("hang", HANGS)
@pytest.mark.parametrize("end", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_workers_that_hang_after_they_raised_are_ended_and_the_first_to_raise_is_named(launcher, tmp_path, hang, end):
    script = f"import ringlet; {end}\n{HANGS[hang]}\n{RAISES_IN_ORDER}"
    job = launcher.run(script, "-n", 2, "--grace-seconds", 2.5, arguments=[tmp_path])
    assert (job.status, job.seconds < 30) == (1, True)
    assert job.errors[:2] == [
        "ringlet run: worker 0 of 2 exited with status 1",
        "ringlet run: worker 1 failed too: ValueError: bad 1",
    ]
    assert job.errors[-1] == "[w0] ValueError: bad 0"
    assert job.leaves_nothing()


def test_a_worker_that_has_raised_may_take_its_grace_to_exit(launcher):
    script = "import ringlet, atexit; atexit.register(lambda: (time.sleep(1.5), print('saved'))); 1 / 0"
    assert launcher.run(script, "-n", 1, "--grace-seconds", 30).lines == ["[w0] saved"]


FORKS = """
import ringlet
if os.fork() == 0:
    1 / 0
os.wait()
time.sleep(2)
print("went on")
"""


@pytest.mark.job(FORKS, "-n", 1)
def test_an_exception_in_a_child_of_a_worker_is_not_one_of_the_worker(job):
    assert (job.status, job.lines) == (0, ["[w0] went on"])


FURTHER = """
import ringlet
child = subprocess.run([sys.executable, "-c", "import ringlet; 1 / 0"], close_fds=False, stderr=subprocess.DEVNULL)
time.sleep(2)
print(child.returncode)
"""


@pytest.mark.job(FURTHER, "-n", 1)
def test_an_exception_in_a_program_that_a_worker_runs_is_not_one_of_the_worker(job):
    assert (job.status, job.lines) == (0, ["[w0] 1"])


@pytest.mark.job("raise ValueError('bad weights')", "-n", 3)
def test_tracebacks_that_all_workers_share_are_folded_into_one(job):
    assert job.err.count(b"Traceback") == 1
    assert job.errors[-1].endswith("ValueError: bad weights")


@pytest.mark.job("import ringlet\nraise ringlet.errors.CollectiveAborted(str(index))", "-n", 2, "--all-tracebacks")
def test_all_tracebacks_are_shown_where_that_was_asked_for(job):
    assert job.err.count(b"Traceback") == 2


ENDS = {
    # how worker 1 ends: status of the job
    "sys.exit(7)": 7,
    "sys.exit('no data')": 1,
    "os._exit(9)": 9,
    "os.kill(os.getpid(), signal.SIGKILL)": 137,
    "os.kill(os.getpid(), signal.SIGSEGV)": 139,
}


@pytest.mark.parametrize(
    ("end", "status"),
    [
        pytest.param(end, status, marks=pytest.mark.job(f"if index == 1:\n    {end}\ntime.sleep(300)", "-n", 2))
        for end, status in ENDS.items()
    ],
)
def test_the_exit_status_is_that_of_the_first_failure(job, end, status):
    assert job.status == status
    assert job.errors[-2 if "data" in end or "SIG" in end else -1].startswith("ringlet run: worker 1 of 2 ")


@pytest.mark.parametrize(
    ("number", "stubborn"),
    [
        # signal, what workers do about it
        (signal.SIGINT, ""),
        (signal.SIGTERM, ""),
        (signal.SIGHUP, ""),
        (signal.SIGTERM, STUBBORN),
    ],
)
def test_a_signal_to_the_launcher_ends_all_within_two_seconds(launcher, number, stubborn):
    def seconds():
        job = launcher.start(stubborn + SLEEPS, "-n", 2)
        job.wait_for_lines(2)
        job.send(number)
        assert job.end().status == 128 + number
        assert job.err.count(b"Traceback") == (number == signal.SIGINT)
        assert job.leaves_nothing()
        return job.seconds

    assert best_of_some(seconds) < END_SECONDS


def test_workers_may_end_well_when_they_are_asked_to(launcher):
    script = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); print('ready'); time.sleep(300)"
    job = launcher.start(script, "-n", 2)
    job.wait_for_lines(2)
    job.send(signal.SIGTERM)
    assert job.end().status == 0


def test_workers_get_the_time_that_the_user_gives_them(launcher):
    script = """
def save(*_):
    time.sleep(1.2)
    print("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready")
time.sleep(300)
"""
    job = launcher.start(script, "-n", 2, "--grace-seconds", 30)
    job.wait_for_lines(2)
    job.send(signal.SIGTERM)
    assert sorted(job.end().lines) == ["[w0] ready", "[w0] saved", "[w1] ready", "[w1] saved"]


def test_nobody_waits_for_a_reader_when_the_launcher_was_asked_to_end(launcher):
    def seconds():
        job = launcher.start("while True: print('x' * 1000)", "-n", 2)
        job.wait_for_lines(2)
        time.sleep(0.3)  # everything in between is full then
        start = time.monotonic()
        job.send(signal.SIGTERM)
        assert job.popen.wait(30) == 143
        return time.monotonic() - start

    assert best_of_some(seconds) < END_SECONDS


def test_whoever_starts_the_launcher_may_ignore_the_ends_of_its_children(launcher):
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    job = launcher.run("sys.exit(5)", "-n", 1, under=[sys.executable, "-c", ignore])
    assert job.status == 5


def test_a_signal_does_not_wait_until_all_workers_have_started(launcher):
    job = launcher.start("print('ready'); time.sleep(300)", "-n", 1000)
    job.wait_for_lines(1)
    job.send(signal.SIGTERM)
    assert job.end().status == 143
    assert re.fullmatch(r"ringlet run: SIGTERM: (all \d{1,3} workers have|worker has) ended", job.errors[-1])
    assert job.leaves_nothing()


def test_a_failure_does_not_wait_until_all_workers_have_started(launcher):
    job = launcher.run("sys.exit(3) if index == 0 else time.sleep(300)", "-n", 1000)
    assert job.status == 3
    assert job.errors[0].startswith("ringlet run: worker 0 of 1000 exited with status 3")
    assert len(job.errors[0].split(", ")) < 900


@pytest.mark.parametrize("stubborn", ["", STUBBORN], ids=["workers end when asked", "workers do not"])
def test_nothing_outlives_a_launcher_that_was_killed(launcher, stubborn):
    job = launcher.start(stubborn + SLEEPS, "-n", 2)
    job.wait_for_lines(2)
    assert job.has_processes(5)  # two workers, a child of each, and who looks after them
    job.send(signal.SIGKILL)
    assert job.leaves_nothing(seconds=2.0)


def test_nothing_outlives_a_launcher_that_was_killed_while_it_started(launcher):
    jobs = [launcher.start(SLEEPS, "-n", 2) for _ in range(5)]
    for job in jobs:
        job.send(signal.SIGKILL)
        assert job.popen.wait(30) == -signal.SIGKILL
        time.sleep(0.05)  # the next one has come further
    assert all(job.leaves_nothing() for job in jobs)


@pytest.mark.job(SLEEPS.removesuffix("time.sleep(300)\n"), "-n", 1)
def test_what_a_worker_has_started_ends_with_the_job(job):
    assert (job.status, job.lines) == (0, ["[w0] ready"])
    assert job.leaves_nothing()


def test_what_a_worker_has_started_ends_with_the_job_although_somebody_killed_the_keeper(launcher):
    job = launcher.start(SLEEPS.replace("time.sleep(300)\n", "sys.stdin.read()"), "-n", 1, stdin=subprocess.PIPE)
    job.wait_for_lines(1)
    (process_group,) = [
        pid for pid in job.processes() if b"process_group_reaper.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(process_group, signal.SIGKILL)
    assert job.end().status == 0
    assert job.leaves_nothing()


def test_nohup_protects_the_workers_too(launcher):
    job = launcher.start(SLEEPS, "-n", 2, under=["nohup"])
    job.wait_for_lines(2)
    job.send(signal.SIGHUP)
    time.sleep(0.3)
    assert job.popen.poll() is None
    assert job.has_processes(5)


def test_a_user_signal_reaches_the_workers_and_ends_nothing(launcher):
    script = "signal.signal(signal.SIGUSR1, lambda *_: print('heard')); print('ready')\nwhile True: time.sleep(0.05)"
    job = launcher.start(script, "-n", 2)
    job.wait_for_lines(2)
    job.send(signal.SIGUSR1)
    job.wait_for_lines(2)
    assert sorted(job.lines)[::2] == ["[w0] heard", "[w1] heard"]


# --- with a strategy --------------------------------------------------------------------------------------------------

TRAINS = """
import numpy as np, ringlet
strategy = ringlet.MultiWorkerMirroredStrategy()
def step():
    replica = ringlet.get_replica_context()
    return replica.all_reduce(ringlet.ReduceOp.SUM, np.ones(2) * (replica.replica_id_in_sync_group + 1))
for number in range(3):
    END
    result = strategy.run(step)
print(strategy.experimental_local_results(result)[0])
"""


@pytest.mark.job(TRAINS.replace("END", ""), "-n", 2, "--replicas", 2)
def test_a_strategy_finds_its_workers_and_replicas(job):
    assert job.errors == []
    assert sorted(job.lines) == ["[w0] [10. 10.]", "[w1] [10. 10.]"]


@pytest.mark.parametrize(
    "status",
    [
        pytest.param(
            status, marks=pytest.mark.job(TRAINS.replace("END", f"if index == 1 and number == 1: {end}"), "-n", 2)
        )
        for end, status in {"raise ValueError('bad weights')": 1, "os.kill(os.getpid(), 9)": 137}.items()
    ],
)
def test_the_worker_that_ended_first_is_named_and_not_those_that_wait_for_it(job, status):
    assert job.status == status
    assert job.errors[0].startswith("ringlet run: worker 1 of 2 ")
    assert job.err.count(b"Traceback") == (status == 1)
    assert job.errors[-1] == "[w1] ValueError: bad weights" or status != 1
    assert job.leaves_nothing()


def test_a_job_can_start_again_at_once_after_all_of_it_was_killed(launcher):
    job = launcher.start("print('ready')\n" + TRAINS.replace("END", "time.sleep(0.5)"), "-n", 2)
    job.wait_for_lines(2)
    for pid in [*job.processes(), job.popen.pid]:
        os.kill(pid, signal.SIGKILL)
    assert job.leaves_nothing()
    assert launcher.run(TRAINS.replace("END", ""), "-n", 2).status == 0
