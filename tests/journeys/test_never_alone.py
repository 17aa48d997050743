"""Programs started as several processes, in every dialect: they join each other, or say why they are alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet.cluster.environment import VARIABLES

SECONDS = 60

STRATEGY = """
import ringlet

strategy = ringlet.MultiWorkerMirroredStrategy()

def step(x):
    return ringlet.get_replica_context().all_reduce(ringlet.ReduceOp.SUM, x.sum())

dataset = ringlet.data.Dataset.range(12).batch(6)
for batch in strategy.experimental_distribute_dataset(dataset):
    total = strategy.run(step, args=(batch,))
print(total, strategy.num_replicas_in_sync, ringlet.rank(), ringlet.size(), ringlet.local_rank())
"""

GROUP = """
import ringlet

with ringlet.collectives.init_process_group() as member:
    total = member.all_reduce([float(member.rank)])[0]
    print(total, member.num_ranks, member.rank, ringlet.size(), ringlet.local_rank())
"""


@pytest.fixture
def run(tmp_path):
    """Runs a program as one process, with these variables."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}

    def start(program, environ, *before):
        script = tmp_path / "step.py"
        script.write_text(program, encoding="utf-8")
        command = [*(before or (sys.executable,)), str(script)]
        environ = kept | {"RINGLET_TIMEOUT_SECONDS": "50"} | environ
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False)

    return start


def dialects(rank):
    job = str(uuid.uuid4())
    task = {"cluster": {"worker": ["localhost:1", "localhost:2"]}, "task": {"type": "worker", "index": rank}}
    return {
        "TF_CONFIG": {"TF_CONFIG": json.dumps(task), "RINGLET_JOB_ID": job},
        "ringlet": {"RINGLET_RANK": str(rank), "RINGLET_NUM_RANKS": "2", "RINGLET_JOB_ID": job},
        "torchrun": {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "TORCHELASTIC_RUN_ID": job},
        "Open MPI": {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": job},
        "MPICH": {"PMI_RANK": str(rank), "PMI_SIZE": "2", "MPI_LOCALNRANKS": "2", "PMI_JOBID": job},
        "Slurm": {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": job},
    }


@pytest.mark.parametrize("dialect", dialects(0))
@pytest.mark.parametrize("program", [STRATEGY, GROUP], ids=["strategy", "group"])
def test_two_processes_join_each_other(run, dialect, program, monkeypatch):
    job = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: job)
    with ThreadPoolExecutor(2) as threads:
        ended = list(threads.map(lambda rank: run(program, dialects(rank)[dialect]), range(2)))
    total = "51" if program == STRATEGY else "1.0"
    expected = [f"{total} 2 {rank} 2 {rank}\n" for rank in range(2)]
    assert [(each.stdout, each.stderr) for each in ended] == [(text, "") for text in expected]


@pytest.mark.parametrize("program", [STRATEGY, GROUP], ids=["strategy", "group"])
def test_the_launcher_needs_no_arguments_in_the_program(run, program):
    ended = run(program, {}, sys.executable, "-m", "ringlet", "run", "-n", "2")
    total = "51" if program == STRATEGY else "1.0"
    assert sorted(ended.stdout.splitlines()) == [f"[w{rank}] {total} 2 {rank} 2 {rank}" for rank in range(2)]


@pytest.mark.parametrize(
    ("environ", "seen"),
    [
        # variables, what the one line names
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, "found SLURM_PROCID=0 SLURM_NTASKS=2 outside of an srun step"),
        ({"PMIX_RANK": "1"}, "found PMIX_RANK=1 without a number of processes"),
        ({"WORLD_SIZE": "2"}, "found WORLD_SIZE=2 without RANK"),
    ],
)
def test_a_process_that_cannot_find_the_others_says_so_in_one_line(run, environ, seen):
    ended = run(STRATEGY, environ)
    assert (ended.returncode, ended.stdout) == (0, "51 1 0 1 0\n")
    [line] = ended.stderr.splitlines()
    assert line.startswith(f"{seen}: MultiWorkerMirroredStrategy runs as a single process.")
    refused = run(GROUP, environ)
    assert refused.returncode == 1
    assert seen[len("found ") :] in refused.stderr.splitlines()[-1]


@pytest.mark.parametrize("environ", [{}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "3"}])
def test_a_process_outside_of_a_job_is_silent(run, environ):
    ended = run(STRATEGY, environ)
    assert (ended.stdout, ended.stderr) == ("51 1 0 1 0\n", "")


def test_a_resolver_that_reads_another_variable_says_so(run):
    program = STRATEGY.replace("Strategy()", "Strategy(ringlet.cluster_resolver.TFConfigClusterResolver())")
    ended = run(program, {"RANK": "0", "WORLD_SIZE": "2"})
    [line] = ended.stderr.splitlines()
    assert "found RANK=0 WORLD_SIZE=2" in line
    assert "omit the resolver" in line


def test_a_job_of_several_machines_is_refused(run):
    ended = run(STRATEGY, {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "203.0.113.7"})
    assert ended.returncode == 1
    assert "describes processes on several machines" in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        # TF_CONFIG, words of the last line
        ({"clusters": {"worker": ["a:1", "b:1"]}}, "'clusters' is unknown, the nearest key is 'cluster'"),
        ({"cluster": {"worker": ["a:1", "b:1"]}, "tasks": {}}, "'tasks' is unknown, the nearest key is 'task'"),
        ({"cluster": {"master": ["a:1"]}, "task": {"type": "master", "index": 0}}, "the nearest is 'chief'. Corrected"),
        ({"workers": ["a:1", "b:1"]}, "the cluster is missing. TF_CONFIG, at $.workers"),
        ({"task": {"type": "worker", "index": 1}}, "a task is given without its cluster"),
    ],
)
@pytest.mark.parametrize("program", [STRATEGY, GROUP], ids=["strategy", "group"])
def test_a_misspelt_configuration_is_an_error(run, program, config, words):
    ended = run(program, {"TF_CONFIG": json.dumps(config)})
    assert (ended.returncode, ended.stdout) == (1, "")
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ringlet.errors.ClusterConfigError: ")
    assert words in last


def test_launchers_that_are_started_several_times_say_that_they_are_several_jobs(run):
    ended = run(STRATEGY, {"RANK": "0", "WORLD_SIZE": "2"}, sys.executable, "-m", "ringlet", "run", "-n", "1")
    assert "RANK=0 WORLD_SIZE=2 describes 2 processes, each of which starts a job of 1 workers" in ended.stderr


@pytest.mark.parametrize("line", ["ringlet.MirroredStrategy(2)", "ringlet.map(abs, numpy.ones(2))"])
def test_workers_that_each_run_the_whole_program_say_so_in_one_line(run, line):
    ended = run(f"import numpy, ringlet\n{line}\n{line}", {}, sys.executable, "-m", "ringlet", "run", "-n", "2")
    [said] = ended.stderr.splitlines()
    assert said.startswith("[w0] each of the 2 workers runs this program by itself")
    assert "MultiWorkerMirroredStrategy()" in said


@pytest.mark.parametrize("workers", [("-n", "1"), ("-n", "2")])
def test_a_worker_that_asks_for_its_rank_may_run_by_itself(run, workers):
    program = "import ringlet\nringlet.rank()\nringlet.MirroredStrategy(2)"
    ended = run(program, {}, sys.executable, "-m", "ringlet", "run", *workers)
    assert ended.stderr == ""
