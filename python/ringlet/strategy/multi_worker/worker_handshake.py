"""Rendezvous of the workers of a strategy, and the check that their programs and replicas match."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import math
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ringlet.cluster import WorkersJob
from ringlet.cluster.cluster_queries import worker_tasks
from ringlet.cluster.environment import (
    TF_CONFIG,
    Placement,
    canonical_addresses,
    hosts_placement,
    local_workers,
    read_placement,
)
from ringlet.cluster.local_addresses import foreign_addresses, host_of
from ringlet.cluster.worker_job_key import task_name
from ringlet.collectives import Member
from ringlet.collectives.process_group import MOST_RANKS, job_id, join_job
from ringlet.errors import ClusterConfigError, FailedPreconditionError
from ringlet.ipc.byte_framing import join_frames, split_frames
from ringlet.observe.stall_reports import stall_seconds
from ringlet.rendezvous.job_key import MOST_PROCESSES
from ringlet.strategy.replica.watchdog import call_later

_log = logging.getLogger(__name__)

# Maximum length of a cluster spec in messages.
_MOST_SPEC_CHARACTERS = 300
MIXED_VARIABLE = "RINGLET_MIXED_SCRIPTS"


@dataclass(frozen=True)
class Cluster:
    """The workers of a strategy, and the index of this process.

    `tasks` holds the job name, task index and address of each worker, in rank order; `num_local` is the number of
    replicas of each process; `jobs` holds each job of the cluster spec with its addresses, equal in all processes.
    """

    tasks: tuple[tuple[str, int, str], ...]
    worker_index: int
    num_local: int
    jobs: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return len(self.tasks)

    @property
    def num_ranks(self) -> int:
        """The number of replicas over all workers."""
        return self.num_workers * self.num_local

    @property
    def first_rank(self) -> int:
        """The index of this process's first replica among all replicas."""
        return self.worker_index * self.num_local

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which messages refer to the workers."""
        return tuple(task_name(job, index) for job, index, _ in self.tasks)

    @property
    def name(self) -> str:
        """The name by which messages refer to this worker."""
        return self.names[self.worker_index]

    def rendezvous_name(self, number: int) -> str:
        """Return the name of the rendezvous for the strategy with this number."""
        return f"workers of {canonical_addresses([self.tasks[0][2]])[0]}, strategy {number}"

    def digest(self) -> str:
        """Return a string that is equal on all workers of this cluster and differs between clusters."""
        jobs = [(name, canonical_addresses(addresses)) for name, addresses in self.jobs]
        return hashlib.sha256(json.dumps(jobs).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def join(cluster: Cluster, number: int, timeout_seconds: float) -> list[Member]:
    """Perform the rendezvous, check that programs and replicas match, and return the members of this process.

    `number` counts the strategies of the program, and is the same on all workers. The time-out, which may be infinite,
    applies to the rendezvous and to each later collective call.
    """
    _refuse_too_many(cluster)
    _refuse_other_machines(cluster)
    identity = job_id(os.environ)
    texts = (run_command(cluster), _configuration(cluster))
    jobs = [
        WorkersJob(cluster.rendezvous_name(number) + part, identity, ranks, cluster.names, number, *texts)
        for part, ranks in (("", cluster.num_workers), (" replicas", cluster.num_ranks))
    ]
    member = _log_long_wait(cluster, lambda: join_job(jobs[0], [cluster.worker_index], timeout_seconds)[0])
    try:
        _compare(cluster, _facts(cluster, member))
        if cluster.num_local == 1:
            return [member]
        first = cluster.first_rank
        members = join_job(jobs[1], range(first, first + cluster.num_local), timeout_seconds)
    except BaseException:
        member.close()
        raise
    member.close()
    return members


def _configuration(cluster: Cluster) -> str:
    """Return a phrase for messages with the settings that each worker needs, such as ``its own RANK``."""
    is_of_launcher = cluster.tasks == tuple(worker_tasks(local_workers(cluster.num_workers)))
    place = read_placement() if is_of_launcher else Placement()
    if not place.source or place.config is not None:
        return 'the same "cluster" in TF_CONFIG' if TF_CONFIG in os.environ else "the same cluster in its resolver"
    rank, size = place.source.split()
    return f"its own {rank.partition('=')[0]}, the same {size}"


def run_command(cluster: Cluster) -> str:
    """Return the command that starts all workers on this machine, or in a notebook the call of `ringlet.launch`."""
    if _is_notebook():
        replicas = f", replicas={cluster.num_local}" if cluster.num_local > 1 else ""
        return f"ringlet.launch(function, {cluster.num_workers}{replicas})"
    replicas = f" --replicas {cluster.num_local}" if cluster.num_local > 1 else ""
    return f"ringlet run -n {cluster.num_workers}{replicas} {shlex.join(_program())}"


def _is_notebook() -> bool:
    """Return whether this process has no script, because it runs a notebook or was started by `ringlet.launch`."""
    return "ipykernel" in sys.modules or any("ringlet.launcher.worker_main" in part for part in sys.orig_argv)


def _program() -> list[str]:
    """Return the program of this process as arguments of a command line."""
    if _is_notebook():
        return ["script.py"]
    original = sys.orig_argv
    if "-m" in original[1:]:
        module = original[original.index("-m") + 1 :][:1]
        return ["-m", *module, *sys.argv[1:]]
    script = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-") else "script.py"
    return [script, *sys.argv[1:]]


def _refuse_too_many(cluster: Cluster) -> None:
    if cluster.num_workers > MOST_PROCESSES or cluster.num_ranks > MOST_RANKS:
        raise ClusterConfigError(
            f"the cluster has {cluster.num_workers} workers with {cluster.num_ranks} replicas: a strategy has at most "
            f"{MOST_PROCESSES} workers with {MOST_RANKS} replicas. Use fewer workers with more replicas each",
            "$.cluster",
        )


def _refuse_other_machines(cluster: Cluster) -> None:
    addresses = [address for _, _, address in cluster.tasks]
    foreign = foreign_addresses(addresses, own=addresses[cluster.worker_index])
    if not foreign or hosts_placement(os.environ) is not None:
        return
    job, index, address = next(task for task in cluster.tasks if task[2] == foreign[0])
    more = f", nor are {len(foreign) - 1} other addresses" if len(foreign) > 1 else ""
    raise ClusterConfigError(
        f"{task_name(job, index)} is at {address}, which is not this machine{more}. Workers on several machines are "
        f"started by MPI: run pip install 'ringlet[mpi]' on each machine, then {_hosts_command(addresses)}. To run all "
        f"{cluster.num_workers} workers on this machine: {run_command(cluster)}. If {address} is a name of this "
        "machine, write localhost instead",
        f"$.cluster.{job}[{index}]",
    )


def _hosts_command(addresses: Sequence[str]) -> str:
    counts = Counter(host_of(address) for address in addresses)
    hosts = ",".join(f"{host}:{count}" for host, count in counts.items())
    return f"ringlet run --hosts {hosts} {shlex.join(_program())}"


def _log_long_wait(cluster: Cluster, wait: Callable[[], Member]) -> Member:
    """Return the result of `wait`, which waits for the other workers; log a warning if it takes long."""
    is_done: list[bool] = []
    seconds = stall_seconds()

    def log() -> None:
        if not is_done:
            _log.warning(
                "%s has waited %g s for the other workers of its cluster; it continues once all %d are connected",
                cluster.name,
                seconds,
                cluster.num_workers,
            )

    if seconds < math.inf:
        call_later(seconds, log)
    try:
        return wait()
    finally:
        is_done.append(True)


def _facts(cluster: Cluster, member: Member) -> list[dict[str, Any]]:
    """Exchange the properties that must match; return the properties of each worker."""
    script, content = script_of_process()
    mine = {
        "cluster": [cluster.digest(), str(cluster.jobs)[:_MOST_SPEC_CHARACTERS]],
        "replicas": cluster.num_local,
        "script": script,
        "content": content,
        "may_differ": os.environ.get(MIXED_VARIABLE, "").strip() not in ("", "0"),
    }
    joined = member.all_gather(np.frombuffer(join_frames([json.dumps(mine).encode()]), np.uint8))
    return [json.loads(each) for each in split_frames(joined)]


@functools.cache
def script_of_process() -> tuple[str, str]:
    """Return the name of this process's script and a digest of its text, empty if the script cannot be read.

    Cached, because the script may be edited and the working folder changed while the process runs.
    """
    name = sys.argv[0] if sys.argv else ""
    try:
        return name, hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return name, ""


def _compare(cluster: Cluster, facts: Sequence[dict[str, Any]]) -> None:
    for name, each in zip(cluster.names, facts, strict=True):
        if each["cluster"][0] != facts[0]["cluster"][0]:
            raise FailedPreconditionError(
                f"the workers have different clusters: {cluster.names[0]} has {facts[0]['cluster'][1]}, {name} has "
                f"{each['cluster'][1]}. Set the same cluster for all of them; if they belong to two jobs, set a "
                "different RINGLET_JOB_ID for each job"
            )
    replicas = [int(each["replicas"]) for each in facts]
    if len(set(replicas)) > 1:
        counts = ", ".join(f"{name} has {count}" for name, count in zip(cluster.names, replicas, strict=True))
        raise FailedPreconditionError(
            f"the workers have different numbers of replicas: {counts}. Set the same number on all of them: the same "
            "RINGLET_NUM_DEVICES, the same set_logical_devices, or `ringlet run --replicas`"
        )
    _compare_scripts(cluster, facts)


def _compare_scripts(cluster: Cluster, facts: Sequence[dict[str, Any]]) -> None:
    if any(each["may_differ"] for each in facts):
        return
    # Scripts that cannot be read, such as notebooks, are not compared.
    scripts = [(name, each) for name, each in zip(cluster.names, facts, strict=True) if each["content"]]
    for name, each in scripts[1:]:
        first_name, first = scripts[0]
        if each["content"] != first["content"]:
            raise FailedPreconditionError(
                f"{first_name} runs {first['script']} and {name} runs {each['script']}, which are different programs. "
                "Start the same script for every task; set a different RINGLET_JOB_ID for each of two jobs with one "
                f"cluster; or, if programs differ on purpose, set {MIXED_VARIABLE}=1 for one of them"
            )
