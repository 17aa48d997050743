"""LocalClusterResolver: a cluster of processes on this machine, started by its coordinator."""

from __future__ import annotations

import json
import operator
import os
import socket
import sys
import threading
import weakref
from collections.abc import Mapping
from typing import IO, Any

from ringlet.cluster.child_processes import ChildProcesses, wait_for
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.resolvers.base_resolver import AddressResolver
from ringlet.cluster.worker_job_key import task_name
from ringlet.devices import visible_cores
from ringlet.errors import InvalidArgumentError
from ringlet.errors.exception_notes import with_usage
from ringlet.ipc import Channel, LocalChannel
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.job_environment import blas_threads, new_job_id
from ringlet.ipc.unix_sockets import pair
from ringlet.ipc.worker_process import Worker, ending_text
from ringlet.rendezvous.job_key import MOST_PROCESSES

# Module with the main function of the processes, not imported because it belongs to a higher layer.
_MAIN = "ringlet.coordinator.local_task"
# Timeout for the exit of a process whose channel has closed.
_END_SECONDS = 0.5

_Task = tuple[str, int]  # type and index


class LocalCluster:
    """The processes of a cluster on this machine, and a channel to each; thread-safe.

    The processes are new interpreters, with the environment of this process and the variables in `environment`. They do
    not outlive this object or this process.
    """

    def __init__(self, workers: int, ps: int, environment: Mapping[str, str]) -> None:
        self._cluster = local_tasks(workers, ps)
        self._job_id = new_job_id()
        variables = {**os.environ, **environment}
        threads = blas_threads(variables, visible_cores().count, workers)
        self._environment = {"PYTHONUNBUFFERED": "1", **variables, **threads, "RINGLET_JOB_ID": self._job_id}
        self._children = ChildProcesses()
        self._channels: dict[_Task, LocalChannel] = {}
        self._processes: dict[_Task, Worker] = {}
        self._finalizer = weakref.finalize(self, _end, self._children, self._channels, 2.0)
        try:
            for job, count in (("worker", workers), ("ps", ps)):
                for index in range(count):
                    self._start((job, index))
        except BaseException:
            self.stop(0.0)
            raise

    @property
    def is_inherited(self) -> bool:
        """Whether this is a forked child, which does not own the processes."""
        return self._children.is_inherited

    @property
    def workers(self) -> list[Channel]:
        """The channels to all workers, by index."""
        return [channel for (job, _), channel in self._channels.items() if job == "worker"]

    @property
    def ps(self) -> list[Channel]:
        """The channels to all parameter servers, by index."""
        return [channel for (job, _), channel in self._channels.items() if job == "ps"]

    def restart(self, task_type: str, task_id: int) -> Channel:
        """Kill the process of a task, start a new one, and return its channel."""
        task = (task_type, task_id)
        self._channels[task].close()
        self._children.end(self._processes[task])
        return self._start(task)

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Return how the process of a task with a closed channel ended, such as "exited with status 1"."""
        worker = self._processes[task_type, task_id]
        if not wait_for([worker], Deadline.after(_END_SECONDS)):
            return "closed its connection, but is still running"
        assert worker.status is not None
        return ending_text(worker.status)

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Return the pid of a task."""
        return self._processes[task_type, task_id].process.pid

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels, which ends idle processes, and kill the remaining processes within the time limit."""
        self._finalizer.detach()
        _end(self._children, self._channels, timeout_seconds)

    def _start(self, task: _Task) -> LocalChannel:
        ours, theirs = pair(socket.SOCK_STREAM)
        place = {"cluster": self._cluster, "task": {"type": task[0], "index": task[1]}}
        try:
            with theirs, _paths_and_arguments() as file:
                program = (
                    f"import sys; sys.path[:], sys.argv[:] = eval(open({file.fileno()}).read()); "
                    f"from {_MAIN} import main; main({theirs.fileno()}, {task[0]!r}, {task[1]})"
                )
                command = [sys.executable, "-c", program]
                environment = {**self._environment, "TF_CONFIG": json.dumps(place)}
                self._processes[task] = self._children.start(command, environment, [theirs.fileno(), file.fileno()])
        except BaseException:
            ours.close()
            raise
        self._channels[task] = LocalChannel(ours, task_name(*task))
        return self._channels[task]


def _paths_and_arguments() -> IO[str]:
    """Return a file with sys.path and sys.argv, which may be too long for a command line."""
    file = os.fdopen(os.memfd_create("ringlet"), "w+", encoding="ascii")
    file.write(ascii((list(filter(_is_text, sys.path)), sys.argv)))  # imports skip entries of sys.path that are not str
    file.seek(0)
    return file


def _end(children: ChildProcesses, channels: Mapping[Any, LocalChannel], seconds: float) -> None:
    if children.is_inherited:
        return
    for channel in channels.values():
        channel.close()
    children.end_all(seconds)
    for channel in channels.values():  # a task restarted concurrently may have opened a new channel
        channel.close()


def local_tasks(workers: int, ps: int) -> dict[str, list[str]]:
    """Return the tasks of a local cluster, whose addresses are only names."""
    counts = {"chief": 1, "worker": workers, "ps": ps}
    return {job: [f"{job}-{index}" for index in range(count)] for job, count in counts.items()}


class LocalClusterResolver(AddressResolver):
    """A cluster of processes on this machine, started by the first strategy that uses the resolver.

    The calling process is the chief.

    Parameters
    ----------
    workers : int
        Number of processes that run functions.
    ps : int
        Number of parameter servers: processes that own variables.
    environment : mapping of str to str, optional
        Variables for these processes, added to the environment of this process.

    Raises
    ------
    InvalidArgumentError
        If a number is out of range, or a variable is invalid.

    Examples
    --------
    >>> resolver = LocalClusterResolver(workers=2, ps=1)
    >>> resolver.cluster_spec()
    ClusterSpec({'chief': ['chief-0'], 'ps': ['ps-0'], 'worker': ['worker-0', 'worker-1']})
    >>> resolver.task_type, resolver.task_id
    ('chief', 0)
    """

    @with_usage("LocalClusterResolver(workers=2, ps=1)")
    def __init__(self, workers: int, ps: int, *, environment: Mapping[str, str] | None = None) -> None:
        self._workers = _count("workers", workers, MOST_PROCESSES - 2)
        self._ps = _count("ps", ps, MOST_PROCESSES - 1 - self._workers)
        self._environment = _variables({} if environment is None else environment)
        self._task_type, self._task_id = "chief", 0
        self._lock = threading.RLock()  # reentrant: a signal handler may call stop() during start()
        self._cluster: LocalCluster | None = None

    def cluster_spec(self) -> ClusterSpec:
        """Return the tasks; their addresses are only names."""
        return ClusterSpec(local_tasks(self._workers, self._ps))

    def start(self) -> LocalCluster:
        """Start the processes unless they are running.

        Returns
        -------
        LocalCluster
            The same object until the cluster is stopped.

        Raises
        ------
        OSError
            If the system cannot start the processes.
        """
        with self._lock:
            if self._cluster is None or self._cluster.is_inherited:
                self._cluster = LocalCluster(self._workers, self._ps, self._environment)
            return self._cluster

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Stop the processes within a time limit in seconds; `start` starts them again.

        Parameters
        ----------
        timeout_seconds : float
        """
        with self._lock:
            if self._cluster is not None:
                self._cluster.stop(timeout_seconds)
                self._cluster = None


def _count(name: str, value: int, most: int) -> int:
    try:
        count = operator.index(value)
    except TypeError:
        count = 0
    if isinstance(value, bool) or not 1 <= count <= most:
        raise InvalidArgumentError(f"{name} is {value!r}: expected an integer from 1 to {most}")
    return count


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    if not isinstance(environment, Mapping):
        raise InvalidArgumentError(f"environment is {environment!r}: expected a mapping of variable names to strings")
    for name, value in environment.items():
        if not _is_text(name) or not _is_text(value):
            raise InvalidArgumentError(f"environment[{name!r}] is {value!r}: expected strings for names and values")
        if not name or "=" in name or not _can_be_passed(name + value):
            raise InvalidArgumentError(
                f"environment[{name!r}] is {value!r}, which the system does not support: a name must have at least "
                "one character and no '='; names and values must not contain NUL or characters that cannot be encoded"
            )
    return dict(environment)


def _is_text(entry: object) -> bool:
    return isinstance(entry, str)


def _can_be_passed(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
