"""The rendezvous of workers, and all the ways in which it fails."""

from __future__ import annotations

import json
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from ringlet.cluster import WorkersJob
from ringlet.cluster.cluster_queries import worker_tasks
from ringlet.cluster.environment import VARIABLES, local_workers
from ringlet.errors import ClusterConfigError
from ringlet.strategy.multi_worker import worker_handshake
from ringlet.strategy.multi_worker.worker_handshake import Cluster, join, run_command
from tests.processes.harness import eventually
from tests.strategy.multi_worker.test_worker_group import start
from tests.strategy.workers import PROGRAM, environment

pytestmark = pytest.mark.slow

ONCE = "attempt(lambda: strategy.run(step))"


def address_of(job_id, num_workers=2):
    """Return the rendezvous name of the job of `environment`."""
    addresses = json.loads(environment(0, num_workers)["TF_CONFIG"])["cluster"]["worker"]
    tasks = tuple(("worker", index, address) for index, address in enumerate(addresses))
    cluster = Cluster(tasks, 0, 1, (("worker", tuple(addresses)),))
    return WorkersJob(cluster.rendezvous_name(1), job_id, num_workers, cluster.names).address()


def sockets_at(address):
    """Return the number of sockets of this machine with the name: the listener, and one for each connection."""
    return Path("/proc/net/unix").read_text().count("@" + address[1:])


def failure_of(process):
    told = process.told()
    assert isinstance(told, dict), told
    return told


def test_a_missing_worker_is_named_with_a_remedy_and_the_command_that_starts_all(processes, name):
    started = start(processes, name, "tell('here')\nhear()\n" + ONCE, num_workers=3, indices=[0, 2], SECONDS="1.5")
    assert [process.told() for process in started] == ["here"] * 2
    for process in started:
        process.say()
    for process in started:
        told = failure_of(process)
        assert told["kind"] == "DeadlineExceededError"
        assert "waited 1.5 s for /job:worker/task:1 of the 3 workers of the cluster" in told["text"]
        assert '"cluster" in TF_CONFIG' in told["text"]
        assert "RINGLET_JOB_ID" in told["text"]
        assert "`ringlet run -n 3 " in told["text"]
        assert "RINGLET_TIMEOUT_SECONDS" in told["text"]


@pytest.mark.parametrize(
    ("environ", "tasks", "words"),
    [
        # environment, tasks of the cluster, what all tasks need
        ({"RANK": "0", "WORLD_SIZE": "2"}, None, "its own RANK, the same WORLD_SIZE=2"),
        (
            {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"},
            None,
            "its own OMPI_COMM_WORLD_RANK, the same OMPI_COMM_WORLD_SIZE=2",
        ),
        (
            {"RANK": "0", "WORLD_SIZE": "2"},
            (("worker", 0, "a:1"), ("worker", 1, "a:2")),
            "the same cluster in its resolver",
        ),
        ({"TF_CONFIG": "{}"}, None, 'the same "cluster" in TF_CONFIG'),
    ],
)
def test_the_remedy_names_what_the_cluster_was_read_from(monkeypatch, environ, tasks, words):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    jobs = []
    monkeypatch.setattr(worker_handshake, "join_job", lambda job, *_: jobs.append(job) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        join(Cluster(tasks or tuple(worker_tasks(local_workers(2))), 0, 1), 1, 1.0)
    assert f"as one user, with {words} and the same RINGLET_JOB_ID" in jobs[0].start_alike
    assert ("TF_CONFIG" in jobs[0].start_alike) is ("TF_CONFIG" in environ)


def test_a_missing_first_worker_is_named_too(processes, name):
    [process] = start(processes, name, ONCE, indices=[1], SECONDS="0.5")
    assert "connect to /job:worker/task:0, which has not started" in failure_of(process)["text"]


def test_a_second_process_of_one_task_is_sent_away_with_the_pid_of_the_first(processes, name):
    [first] = start(processes, name, ONCE, indices=[0])
    assert eventually(lambda: sockets_at(address_of(name)))
    [second] = start(processes, name, ONCE, indices=[0])
    told = failure_of(second)
    assert told["kind"] == "FailedPreconditionError"
    assert f"/job:worker/task:0 is held by pid {first.pid}" in told["text"]
    assert "two processes were started as this task, or another job with this cluster" in told["text"]
    [other] = start(processes, name, ONCE, indices=[1])
    assert first.told() == other.told() == [2.0, 4.0]


def test_different_numbers_of_replicas_are_an_error_on_all_that_names_each(processes, name):
    [first] = start(processes, name, ONCE, indices=[0])
    [second] = start(processes, name, ONCE, indices=[1], num_local=2)
    for process in (first, second):
        told = failure_of(process)
        assert told["kind"] == "FailedPreconditionError"
        assert "/job:worker/task:0 has 1, /job:worker/task:1 has 2" in told["text"]


def test_workers_that_spell_one_endpoint_differently_connect(processes, name):
    hosts = ["localhost", socket.gethostname()]
    started = []
    for index, host in enumerate(hosts):
        addresses = [f"{host}:{20000 + worker}" for worker in range(len(hosts))]
        config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        started += start(
            processes, name, ONCE, num_workers=len(hosts), indices=[index], TF_CONFIG=json.dumps(config), SECONDS="20"
        )
    assert [process.told() for process in started] == [[2.0, 4.0]] * 2


def test_clusters_of_different_sizes_are_an_error_on_all_that_names_both(processes, name):
    started = start(processes, name, ONCE, num_workers=2, indices=[0])
    started += start(processes, name, ONCE, num_workers=3, indices=[1])
    for told in map(failure_of, started):
        assert told["kind"] == "FailedPreconditionError"
        assert "/job:worker/task:1 (pid" in told["text"]
        assert "was started with a cluster of 3 workers, but /job:worker/task:0 (pid" in told["text"]
        assert "with a cluster of 2 workers" in told["text"]
        assert "RINGLET_JOB_ID" in told["text"]


def test_different_clusters_of_one_size_are_an_error_on_all_that_names_both(processes, name):
    other = environment(1, 2)["TF_CONFIG"].replace("localhost:20001", "localhost:20007")
    started = start(processes, name, ONCE, indices=[0]) + start(processes, name, ONCE, indices=[1], TF_CONFIG=other)
    for told in map(failure_of, started):
        assert told["kind"] == "FailedPreconditionError"
        assert "the workers have different clusters: /job:worker/task:0 has" in told["text"]
        assert "localhost:20001" in told["text"]
        assert "localhost:20007" in told["text"]


def start_scripts(processes, name, folder, ending=ONCE, **changes):
    """Two workers with different scripts."""
    started = []
    for index in range(2):
        script = folder / f"{index}.py"
        script.write_text(f"# {index}\n")
        program = f"sys.argv[0] = {str(script)!r}\n{PROGRAM}\n{ending}"
        started.append(processes.start(program, environ=environment(index, 2, job_id=name, **changes)))
    return started


def test_different_programs_are_an_error_on_all_that_names_both_and_the_cures(processes, name, tmp_path):
    for process in start_scripts(processes, name, tmp_path):
        told = failure_of(process)
        assert told["kind"] == "FailedPreconditionError"
        words = f"/job:worker/task:0 runs {tmp_path / '0.py'} and /job:worker/task:1 runs {tmp_path / '1.py'}"
        assert words in told["text"]
        assert "RINGLET_JOB_ID" in told["text"]
        assert "RINGLET_MIXED_SCRIPTS=1" in told["text"]


def test_the_script_is_what_it_was_when_the_strategy_was_made(processes, name, tmp_path):
    started = start_scripts(processes, name, tmp_path, "tell('made')\nhear()\n" + ONCE)
    assert [process.told() for process in started] == ["made"] * 2
    (tmp_path / "0.py").write_bytes((tmp_path / "1.py").read_bytes())
    for process in started:
        process.say()
    assert [failure_of(process)["kind"] for process in started] == ["FailedPreconditionError"] * 2


def test_programs_may_differ_on_purpose(processes, name, tmp_path):
    started = start_scripts(processes, name, tmp_path, RINGLET_MIXED_SCRIPTS="1")
    assert [process.told() for process in started] == [[2.0, 4.0]] * 2


def test_a_worker_that_ends_during_the_rendezvous_is_named_to_the_others(processes, name):
    chief, second = start(processes, name, "tell('here')\n" + ONCE, num_workers=3, indices=[0, 1])
    assert (chief.told(), second.told()) == ("here", "here")
    assert eventually(lambda: sockets_at(address_of(name, 3)) > 1)
    time.sleep(0.1)  # until it has sent its properties
    second.kill()
    told = failure_of(chief)
    assert told["kind"] == "WorkerLostError"
    assert f"/job:worker/task:1 (pid {second.pid}" in told["text"]


@pytest.mark.parametrize("index", [0, 1])
def test_ctrl_c_ends_the_wait_for_the_others(processes, name, index):
    [process] = start(processes, name, "tell('here')\n" + ONCE, indices=[index])
    assert process.told() == "here"
    time.sleep(0.2)
    process.kill(signal.SIGINT)
    told = failure_of(process)
    assert told["kind"] == "KeyboardInterrupt"
    assert told["seconds"] < 5


def test_workers_may_retry_after_one_has_timed_out(processes, name):
    program = """
hear()
attempt(lambda: strategy.run(step))
hear()
attempt(lambda: strategy.run(step))
"""
    first, second = start(processes, name, program, SECONDS="1")
    first.say()
    assert failure_of(first)["kind"] == "DeadlineExceededError"
    for process in (first, second):
        process.say()
    # The second one connects for the first time, with a call that the other one does not make.
    kinds = [process.told() for process in (first, second)]
    assert [told if isinstance(told, list) else told["kind"] for told in kinds] == ["CollectiveMismatchError"] * 2


def test_an_unrelated_connection_at_the_rendezvous_is_ignored(processes, name):
    [first] = start(processes, name, "tell('here')\n" + ONCE, indices=[0])
    assert first.told() == "here"
    address = address_of(name)
    strangers = []

    def comes():
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        strangers.append(stranger)
        return stranger.connect_ex(address) == 0

    assert eventually(comes)
    strangers[-1].send(b"cos\nsystem\n(S'touch /tmp/ringlet-bomb'\ntR.")
    [second] = start(processes, name, ONCE, indices=[1])
    assert first.told() == second.told() == [2.0, 4.0]
    for stranger in strangers:
        stranger.close()


# --- without other processes ------------------------------------------------------------------------------------------


def cluster_of(*addresses, num_local=1):
    return Cluster(tuple(("worker", index, address) for index, address in enumerate(addresses)), 0, num_local)


def test_other_machines_are_refused_with_the_exact_command_to_use_instead(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train it.py", "--epochs", "3"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "train it.py"])
    with pytest.raises(ClusterConfigError, match=r"task:1 is at 203\.0\.113\.9:1, which is not this machine") as caught:
        join(cluster_of("localhost:1", "203.0.113.9:1", num_local=2), 1, 1.0)
    assert "ringlet run -n 2 --replicas 2 'train it.py' --epochs 3" in str(caught.value)
    assert "ringlet run --hosts localhost:1,203.0.113.9:1 'train it.py' --epochs 3" in str(caught.value)
    assert caught.value.path == "$.cluster.worker[1]"


def test_a_module_is_named_as_it_was_started(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/somewhere/train.py", "--epochs", "3"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "models.train", "--epochs", "3"])
    assert run_command(cluster_of("a:1", "b:1")) == "ringlet run -n 2 -m models.train --epochs 3"


@pytest.mark.parametrize("is_launched", [False, True])
def test_a_worker_of_a_notebook_proposes_what_starts_all_from_a_notebook(monkeypatch, is_launched):
    if is_launched:
        program = "import sys; from ringlet.launcher.worker_main import main; main(3, 4)"
        monkeypatch.setattr(sys, "orig_argv", ["python", "-c", program])
    else:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setattr(sys, "argv", ["ipykernel_launcher.py", "-f", "kernel.json"])
    cluster = cluster_of("localhost:1", "203.0.113.9:1", num_local=3)
    assert run_command(cluster) == "ringlet.launch(function, 2, replicas=3)"
    with pytest.raises(ClusterConfigError, match=r"ringlet run --hosts localhost:1,203\.0\.113\.9:1 script\.py"):
        join(cluster, 1, 1.0)


def test_more_workers_than_one_machine_runs_are_refused_at_once():
    addresses = [f"localhost:{port}" for port in range(60_000)]
    with pytest.raises(ClusterConfigError, match="60000 workers with 60000 replicas: a strategy has at most 1000"):
        join(cluster_of(*addresses), 1, 1.0)


def test_the_same_cluster_has_the_same_digest_in_every_worker_and_another_one_has_another():
    jobs = (("worker", ("localhost:1", "localhost:2")),)
    digests = {Cluster((), index, local, jobs).digest() for index in (0, 1) for local in (1, 2)}
    assert len(digests) == 1
    assert Cluster((), 0, 1, (("worker", ("localhost:2", "localhost:1")),)).digest() not in digests


@pytest.mark.parametrize("is_over_mpi", [False, True])
def test_hosts_of_mpi_compare_addresses_as_they_are_spelled(monkeypatch, is_over_mpi):
    if is_over_mpi:
        for name, value in (("RANK", 0), ("SIZE", 2), ("LOCAL_RANK", 0), ("LOCAL_SIZE", 1)):
            monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    clusters = [
        Cluster((("worker", 0, f"{host}:1"),), 0, 1, (("worker", (f"{host}:1", "localhost:2")),))
        for host in ("localhost", "127.0.0.1")
    ]
    assert len({cluster.digest() for cluster in clusters}) == 1 + is_over_mpi
    assert len({cluster.rendezvous_name(1) for cluster in clusters}) == 1 + is_over_mpi
