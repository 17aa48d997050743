"""How the workers of a strategy come together: each finds the others, and all look whether they fit each other."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ringlet.cluster import WorkersJob
from ringlet.cluster.local_addresses import foreign_addresses
from ringlet.cluster.worker_job_key import task_name
from ringlet.collectives import Member
from ringlet.collectives.process_group import MOST_RANKS, job_id, join_job
from ringlet.errors import ClusterConfigError, FailedPreconditionError
from ringlet.rendezvous.job_key import MOST_PROCESSES
from ringlet.strategy.multi_worker.byte_framing import pack, unpack
from ringlet.strategy.replica.watchdog import call_later

__all__ = ["Cluster", "join", "script_of_process"]

_log = logging.getLogger(__name__)

MIXED_VARIABLE = "RINGLET_MIXED_SCRIPTS"

# After which joining says that it waits.
_SECONDS_BEFORE_WORD = 30.0


@dataclass(frozen=True)
class Cluster:
    """The workers of a strategy, and which of them this process is.

    Attributes
    ----------
    tasks : tuple of (str, int, str)
        Job, index in it and address of each worker, in the order of their ranks.
    worker_index : int
        Which of them this process is.
    num_local : int
        Replicas of this process; all workers must have as many.
    spec : str
        The whole cluster as text, the same in all processes.

    Examples
    --------
    >>> cluster = Cluster((("chief", 0, "localhost:1"), ("worker", 0, "localhost:2")), 1, 4)
    >>> cluster.num_workers, cluster.name, cluster.first_rank, cluster.num_ranks
    (2, '/job:worker/task:0', 4, 8)
    """

    tasks: tuple[tuple[str, int, str], ...]
    worker_index: int
    num_local: int
    spec: str = ""

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        return len(self.tasks)

    @property
    def num_ranks(self) -> int:
        """How many replicas there are, over all workers."""
        return self.num_workers * self.num_local

    @property
    def first_rank(self) -> int:
        """Which of all replicas is the first one of this process."""
        return self.worker_index * self.num_local

    @property
    def names(self) -> tuple[str, ...]:
        """What messages call the workers."""
        return tuple(task_name(job, index) for job, index, _ in self.tasks)

    @property
    def name(self) -> str:
        """What messages call this one."""
        return self.names[self.worker_index]

    def digest(self) -> str:
        """Give a text that is the same on all workers of this cluster, and on those of no other one."""
        return hashlib.sha256(json.dumps([self.spec, self.tasks]).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def join(cluster: Cluster, number: int, timeout_seconds: float) -> list[Member]:
    """Find the other workers, and see whether they fit.

    Parameters
    ----------
    cluster : Cluster
    number : int
        Which of the program's strategies it is; the same on all workers.
    timeout_seconds : float
        How long to wait for the others, here and in each later call; may be infinite.

    Returns
    -------
    list of Member
        One for each replica of this process, of a group of all replicas.

    Raises
    ------
    ClusterConfigError
        If workers are on other machines.
    DeadlineExceededError
        If some did not come; names them.
    FailedPreconditionError
        If another process is this task, or the workers have different scripts, numbers of replicas or versions of
        ringlet.
    WorkerLostError
        If one that had come ended.
    PermissionError
        If another user has the name under which they meet.
    """
    _refuse_too_many(cluster)
    _refuse_other_machines(cluster)
    identity = job_id(os.environ)
    jobs = [
        WorkersJob(f"{cluster.digest()} {number}{part}", identity, ranks, cluster.names, number, run_command(cluster))
        for part, ranks in (("", cluster.num_workers), (" replicas", cluster.num_ranks))
    ]
    member = _alone_is_told(cluster, lambda: join_job(jobs[0], [cluster.worker_index], timeout_seconds)[0])
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


def run_command(cluster: Cluster) -> str:
    """Give the command that starts all workers of a cluster on this machine.

    Examples
    --------
    >>> run_command(Cluster((("worker", 0, "a:1"), ("worker", 1, "b:1")), 0, 2)).startswith("ringlet run -n 2 --repl")
    True
    """
    replicas = f" --replicas {cluster.num_local}" if cluster.num_local > 1 else ""
    program = _program()
    return f"ringlet run -n {cluster.num_workers}{replicas} {shlex.join(program)}"


def _program() -> list[str]:
    """What was run, as a command line has it."""
    original = getattr(sys, "orig_argv", [])
    if "-m" in original[1:]:
        module = original[original.index("-m") + 1 :][:1]
        return ["-m", *module, *sys.argv[1:]]
    script = sys.argv[0] if sys.argv and sys.argv[0] not in ("", "-c", "-") else "script.py"
    return [script, *sys.argv[1:]]


def _refuse_too_many(cluster: Cluster) -> None:
    if cluster.num_workers > MOST_PROCESSES or cluster.num_ranks > MOST_RANKS:
        raise ClusterConfigError(
            f"the cluster has {cluster.num_workers} workers with {cluster.num_ranks} replicas: a strategy has at most "
            f"{MOST_PROCESSES} workers with {MOST_RANKS} replicas. Give it fewer workers, with more replicas each",
            "$.cluster",
        )


def _refuse_other_machines(cluster: Cluster) -> None:
    addresses = [address for _, _, address in cluster.tasks]
    foreign = foreign_addresses(addresses, own=addresses[cluster.worker_index])
    if not foreign:
        return
    job, index, address = next(task for task in cluster.tasks if task[2] == foreign[0])
    more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
    raise ClusterConfigError(
        f"{task_name(job, index)} is at {address}{more}, which is not this machine: the workers of a strategy are "
        f"processes of one machine in this version. To run all {cluster.num_workers} workers here: "
        f"{run_command(cluster)}. If {address} is a name of this machine, write localhost in its place",
        f"$.cluster.{job}[{index}]",
    )


def _alone_is_told(cluster: Cluster, wait: Callable[[], Member]) -> Member:
    """Wait for the others, with a word in the log if that takes long."""
    has_come: list[bool] = []

    def say() -> None:
        if not has_come:
            _log.warning(
                "%s has waited %g s for the other workers of its cluster; it goes on when all %d have come",
                cluster.name,
                _SECONDS_BEFORE_WORD,
                cluster.num_workers,
            )

    call_later(_SECONDS_BEFORE_WORD, say)
    try:
        return wait()
    finally:
        has_come.append(True)


def _facts(cluster: Cluster, member: Member) -> list[dict[str, Any]]:
    """What each worker says about itself."""
    script, content = script_of_process()
    mine = {
        "replicas": cluster.num_local,
        "script": script,
        "content": content,
        "may_differ": os.environ.get(MIXED_VARIABLE, "").strip() not in ("", "0"),
    }
    joined = member.all_gather(pack(json.dumps(mine).encode()))
    return [json.loads(each) for each in unpack(joined)]


@functools.cache
def script_of_process() -> tuple[str, str]:
    """Give the name of the script that this process runs, and a digest of its text, empty if it cannot be read.

    They stay as they were at the first call: scripts are edited while they run, and processes go to other folders.
    """
    name = sys.argv[0] if sys.argv else ""
    try:
        return name, hashlib.sha256(Path(name).read_bytes()).hexdigest()
    except OSError:
        return name, ""


def _compare(cluster: Cluster, facts: Sequence[dict[str, Any]]) -> None:
    replicas = [int(each["replicas"]) for each in facts]
    if len(set(replicas)) > 1:
        told = ", ".join(f"{name} has {count}" for name, count in zip(cluster.names, replicas, strict=True))
        raise FailedPreconditionError(
            f"the workers have different numbers of replicas: {told}. Give all of them as many: the same "
            "RINGLET_NUM_DEVICES, the same set_logical_devices, or `ringlet run --replicas`"
        )
    _compare_scripts(cluster, facts)


def _compare_scripts(cluster: Cluster, facts: Sequence[dict[str, Any]]) -> None:
    if any(each["may_differ"] for each in facts):
        return
    # What cannot be read, such as a notebook, is nobody's script.
    scripts = [(name, each) for name, each in zip(cluster.names, facts, strict=True) if each["content"]]
    for name, each in scripts[1:]:
        first_name, first = scripts[0]
        if each["content"] != first["content"]:
            raise FailedPreconditionError(
                f"{first_name} runs {first['script']} and {name} runs {each['script']}, which are different programs. "
                "Start the same script for every task; give each of two jobs with one cluster its own RINGLET_JOB_ID; "
                f"or, where programs differ on purpose, set {MIXED_VARIABLE}=1 for one of them"
            )
