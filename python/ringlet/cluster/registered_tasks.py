"""Registered tasks: the separately started processes of a cluster that register with their coordinator."""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref
from typing import TypeAlias

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.registration import Registration, RegistrationServer, ServersJob
from ringlet.cluster.remote_tasks import RemoteCluster, RemoteTasks
from ringlet.cluster.resolvers.base_resolver import ClusterResolver
from ringlet.cluster.resolvers.local_resolver import LocalCluster, LocalClusterResolver
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import Channel
from ringlet.ipc.deadline import Deadline
from ringlet.observe.stall_reports import stall_seconds
from ringlet.rendezvous.handshake import held_by
from ringlet.rendezvous.rendezvous_errors import how_it_left

_log = logging.getLogger(__name__)


def start_tasks(resolver: ClusterResolver, timeout_seconds: float) -> Tasks:
    """Start the processes of a `LocalClusterResolver`, or wait until all tasks of another cluster are connected."""
    if isinstance(resolver, LocalClusterResolver):
        return resolver.start()
    if (cluster := RemoteCluster.of(resolver.cluster_spec())) is not None:
        return RemoteTasks(cluster, timeout_seconds)
    return RegisteredTasks(resolver.cluster_spec(), os.environ.get("RINGLET_JOB_ID", ""), timeout_seconds)


class RegisteredTasks:
    """Separately started workers and parameter servers; the constructor waits for all of them. Thread-safe."""

    def __init__(self, spec: ClusterSpec, job_id: str, timeout_seconds: float) -> None:
        self._job = ServersJob.of(spec, job_id)
        self._timeout_seconds = timeout_seconds
        self._registrations = _Registrations(self._job)
        server = RegistrationServer(self._job, self._registrations.objection, self._registrations.welcome)
        self._close = weakref.finalize(self, _close, self._registrations, server, os.getpid())
        try:
            self._registrations.wait_for({*range(1, self._job.num_ranks)}, Deadline.after(timeout_seconds))
        except BaseException:
            self.stop()
            raise

    @property
    def workers(self) -> list[Channel]:
        """The channels to all workers, by index."""
        return self._channels("worker")

    @property
    def ps(self) -> list[Channel]:
        """The channels to all parameter servers, by index."""
        return self._channels("ps")

    def restart(self, task_type: str, task_id: int) -> Channel:
        """Wait until the process of a task is started again; return its channel."""
        rank = self._job.rank_of((task_type, task_id))
        self._registrations[rank].channel.close()
        self._registrations.wait_for({rank}, Deadline.after(self._timeout_seconds))
        return self._registrations[rank].channel

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Return how the process of a task with a closed channel ended, such as "exited with status 1"."""
        return how_it_left(self._registrations[self._job.rank_of((task_type, task_id))].process)

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Return the pid of a task."""
        return self._registrations[self._job.rank_of((task_type, task_id))].identity.pid

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels, which ends the servers."""
        self._close()

    def _channels(self, job: str) -> list[Channel]:
        return [self._registrations[self._job.rank_of(task)].channel for task in self._job.tasks if task[0] == job]


Tasks: TypeAlias = LocalCluster | RegisteredTasks | RemoteTasks


def _close(registrations: _Registrations, server: RegistrationServer, pid: int) -> None:
    if pid != os.getpid():  # in a forked child, a lock held by another thread is never released
        return
    server.close()  # closed first, so that no more servers register
    registrations.close()


class _Registrations:
    """The registrations of the tasks, by rank; thread-safe."""

    def __init__(self, job: ServersJob) -> None:
        self._job = job
        self._changed = threading.Condition()  # guards the attributes below
        self._current: dict[int, Registration] = {}
        self._arrived: dict[int, Registration] = {}  # registrations that wait_for() has not made current
        self._is_closed = False

    def __getitem__(self, rank: int) -> Registration:
        return self._current[rank]

    def objection(self, rank: int) -> str | None:
        """Return an error message if a running process already has this rank, else None."""
        with self._changed:
            for registrations in (self._arrived, self._current):
                if rank in registrations and registrations[rank].is_there():
                    return held_by([rank], registrations[rank].identity, self._job)
        return None

    def welcome(self, rank: int, registration: Registration) -> None:
        with self._changed:
            if self._is_closed:
                registration.channel.close()
                return
            if rank in self._arrived:
                self._arrived[rank].channel.close()
            self._arrived[rank] = registration
            self._changed.notify_all()

    def wait_for(self, ranks: set[int], deadline: Deadline) -> None:
        """Wait until all these ranks have registered, and make their registrations current."""
        silence = Deadline.after(stall_seconds())
        with self._changed:
            while not self._is_closed and ranks - self._arrived.keys():
                if deadline.is_over():
                    raise DeadlineExceededError(self._waited_text(ranks, deadline))
                if silence.is_over():
                    _log.warning("%s. Still waiting (limit: %s)", self._waited_text(ranks, silence), deadline)
                    silence = Deadline.after(math.inf)
                self._changed.wait(min(deadline.left(60.0), silence.left(60.0)))
            if self._is_closed:
                raise FailedPreconditionError("the cluster was stopped: create its strategy again")
            for rank in ranks:
                self._current[rank] = self._arrived.pop(rank)

    def close(self) -> None:
        """Close all channels; waiting threads raise an error."""
        with self._changed:
            self._is_closed = True
            for registration in (*self._current.values(), *self._arrived.values()):
                registration.channel.close()
            self._changed.notify_all()

    def _waited_text(self, ranks: set[int], deadline: Deadline) -> str:
        came = ranks & self._arrived.keys()
        here = f" ({self._job.names_of(came)} registered)" if came else ""
        return (
            f"the coordinator waited {deadline} for {self._job.names_of(ranks - came)} of {self._job}{here}. "
            f"{self._job.start_alike}, on this machine and in this network namespace, or allow more time with "
            "RINGLET_TIMEOUT_SECONDS"
        )
