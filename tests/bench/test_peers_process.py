"""Peers that are programs of a few lines, or NumPy's: what the driver does when they answer, hang or end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.compare_results import PROCESSES
from bench.job_processes import JobProcesses
from bench.machine import ROOT
from bench.peer_process import PeerFailure, PeerProcess
from bench.peer_table import OWN_PROCESSES
from bench.results import Sample

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="jobs are found in /proc")

QUESTION = {"question": "all_reduce", "variant": "in_place", "size_bytes": 64, "dtype": "float32", "seconds": 1e-4}
PATIENCE = 30.0

READY = 'print(json.dumps({"ready": True, "version": "fake 1", "variants": {"all_reduce": ["out"]}}), flush=True)\n'
ANSWER = 'print(json.dumps({"seconds_per_call": 1.5, "calls": 3, "checked": True}), flush=True)\n'


@pytest.fixture
def started():
    """Starts peers and ends them after the test."""
    peers = []

    def start(body, *, preparation="", num_ranks=1):
        program = f"import json, os, subprocess, sys, time\n{preparation}\n{READY}\nfor line in sys.stdin:\n"
        program += "    if line == 'end\\n': break\n" + "".join(f"    {line}\n" for line in body.splitlines())
        peers.append(PeerProcess([sys.executable, "-S", "-c", program], num_ranks))
        peers[-1].wait_until_ready(PATIENCE)
        return peers[-1]

    yield start
    for peer in peers:
        peer.stop(seconds=0.0)


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def folder_of(peer):
    return peer._folder


def test_a_peer_says_what_it_is_and_answers(started):
    peer = started(ANSWER)
    assert (peer.version, peer.variants) == ("fake 1", {"all_reduce": ["out"]})
    assert [peer.ask(QUESTION, PATIENCE) for _ in range(3)] == [1.5] * 3


def test_what_others_print_on_its_output_is_passed_over(started):
    noise = 'print("a launcher says {this}"); print("3"); print("")\n'
    assert started(noise + ANSWER + noise).ask(QUESTION, PATIENCE) == 1.5


def test_a_peer_that_hangs_has_timed_out_and_is_ended(started):
    peer = started("time.sleep(600)")
    with pytest.raises(PeerFailure, match="no answer after 0 s") as caught:
        peer.ask(QUESTION, 0.1)
    assert caught.value.reason == "timed out"
    peer.stop(seconds=0.0)
    assert not folder_of(peer).exists()


def test_a_peer_that_ends_is_quoted(started):
    peer = started('sys.exit("the fabric is gone")')
    with pytest.raises(PeerFailure, match="the fabric is gone") as caught:
        peer.ask(QUESTION, PATIENCE)
    assert caught.value.reason == "ended"


def test_a_peer_that_ended_between_questions_has_ended(started):
    peer = started(ANSWER)
    (pid,) = JobProcesses(peer._process.pid).alive()
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))
    with pytest.raises(PeerFailure) as caught:
        peer.ask(QUESTION, PATIENCE)
    assert caught.value.reason == "ended"


def test_a_peer_may_tell_page_faults_and_its_slowest_call(started):
    told = '"seconds_per_call": 1.5, "checked": true, "faults_per_call": 2, "slowest_call": 0.25'
    assert started(f"print('{{{told}}}', flush=True)").sample(QUESTION, PATIENCE) == Sample(1.5, 2.0, 0.25)
    assert started(ANSWER).sample(QUESTION, PATIENCE) == Sample(1.5, 0.0, 0.0)


@pytest.mark.parametrize("answer", ['{"wrong": "element 3"}', '{"seconds_per_call": 1.0, "checked": false}', "{}"])
def test_a_wrong_or_unchecked_answer_gives_no_time(started, answer):
    peer = started(f"print('{answer}', flush=True)")
    with pytest.raises(PeerFailure) as caught:
        peer.ask(QUESTION, PATIENCE)
    assert caught.value.reason == "wrong answer"


def test_a_peer_that_does_not_start_is_quoted():
    peer = PeerProcess([sys.executable, "-c", "raise SystemExit('no library')"], 1)
    with pytest.raises(PeerFailure, match="no library"):
        peer.wait_until_ready(PATIENCE)
    peer.stop()


def test_a_program_that_there_is_not_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(FileNotFoundError):
        PeerProcess([str(tmp_path / "none")], 2)
    assert list(tmp_path.iterdir()) == []


def test_a_peer_is_asked_to_end_and_its_folder_goes(started):
    peer = started(ANSWER, preparation="open(os.environ['TMPDIR'] + '/left', 'w').close()", num_ranks=3)
    assert {path.name for path in folder_of(peer).iterdir()} == {"left", "said", "rank1", "rank2"}
    peer.stop()
    assert peer._process.returncode == 0
    assert not folder_of(peer).exists()
    peer.stop()


def test_ranks_that_left_the_session_are_ended_with_the_rest(started):
    away = "away = subprocess.Popen(['sleep', '600'], start_new_session=True)"
    peer = started('print(json.dumps({"seconds_per_call": away.pid, "checked": True}), flush=True)', preparation=away)
    rank = int(peer.ask(QUESTION, PATIENCE))
    assert is_alive(rank)
    peer.stop(seconds=0.0)
    assert not is_alive(rank)


SHARED = Path("/dev/shm")
MAPS = """
import mmap
file = open(os.environ["TEST_SHARED_FILE"], "w+b")
file.truncate(4096)
mapped = mmap.mmap(file.fileno(), 4096)
"""


@pytest.mark.skipif(not os.access(SHARED, os.W_OK), reason="there is no shared memory to leave files in")
@pytest.mark.parametrize("is_used", [False, True])
def test_shared_memory_of_the_job_is_removed_unless_somebody_uses_it(started, monkeypatch, is_used):
    shared, not_ours = (SHARED / f"{name}-{os.getpid()}" for name in ("test_peers_process", "test_peers_other"))
    monkeypatch.setenv("TEST_SHARED_FILE", str(shared))
    not_ours.touch()
    user = None
    try:
        peer = started("os._exit(1)", preparation=MAPS)
        if is_used:
            user = subprocess.Popen(
                [sys.executable, "-S", "-c", f"import os\n{MAPS}\nprint(flush=True)\ninput()"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            user.stdout.readline()
        with pytest.raises(PeerFailure):
            peer.ask(QUESTION, PATIENCE)
        peer.stop()
        assert (shared.exists(), not_ours.exists()) == (is_used, True)
    finally:
        if user is not None:
            user.communicate(b"\n", timeout=PATIENCE)
        shared.unlink(missing_ok=True)
        not_ours.unlink()


@pytest.mark.parametrize("script", ["numpy_process.py", "numpy_processes.py"])
def test_a_peer_of_numpy_answers_and_waits_without_using_the_cores(script):
    peer = PeerProcess([sys.executable, str(ROOT / "bench" / "peers" / script)], 2)
    try:
        peer.wait_until_ready(PATIENCE)
        for size_bytes in (64, 4096):
            assert 0 < peer.ask({**QUESTION, "size_bytes": size_bytes}, PATIENCE) < 1
        time.sleep(0.3)  # threads of NumPy's BLAS, one for each further core, spin for a moment after they started
        before, start = peer.cpu_seconds(), time.monotonic()
        time.sleep(0.3)
        assert peer.cpu_seconds() - before < 0.2 * (time.monotonic() - start)
    finally:
        peer.stop()
    assert peer._process.returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="cores are counted on Linux")
@pytest.mark.parametrize("pin", [True, False])
def test_ranks_are_bound_to_cores_unless_they_shall_not(pin):
    peer = PeerProcess(OWN_PROCESSES[PROCESSES].command(Path("/none"), 2), 2, pin=pin)
    try:
        peer.wait_until_ready(PATIENCE)
        bound = {len(os.sched_getaffinity(pid)) == 1 for pid in peer._job.alive()}
        assert bound == {pin or len(os.sched_getaffinity(0)) == 1}
    finally:
        peer.stop()


ASKED = [
    ("all_reduce", "in_place"), ("all_reduce", "out"), ("all_reduce", "shared"), ("reduce_scatter", "out"),
    ("all_gather", "out"), ("all_gather", "shared"), ("broadcast", "in_place"), ("broadcast", "shared"),
    ("all_to_all", "out"),
]  # fmt: skip


@pytest.mark.skipif(sys.platform != "linux", reason="groups of processes need Linux")
@pytest.mark.parametrize("who", OWN_PROCESSES)
def test_processes_of_ringlet_answer_rightly_whatever_is_asked(who):
    num_ranks = 3
    peer = PeerProcess(OWN_PROCESSES[who].command(Path("/none"), num_ranks), num_ranks)
    try:
        peer.wait_until_ready(PATIENCE)
        assert [
            (name, variant) for name in peer.variants if name != "barrier" for variant in peer.variants[name]
        ] == ASKED
        assert ("shared arrays" in peer.version) == (who == PROCESSES)
        for size_bytes in (12, 300_000):
            for collective, variant in ASKED:
                told = {**QUESTION, "question": collective, "variant": variant, "size_bytes": size_bytes}
                sample = peer.sample(told, PATIENCE)
                assert 0 < sample.seconds < PATIENCE
                assert (sample.slowest_call > 0) == (collective == "all_reduce")
    finally:
        peer.stop()
    assert peer._process.returncode == 0


DRIVER = """
import sys, time
from bench.peer_process import PeerProcess
peer = PeerProcess([sys.executable, sys.argv[1]], 2)
peer.wait_until_ready(30)
print(*peer._job.alive(), peer._folder, flush=True)
time.sleep(600)
"""


def test_ranks_end_when_the_driver_is_killed_and_take_its_folder_along(tmp_path):
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(ROOT / "bench" / "peers" / "numpy_processes.py")],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        *pids, folder = driver.stdout.readline().split()
        assert (len(pids), Path(folder).exists()) == (2, True)
    finally:
        driver.kill()
        driver.communicate(timeout=PATIENCE)
    wait_for(lambda: not any(map(is_alive, pids)))
    assert not Path(folder).exists()
