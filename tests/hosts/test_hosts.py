"""Groups over two hosts that MPI connects, with kills and a cut cable; the hosts are network namespaces."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.hosts.disturbed_network import TUN
from tests.hosts.simulated_hosts import REQUIRES_HOSTS, simulated_hosts

pytestmark = REQUIRES_HOSTS

PROGRAMS = Path(__file__).parent
DETECTION_SECONDS = 5.0


@pytest.fixture
def hosts():
    with simulated_hosts() as made:
        yield made


def run(hosts, slots, program, **variables):
    words = ["env", *(f"{name}={value}" for name, value in variables.items())]
    process = hosts.launch(slots, [*words, sys.executable, str(PROGRAMS / program), str(hosts.folder)])
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    return output


@pytest.mark.parametrize(("slots", "replicas"), [([2, 2], 1), ([1, 1], 2)])
def test_training_has_the_bits_of_one_host(hosts, slots, replicas):
    placements = (slots, [sum(slots), 0])
    outputs = [run(hosts, each, "training_program.py", RINGLET_NUM_DEVICES=replicas) for each in placements]
    found = [json.loads(line) for text in outputs for line in text.splitlines() if line.startswith("{")]
    assert len(found) == 2 * sum(slots)
    assert all(each == found[0] for each in found)
    assert found[0]["replicas"] == 4


def test_collectives_give_the_results_of_one_host(hosts):
    outputs = [run(hosts, slots, "collectives_program.py") for slots in ([2, 2], [4, 0])]
    first, second = (sorted(line for line in text.splitlines() if line.startswith("rank")) for text in outputs)
    assert len(first) == 4
    assert first == second


def test_ringlet_run_starts_the_workers_with_their_prefixes(hosts):
    process = hosts.launch_with_ringlet([2, 1], [str(PROGRAMS / "training_program.py"), str(hosts.folder)])
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert sorted(line[:5] for line in output.splitlines()) == ["[w0] ", "[w1] ", "[w2] "], output


@pytest.mark.parametrize(
    ("lost", "status", "words"),
    [
        (0, 3, "exited with status 3"),
        (1, 147, "exited with status 147"),
        (2, -11, r"was killed by SIGSEGV \(signal 11\)"),
    ],
)
def test_ringlet_run_fails_with_a_rank_that_the_others_survive(hosts, lost, status, words):
    rank = "import os, sys, time; rank = int(os.environ['OMPI_COMM_WORLD_RANK'])"
    ending = f"sys.exit({status}) if {status} > 0 else os.kill(os.getpid(), -{status})"
    path = hosts.folder / "program.py"
    path.write_text(f"{rank}\nif rank == {lost}: {ending}\n")
    output, _ = (process := hosts.launch_with_ringlet([2, 1], [str(path)])).communicate(timeout=60)
    assert process.returncode == (status if status > 0 else 128 - status), output
    assert re.search(f"ringlet run: worker {lost} of 3 {words}", output), output
    assert "\x01" not in output


def test_ringlet_run_simulates_hosts(tmp_path):
    program = [str(PROGRAMS / "training_program.py"), str(tmp_path)]
    command = [sys.executable, "-m", "ringlet", "run", "--simulate-hosts", "3x1", *program]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert sorted(line[:5] for line in output.splitlines()) == ["[w0] ", "[w1] ", "[w2] "], output


@pytest.mark.parametrize(("slots", "expected"), [([2, 1], 3.0), ([3, 0], 3 * (1 + 2**-9))])
def test_float32_is_rounded_between_hosts_only(hosts, slots, expected):
    path = hosts.folder / "program.py"
    path.write_text(
        "import numpy as np, ringlet; member = ringlet.collectives.init_process_group(); "
        "found = member.all_reduce(np.full(3_000_000, 1 + 2**-9, np.float32)); "
        "print('totals', member.rank, np.unique(found).tolist(), flush=True)"
    )
    output = run(hosts, slots, path, RINGLET_NETWORK_DTYPE="bfloat16")
    assert sorted(re.findall(r"totals (\d) \[(.*)\]", output)) == [(str(r), str(expected)) for r in range(3)], output


def test_tf_config_may_name_the_hosts_of_strategies(hosts):
    program = (
        "import json, os; rank = int(os.environ['OMPI_COMM_WORLD_RANK']); "
        f"workers = [f'{{a}}:{{p}}' for a in {hosts.addresses} for p in (1, 2)]; "
        "task = {'type': 'worker', 'index': rank}; "
        "os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': workers}, 'task': task}); "
        "import ringlet; strategy = ringlet.MultiWorkerMirroredStrategy(); "
        "total = strategy.run(lambda: ringlet.replica_context().all_reduce('SUM', 1 + rank)); "
        "tpu = ringlet.TPUStrategy(ringlet.cluster_resolver.TPUClusterResolver(accelerator_type='v4-32')); "
        "cores = tpu.reduce('SUM', tpu.run(lambda: 1.0), axis=None); "
        "print(f'rank {rank} of {ringlet.size()}, {ringlet.local_rank()} here: {total}, {cores} cores', flush=True)"
    )
    path = hosts.folder / "program.py"
    path.write_text(program)
    process = hosts.launch([2, 2], [sys.executable, str(path)])
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    for rank in range(4):
        assert f"rank {rank} of 4, {rank % 2} here: 10, 32.0 cores" in output


def test_ringlet_run_ends_after_a_cut_cable(hosts):
    program = [str(PROGRAMS / "loop_program.py"), str(hosts.folder), "20"]
    process = hosts.launch_with_ringlet([2, 2], program)
    loop = Loop(hosts, process)
    hosts.cut()
    loop.check_lost([0, 1], [2, 3], DETECTION_SECONDS + 2)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 1, output
    assert "mpiexec waits for other hosts" in output
    loop.check_exit()


@pytest.mark.slow
@pytest.mark.skipif(not Path(TUN).exists(), reason=f"requires {TUN}")
@pytest.mark.parametrize(
    "how", [{"delay_seconds": 0.2}, {"loss": 0.05}, {"delay_seconds": 0.01, "overtaking": 0.25}], ids=str
)
def test_a_slow_or_unreliable_network_changes_no_result(hosts, how):
    network = hosts.disturb(**how)
    program = [sys.executable, str(PROGRAMS / "loop_program.py"), str(hosts.folder), "4"]
    process = hosts.launch([1, 1], program)
    output, _ = process.communicate(timeout=120)
    for rank in range(2):
        end = json.loads((hosts.folder / f"end{rank}").read_text())
        assert (end["error"], end["wrong"]) == ("NoneType", 0), output
        assert end["count"] > 0
    assert network.num_forwarded > 1000
    assert (network.num_lost > 0) == ("loss" in how)


def test_a_rank_that_reads_late_is_not_lost(hosts):
    """More messages wait for it than the connection's buffers hold, for longer than a broken network is endured."""
    path = hosts.folder / "program.py"
    path.write_text(
        "import time, numpy as np, ringlet; member = ringlet.collectives.init_process_group(timeout_seconds=60)\n"
        "member.barrier()\n"
        "if member.rank: time.sleep(8)\n"
        "for number in range(3000):\n"
        "    if member.rank: assert member.recv(0)[0] == number\n"
        "    else: member.send(np.full(1000, number), 1)\n"
        "member.barrier(); print('all arrived', member.rank, flush=True)\n"
    )
    output = run(hosts, [1, 1], path)
    assert sorted(re.findall(r"all arrived (\d)", output)) == ["0", "1"], output


class Loop:
    """All-reduces on 2 hosts x 2 ranks until something happens."""

    def __init__(self, hosts, launched=None, size=300_000):
        self.hosts = hosts
        program = [sys.executable, str(PROGRAMS / "loop_program.py"), str(hosts.folder), "20", str(size)]
        self.process = launched or hosts.launch([2, 2], program)
        self.pids = [json.loads(self.read(f"begun{rank}"))["pid"] for rank in range(4)]
        time.sleep(0.7)
        self.began = time.time()

    def read(self, name, seconds=30.0):
        until = time.monotonic() + seconds
        while not (self.hosts.folder / name).exists():
            if time.monotonic() > until:
                self.hosts.stop()
                pytest.fail(f"{name} is missing: {self.process.communicate()[0]}")
            time.sleep(0.02)
        return (self.hosts.folder / name).read_text()

    def check_lost(self, survivors, lost, seconds):
        """Check that the survivors named a lost rank in time, and returned no wrong result."""
        for rank in survivors:
            end = json.loads(self.read(f"end{rank}", seconds + 5))
            assert end["wrong"] == 0
            assert end["count"] > 0
            assert (end["error"], end["lost"] in lost) == ("WorkerLostError", True), end
            assert end["ended"] - self.began < seconds, end
            assert re.search(rf"rank {end['lost']} \(pid {self.pids[end['lost']]} on ", end["text"]), end

    def check_exit(self, hosts=(0, 1)):
        """Check that no rank is left."""
        until = time.monotonic() + 10
        while any(pid in self.hosts.pids(host) for host in hosts for pid in self.pids):
            assert time.monotonic() < until, "a rank hangs"
            time.sleep(0.05)


@pytest.mark.parametrize(("lost", "uses_ringlet"), [(0, False), (1, True), (2, False), (3, True)])
def test_a_killed_rank_is_named_by_all_others(hosts, lost, uses_ringlet):
    program = [str(PROGRAMS / "loop_program.py"), str(hosts.folder), "20"]
    loop = Loop(hosts, hosts.launch_with_ringlet([2, 2], program) if uses_ringlet else None)
    os.kill(loop.pids[lost], signal.SIGKILL)
    loop.check_lost([rank for rank in range(4) if rank != lost], [lost], 1.0)
    loop.check_exit()
    output, _ = loop.process.communicate(timeout=20)
    assert "Segmentation fault" not in output
    if uses_ringlet:
        assert loop.process.returncode == 137, output


@pytest.mark.parametrize("lost", [0, 2])
def test_a_killed_rank_is_named_although_much_data_is_in_flight(hosts, lost):
    loop = Loop(hosts, size=16_000_000)
    loop.read("whole0")
    loop.began = time.time()
    os.kill(loop.pids[lost], signal.SIGKILL)
    loop.check_lost([rank for rank in range(4) if rank != lost], [lost], 1.0)
    loop.check_exit()


def test_a_killed_host_is_named_by_the_other(hosts):
    loop = Loop(hosts)
    for pid in hosts.pids(1):
        os.kill(pid, signal.SIGKILL)
    loop.check_lost([0, 1], [2, 3], 1.0)
    loop.check_exit([0])


def test_the_other_ranks_end_with_the_host_of_the_launcher(hosts):
    loop = Loop(hosts)
    for pid in hosts.pids(0):
        os.kill(pid, signal.SIGKILL)
    loop.check_exit([1])


@pytest.mark.parametrize("size", [300_000, 16_000_000])
def test_a_cut_cable_is_noticed_on_both_sides(hosts, size):
    loop = Loop(hosts, size=size)
    loop.read("whole0")
    loop.began = time.time()
    hosts.cut()
    loop.check_lost([0, 1], [2, 3], DETECTION_SECONDS + 2)
    loop.check_lost([2, 3], [0, 1], DETECTION_SECONDS + 2)
    loop.check_exit()


def test_the_hosts_leave_nothing_behind():
    with simulated_hosts() as hosts:
        run(hosts, [1, 1], "training_program.py")
        names, folder = hosts.names, hosts.folder
    assert not folder.exists()
    assert not set(names) & set(
        subprocess.run(["ip", "netns"], capture_output=True, text=True, check=True).stdout.split()
    )
