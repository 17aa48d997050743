"""Workers and parameter servers on two hosts that TCP connects, with kills and a cut cable."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.hosts.simulated_hosts import REQUIRES_HOSTS, simulated_hosts

pytestmark = REQUIRES_HOSTS

PROGRAM = str(Path(__file__).with_name("parameter_server_program.py"))
SECRET = "a secret of this test"
CALLS, LOSS_SECONDS = 60, 5  # as in the program


@pytest.fixture
def hosts():
    with simulated_hosts() as made:
        yield made


def start(hosts, how, secrets=(SECRET, SECRET)):
    """Start a worker and a parameter server on each host, and the coordinator on the first; return all processes."""
    first, second = hosts.addresses
    cluster = {"chief": [f"{first}:1"], "worker": [f"{first}:2", f"{second}:2"], "ps": [f"{first}:3", f"{second}:3"]}
    tasks = [(0, "worker", 0), (1, "worker", 1), (0, "ps", 0), (1, "ps", 1), (0, "chief", 0)]
    processes = []
    for host, job, index in tasks:
        place = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        processes.append(hosts.start_on(host, [PROGRAM, how], TF_CONFIG=place, RINGLET_SECRET=secrets[host]))
    return processes


def told(process, others=None):
    """Return the next JSON of the coordinator; append the lines before it to `others`."""
    for line in process.stdout:
        if others is not None:
            others.append(line)
        if line.startswith("{"):
            return json.loads(line)
    return pytest.fail("the coordinator has ended")


def check_totals(hosts, chief):
    found = told(chief)
    assert found["total"] == CALLS
    assert found["rows"] == [[CALLS / 5] * 3] * 10
    assert found["shards"] == [f"/job:ps/replica:0/task:{index}/device:CPU:0" for index in (1, 0)]
    assert found["hosts"] == hosts.names


def test_totals_are_exact_and_losses_are_named_within_a_second(hosts):
    *tasks, chief = start(hosts, "kill")
    check_totals(hosts, chief)
    found = told(chief, lines := [])
    assert (found["error"], found["total"] >= 2 * CALLS) == ("", True), found
    assert f"/job:worker/task:1 at {hosts.addresses[1]}:2 has closed its connection" in lines[0]
    found = told(chief)
    assert (found["error"], found["total"] >= 2 * CALLS) == ("PSUnavailableError", True), found
    assert found["seconds"] < 1, found
    place = f"parameter server 1 (/job:ps/task:1 at {hosts.addresses[1]}:3, pid {found['server']}) has closed its"
    assert found["text"].startswith(place)
    output, _ = chief.communicate(timeout=20)
    assert chief.returncode == 0, output
    for task in (tasks[0], tasks[2]):
        assert task.wait(timeout=20) == 0


def test_a_cut_cable_is_noticed_on_both_sides(hosts):
    *tasks, chief = start(hosts, "wait")
    check_totals(hosts, chief)
    hosts.cut()
    cut = time.monotonic()
    found = told(chief)
    assert time.monotonic() - cut < LOSS_SECONDS + 2
    assert found["error"] == "PSUnavailableError", found
    assert "cannot be reached" in found["text"]
    assert [task.wait(timeout=20) for task in (*tasks, chief)] == [0] * 5
    assert time.monotonic() - cut < LOSS_SECONDS + 4


def test_another_secret_is_named_on_both_sides(hosts):
    *tasks, chief = start(hosts, "kill", (SECRET, "some other secret of this test"))
    found = told(chief)
    assert found["error"] == "FailedPreconditionError"
    port, task = (2, tasks[1]) if "worker" in found["text"] else (3, tasks[3])
    assert f"{hosts.addresses[1]}:{port} has a different RINGLET_SECRET: set the same" in found["text"]
    line = next(line for line in task.stdout if "refused a connection" in line)
    assert f"a process on {hosts.addresses[0]} has a different RINGLET_SECRET" in line
