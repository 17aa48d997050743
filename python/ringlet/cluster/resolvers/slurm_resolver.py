"""SlurmClusterResolver: the tasks of a job step started by ``srun``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, MutableMapping

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import AddressResolver

# Slurm sets these variables in every task of a step.
_RANK = "SLURM_PROCID"  # rank of this task in the step
_NUM_TASKS = "SLURM_STEP_NUM_TASKS"
_HOSTS = "SLURM_STEP_NODELIST"  # for example n[1-3]
_TASKS_PER_HOST = "SLURM_STEP_TASKS_PER_NODE"  # for example 2(x3)
# Read if gpus_per_node is not given; set to the GPUs of this task.
_GPUS = "CUDA_VISIBLE_DEVICES"


class SlurmClusterResolver(AddressResolver):
    """The tasks of a job step of Slurm (``tf.distribute.cluster_resolver.SlurmClusterResolver``).

    Hosts and jobs are sorted by name, so that all tasks have the same cluster. The task of this process is known after
    a call to `cluster_spec`.

    Parameters
    ----------
    jobs : dict of str to int, optional
        Number of tasks of each job; by default all tasks of the step are ``worker``.
    port_base : int
        Port of the first task of each host; its other tasks use the following ports.
    gpus_per_node : int, optional
        By default counted from ``CUDA_VISIBLE_DEVICES`` if set, else by ``nvidia-smi`` if installed, else 0.
    gpus_per_task : int, optional
        By default `gpus_per_node` divided by the largest number of tasks on a host, rounded down.
    tasks_per_node : int or dict of str to int, optional
        Number of tasks of every host, or of each host by name; by default Slurm's number.
    auto_set_gpu : bool
        Whether `cluster_spec` sets ``CUDA_VISIBLE_DEVICES`` to the GPUs of this task, if it has any.
    rpc_layer : str, optional
        Protocol prefix of addresses.
    environ : mutable mapping of str to str, optional
        The environment, which is read and changed; by default the environment of this process.

    Raises
    ------
    RuntimeError
        If a variable of Slurm is missing, the tasks of a node need more GPUs than it has, or the number of tasks in
        `jobs` differs from the number in the step.
    ValueError
        If a variable of Slurm is invalid.

    Examples
    --------
    >>> environ = {
    ...     "SLURM_PROCID": "2",
    ...     "SLURM_STEP_NUM_TASKS": "3",
    ...     "SLURM_STEP_NODELIST": "n[1-2]",
    ...     "SLURM_STEP_TASKS_PER_NODE": "2,1",
    ... }
    >>> resolver = SlurmClusterResolver(gpus_per_node=0, environ=environ)
    >>> resolver.cluster_spec()
    ClusterSpec({'worker': ['n1:8888', 'n1:8889', 'n2:8888']})
    >>> resolver.get_task_info()
    ('worker', 2)
    """

    def __init__(  # noqa: PLR0917 - TensorFlow's arguments
        self,
        jobs: dict[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | dict[str, int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str | None = "grpc",
        *,
        environ: MutableMapping[str, str] | None = None,
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._rank = _number(self._environ, _RANK)
        self._jobs = {"worker": _number(self._environ, _NUM_TASKS)} if jobs is None else jobs
        self._port_base = port_base
        self._tasks_on = _tasks_on_hosts(self._environ, tasks_per_node)
        fullest = max(self._tasks_on.values())
        self._gpus_per_node = _count_gpus(self._environ) if gpus_per_node is None else gpus_per_node
        self._gpus_per_task = self._gpus_per_node // fullest if gpus_per_task is None else gpus_per_task
        self._auto_set_gpu = auto_set_gpu
        self._rpc_layer = rpc_layer
        # The GPUs of each task, by rank.
        self._gpu_allocation: list[str] = []
        if fullest * self._gpus_per_task > self._gpus_per_node:
            raise RuntimeError(
                f"Requested more GPUs per node than available. {fullest} tasks of {self._gpus_per_task} GPUs each are "
                f"on one node, which has {self._gpus_per_node} GPUs: change gpus_per_task= or gpus_per_node="
            )
        requested, assigned = sum(self._jobs.values()), sum(self._tasks_on.values())
        if requested != assigned:
            raise RuntimeError(
                f"Requested {requested} tasks but only {assigned} were assigned. jobs= is {self._jobs}, but the step "
                f"has {self._tasks_on}: change --ntasks of srun, or the numbers in jobs="
            )

    def cluster_spec(self) -> ClusterSpec:
        """Return the cluster, and determine the task of this process.

        Raises
        ------
        RuntimeError
            If the rank of this process is not less than the number of tasks.
        """
        addresses = [f"{host}:{self._port_base + place}" for host, place in self._places()]
        if self._rank >= len(addresses):
            raise RuntimeError(
                f"{_RANK} is {self._rank}, but there are {len(addresses)} tasks: {self._tasks_on}. Include all "
                "tasks that srun starts in jobs= and tasks_per_node="
            )
        each = self._gpus_per_task
        self._gpu_allocation = [
            ",".join(map(str, range(place * each, (place + 1) * each))) for _, place in self._places()
        ]
        if self._auto_set_gpu and each:
            self._environ[_GPUS] = self._gpu_allocation[self._rank]
        return ClusterSpec(self._shared_out(addresses))

    def get_task_info(self) -> tuple[str | None, int | None]:
        """Return the job and the index of this process.

        Returns
        -------
        tuple
            ``(None, None)`` before `cluster_spec` is called.
        """
        return self.task_type, self.task_id

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: object = None
    ) -> dict[str, int]:
        """Return the number of GPUs of each task; replicas run on CPUs nevertheless."""
        return {"GPU": self._gpus_per_task}

    def _places(self) -> list[tuple[str, int]]:
        """Return for each rank its host, and its index among the tasks of that host."""
        return [(host, place) for host, tasks in sorted(self._tasks_on.items()) for place in range(tasks)]

    def _shared_out(self, addresses: list[str]) -> dict[str, list[str]]:
        """Return the tasks of each job, and set the task of this process."""
        shares, begin = {}, 0
        for job, num_tasks in sorted(self._jobs.items()):
            shares[job] = addresses[begin : begin + num_tasks]
            if begin <= self._rank < begin + num_tasks:
                self.task_type, self.task_id = job, self._rank - begin
            begin += num_tasks
        return shares


def _variable(environ: Mapping[str, str], name: str) -> str:
    if name in environ:
        return environ[name]
    present = ", ".join(sorted(key for key in environ if key.startswith("SLURM_"))) or "none"
    raise RuntimeError(
        f"{name} not found in environment. Not running inside a SLURM step? SLURM_* present: {present}. Launch with "
        "srun, or pass a cluster spec to SimpleClusterResolver."
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    text = _variable(environ, name)
    try:
        number = int(text)
    except ValueError as error:
        raise ValueError(f"{name} is not a number: {str(error)[:200]}") from None
    if number < 0:
        raise ValueError(f"{name} is {number}: expected 0 or more")
    return number


def _tasks_on_hosts(environ: Mapping[str, str], tasks_per_node: int | dict[str, int] | None) -> dict[str, int]:
    if isinstance(tasks_per_node, dict):
        tasks_on = dict(tasks_per_node)
    else:
        hosts = expand_hostlist(_variable(environ, _HOSTS))
        if tasks_per_node is None:
            counts = expand_tasks_per_node(_variable(environ, _TASKS_PER_HOST))
            tasks_on = dict(zip(hosts, counts, strict=False))
        else:
            tasks_on = dict.fromkeys(hosts, int(tasks_per_node))
    if not tasks_on:
        raise ValueError(
            f"the job step has no hosts: {_HOSTS} is {environ.get(_HOSTS)!r} and tasks_per_node is {tasks_per_node!r}. "
            "Start the program with srun, or pass tasks for each host, such as tasks_per_node={'n1': 2}"
        )
    return tasks_on


def _count_gpus(environ: Mapping[str, str]) -> int:
    if _GPUS in environ:
        return len(environ[_GPUS].split(","))  # an empty string counts as one GPU, as in TensorFlow
    program = shutil.which("nvidia-smi", path=environ.get("PATH", ""))
    if program is None:
        return 0
    try:
        done = subprocess.run([program, "--list-gpus"], capture_output=True, text=True, timeout=60, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        raise RuntimeError(
            f"Could not get the number of GPUs from nvidia-smi: {str(error).rstrip('.')}. Pass gpus_per_node=, or "
            "gpus_per_node=0 without GPUs."
        ) from error
    return sum(line.startswith("GPU ") for line in done.stdout.splitlines())


# --- Slurm's notation for lists of hosts, ``n[1-3],m5``, and of numbers of tasks, ``2(x3),1`` -------------------------

_MOST_ENTRIES = 1_000_000  # largest number of hosts in a list; a larger number is probably a typo


def expand_hostlist(hostlist: str) -> list[str]:
    """Expand a list of hosts as in ``SLURM_STEP_NODELIST``; a host that occurs twice is returned twice."""
    try:
        parts = re.split(r",(?![^\[]*\])", hostlist)  # split at commas outside of brackets
        if not parts[-1]:
            parts.pop()
        hosts = [host for part in parts for host in _hosts(part)]
    except ValueError as error:
        raise ValueError(f'Invalid hostlist format "{hostlist[:200]}": {error}') from None
    return hosts


def expand_tasks_per_node(tasks_per_node: str) -> list[int]:
    """Expand the task counts of nodes, as in ``SLURM_STEP_TASKS_PER_NODE``."""
    counts: list[int] = []
    for part in tasks_per_node.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:\(x(\d{1,9})\))?", part, re.ASCII)
        times = int(match[2] or 1) if match else 0
        if match is None or times + len(counts) > _MOST_ENTRIES:
            raise ValueError(
                f'Invalid tasks-per-node list format "{tasks_per_node[:200]}": expected task counts, '
                f"such as 2 or 2(x3), for at most {_MOST_ENTRIES} nodes, got {part[:100]!r}"
            )
        counts += [int(match[1])] * times
    return counts


def _hosts(part: str) -> Iterator[str]:
    match = re.fullmatch(r"([^,\[\]]*)(?:\[([^\[\]]+)\])?", part)
    if match is None or not part:
        raise ValueError(f"Invalid part: {part[:100]}" if part else "a host is missing between two commas")
    prefix, ranges = match.groups()
    if ranges is None:
        yield prefix
        return
    for item in ranges.split(","):
        first, *last = item.split("-")
        if len(last) > 1:
            raise ValueError(f"{item[:100]!r} is not a range, such as 1-3")
        numbers = range(int(first), int(last[0] if last else first) + 1)
        if len(numbers) > _MOST_ENTRIES:
            raise ValueError(f"{item[:100]!r} has {len(numbers)} hosts, more than the maximum of {_MOST_ENTRIES}")
        yield from (prefix + str(number).zfill(len(first)) for number in numbers)
