"""The cores of each worker, on machines that files describe and on this one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import ringlet
from ringlet.errors import InvalidArgumentError
from ringlet.launcher import core_binding
from ringlet.launcher.core_binding import cores_of, cores_of_workers, divided, nodes_of

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="binding needs Linux")

CPU = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"
NODE = "/sys/devices/system/node/"

# Two nodes of two cores with two hardware threads each.
MACHINE = {
    **{CPU.format(thread): f"{thread % 4},{thread % 4 + 4}\n" for thread in range(8)},
    NODE + "online": "0-1\n", NODE + "node0/cpulist": "0-1,4-5\n", NODE + "node1/cpulist": "2-3,6-7\n",
}  # fmt: skip


def test_hardware_threads_of_a_core_stay_together():
    assert cores_of(range(8), MACHINE.get) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert cores_of({1, 4, 5}, MACHINE.get) == [[1, 5], [4]]
    assert cores_of({0, 2}, {}.get) == [[0], [2]]


def test_nodes_are_those_with_cores_of_this_process():
    assert nodes_of(range(8), MACHINE.get) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert nodes_of({6, 7}, MACHINE.get) == [[6, 7]]
    assert nodes_of({0, 2}, {}.get) == [[0, 2]]
    assert nodes_of({0, 9}, MACHINE.get) == [[0], [9]]


@pytest.mark.parametrize(
    ("num_units", "num_workers", "shares"),
    [
        (4, 2, [[0, 1], [2, 3]]),
        (4, 4, [[0], [1], [2], [3]]),
        (5, 2, [[0, 1], [2, 3, 4]]),
        (2, 4, [[0], [0], [1], [1]]),
        (1, 2, [[0], [0]]),
    ],
)
def test_workers_get_equal_shares_of_adjacent_units(num_units, num_workers, shares):
    assert divided([[unit] for unit in range(num_units)], num_workers) == shares


@pytest.fixture
def machine(monkeypatch):
    """Make this process one that may use all of MACHINE."""
    monkeypatch.setattr(core_binding, "read_file", MACHINE.get)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


def test_each_binding_has_its_shares(machine):
    assert cores_of_workers("none", 2, None, "bind") == [[], []]
    assert cores_of_workers("core", 4, None, "bind") == [[0, 4], [1, 5], [2, 6], [3, 7]]
    assert cores_of_workers("core", 2, 2, "bind") == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert cores_of_workers("numa", 4, None, "bind") == [[0, 1, 4, 5]] * 2 + [[2, 3, 6, 7]] * 2


def test_what_cannot_be_bound_is_refused(machine):
    with pytest.raises(InvalidArgumentError, match="--bind must be none, core or numa, got 'socket'"):
        cores_of_workers("socket", 2, None, "--bind")
    with pytest.raises(
        InvalidArgumentError, match=r"5 workers need 5 cores, .* has 4 \(with 8 hardware threads\)\. Start fewer"
    ):
        cores_of_workers("core", 5, None, "--bind")
    with pytest.raises(InvalidArgumentError, match="2 workers need 6 cores"):
        cores_of_workers("core", 2, 3, "bind")


def test_without_the_call_of_the_system_only_none_is_possible(monkeypatch):
    monkeypatch.delattr(os, "sched_setaffinity")
    assert cores_of_workers("none", 1, None, "bind") == [[]]
    with pytest.raises(InvalidArgumentError, match="cannot bind processes"):
        cores_of_workers("numa", 1, None, "bind")


def affinity():
    return sorted(os.sched_getaffinity(0))


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_workers_of_launch_are_bound():
    mine = affinity()
    assert ringlet.launch(affinity, n=2) == [mine, mine]
    first, second = ringlet.launch(affinity, n=2, bind="core")
    assert sorted(first + second) == mine
    assert first
    assert second
    assert affinity() == mine


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_workers_of_run_are_bound(tmp_path):
    script = tmp_path / "cores.py"
    script.write_text("import os\nprint(*sorted(os.sched_getaffinity(0)))\n", encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "2", "--bind", "core", str(script)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    expected = [" ".join(map(str, cores)) for cores in cores_of_workers("core", 2, None, "bind")]
    assert sorted(said.splitlines()) == [f"[w0] {expected[0]}", f"[w1] {expected[1]}"]
