"""Groups over two hosts by MPICH and its own mpiexec; the hosts are network namespaces."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.hosts.simulated_hosts import REQUIRES_HOSTS, simulated_hosts

BIN = Path(sys.executable).parent
PROGRAMS = Path(__file__).parent
pytestmark = [
    *REQUIRES_HOSTS,
    pytest.mark.skipif(not (BIN / "mpichversion").exists(), reason="requires pip install mpi4py mpich"),
]


@pytest.fixture
def hosts():
    with simulated_hosts() as made:
        yield made


def launch(hosts, slots, program, *arguments):
    places = ",".join(f"{address}:{count}" for address, count in zip(hosts.addresses, slots, strict=True) if count)
    flags = ["-launcher", "ssh", "-launcher-exec", str(hosts.folder / "agent"), "-hosts", places, "-n", str(sum(slots))]
    words = [str(BIN / "mpiexec"), *flags, sys.executable, str(PROGRAMS / program), *arguments]
    return hosts.start_on_first(words)


def test_collectives_give_the_results_of_one_host(hosts):
    found = []
    for slots in ([2, 2], [4, 0]):
        process = launch(hosts, slots, "collectives_program.py")
        output, _ = process.communicate(timeout=60)
        assert process.returncode == 0, output
        found.append(sorted(line for line in output.splitlines() if line.startswith("rank")))
    assert len(found[0]) == 4
    assert found[0] == found[1]


def test_a_killed_rank_ends_the_job_on_both_hosts(hosts):
    process = launch(hosts, [2, 2], "loop_program.py", str(hosts.folder), "20")
    until = time.monotonic() + 30
    while not all((hosts.folder / f"begun{rank}").exists() for rank in range(4)):
        assert time.monotonic() < until, process.communicate()[0]
        time.sleep(0.02)
    pids = [json.loads((hosts.folder / f"begun{rank}").read_text())["pid"] for rank in range(4)]
    time.sleep(0.5)
    os.kill(pids[3], signal.SIGKILL)
    output, _ = process.communicate(timeout=20)
    assert process.returncode != 0, output
    until = time.monotonic() + 10
    while left := [pid for pid in pids if pid in hosts.pids(0) + hosts.pids(1)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)
    ends = [json.loads(path.read_text()) for path in hosts.folder.glob("end?")]
    assert all(end["wrong"] == 0 and end["error"] != "NoneType" for end in ends), ends
