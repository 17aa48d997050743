"""Registration of servers with their coordinator, which authenticates each server before it opens a channel.

A server connects to a name derived from the cluster, the job and the user (:mod:`ringlet.rendezvous.job_key`). The
kernel reports the user of the server; the handshake (JSON, at most 64 KiB, within a second) has the version and task of
the server.
Pickles are exchanged only over the channel that an accepted server receives.

    coordinator                              server
    listens   <-------- handshake ---------  connects, with retries until the coordinator listens
    accepts   ---------- welcome --------->  receives one end of a new connection
"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ringlet import _core
from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.local_addresses import canonical_address
from ringlet.cluster.worker_job_key import ClusterJob, task_name
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import LocalChannel
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children, credentials, open_pidfd, pair
from ringlet.observe.stall_reports import stall_seconds
from ringlet.rendezvous.handshake import Handshake
from ringlet.rendezvous.job_key import listed
from ringlet.rendezvous.listener import ConnectedProcess, Listener, listen, refuse
from ringlet.rendezvous.messages import Message, Unreadable, new_socket, receive, send
from ringlet.rendezvous.process_identity import ProcessIdentity

_log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 5.0  # timeout for the coordinator's reply
_END_SECONDS = 1.0  # timeout for joining the thread


Task = tuple[str, int]
"""Type and index of a task: ``("worker", 0)``."""


@dataclass(frozen=True)
class ServersJob(ClusterJob):
    """A job whose rank 0 is the coordinator; `tasks` are the workers and parameter servers, in rank order."""

    tasks: tuple[Task, ...] = ()

    @classmethod
    def of(cls, spec: ClusterSpec, job_id: str) -> ServersJob:
        """Return the job of a cluster; jobs with equal `job_id` and equal addresses of tasks are equal."""
        tasks = tuple((job, index) for job in ("worker", "ps") for index in spec.task_indices(job))
        known = [(*task, canonical_address(spec.task_address(*task))) for task in tasks]
        return cls(f"servers {json.dumps(known)}", job_id, 1 + len(tasks), tasks)

    def rank_of(self, task: Task) -> int:
        """Return the rank of a task."""
        return 1 + self.tasks.index(task)

    @property
    def start_alike(self) -> str:
        """The remedy in messages about processes that did not connect."""
        return (
            "Start a ringlet.Server for every task once, as the user of the coordinator, with the same cluster and the "
            "same RINGLET_JOB_ID"
        )

    def names_of(self, ranks: Iterable[int]) -> str:
        """Return the names of the tasks that have these ranks."""
        return listed([task_name(*self.tasks[rank - 1]) if rank else "the coordinator" for rank in sorted(ranks)])

    def __str__(self) -> str:
        job = f" (RINGLET_JOB_ID {self.job_id!r})" if self.job_id else ""
        return f"the cluster of {len(self.tasks)} servers{job}"


@dataclass
class Registration:
    """A process that has registered as a task."""

    channel: LocalChannel
    identity: ProcessIdentity
    process: _core.Pidfd

    def is_there(self) -> bool:
        """Return whether the process is running and its channel is open."""
        return not self.channel.is_closed and not self.identity.has_ended()


class RegistrationServer:
    """Accepts the servers of a cluster, in a thread that sleeps until a process connects.

    For each server the thread calls ``objection(rank)``, which returns a reason to refuse the server or None, and then,
    if the server has been accepted, ``welcome(rank, registration)``.
    """

    def __init__(
        self, job: ServersJob, objection: Callable[[int], str | None], welcome: Callable[[int, Registration], None]
    ) -> None:
        self._job = job
        self._handshake = Handshake.of_this_process(job, [0])
        self._objection = objection
        self._welcome = welcome
        listener = listen(job.address())
        if listener is None:
            raise FailedPreconditionError(
                f"{_holder(job)} is already the coordinator of this cluster: end it, or close its strategy, before "
                f"creating another coordinator; if they belong to two jobs, {job.KEEP_APART}"
            )
        self._listener = Listener(listener, self._handshake.version)
        self._stop_writer, self._stop_reader = pair(socket.SOCK_STREAM)
        self._listener.watch(self._stop_reader)
        self._thread = threading.Thread(target=self._run, name="ringlet-registration", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # KeyboardInterrupt: stop the thread, which may have started
            self._stop_writer.close()
            raise

    def close(self) -> None:
        """Stop accepting servers; idempotent."""
        self._stop_writer.close()
        if threading.get_ident() != self._thread.ident:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        with self._stop_reader, contextlib.closing(self._listener):
            while True:
                try:
                    clients, ready = self._listener.poll(3600.0)
                    for client in clients:
                        self._answer_client(client)
                except OSError:  # no free file descriptor: retry
                    time.sleep(0.1)
                    continue
                if ready:
                    return

    def _answer_client(self, client: ConnectedProcess) -> None:
        with client.connection:
            reason = self._reason_to_refuse(client)
            if reason is not None:
                refuse(client.connection, reason)
                return
            mine, other = pair(socket.SOCK_STREAM)
            channel = LocalChannel(mine, self._job.names_of(client.handshake.ranks))
            try:
                with other:
                    send(client.connection, {"kind": "welcome"}, [other.fileno()])
                process = _core.Pidfd(open_pidfd(client.connection), client.pid)
            except OSError:  # the process has exited
                channel.close()
                return
        self._welcome(client.handshake.ranks[0], Registration(channel, client.handshake.identity, process))

    def _reason_to_refuse(self, client: ConnectedProcess) -> str | None:
        handshake = client.handshake
        reason = self._handshake.rejection_of(handshake, client.pid, self._job)
        if reason is None and (len(handshake.ranks) != 1 or handshake.ranks == (0,)):
            reason = (
                f"{self._job.names_of(handshake.ranks)} cannot register with the coordinator: expected one server task."
            )
        return reason or self._objection(handshake.ranks[0])


def register(job: ServersJob, task: Task, deadline: Deadline) -> LocalChannel:
    """Wait for the coordinator of a cluster, register this process as a task, and return the channel to it."""
    handshake = Handshake.of_this_process(job, [job.rank_of(task)])
    pause, silence = _FIRST_PAUSE_SECONDS, Deadline.after(stall_seconds())
    while True:
        channel = _try(job, handshake, deadline.left(_ANSWER_SECONDS))
        if channel is not None:
            return channel
        if deadline.is_over():
            raise DeadlineExceededError(_waited_text(job, handshake, deadline))
        if silence.is_over():
            _log.warning("%s. Still waiting (limit: %s)", _waited_text(job, handshake, silence), deadline)
            silence = Deadline.after(math.inf)
        time.sleep(deadline.left(pause))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _waited_text(job: ServersJob, handshake: Handshake, deadline: Deadline) -> str:
    return (
        f"{job.names_of(handshake.ranks)} ({handshake.identity}) waited {deadline} for the coordinator of {job}, which "
        "has not started. Start it with the same cluster, as the same user, on this machine and in this network "
        "namespace, or allow more time with timeout_seconds= or RINGLET_TIMEOUT_SECONDS"
    )


def _holder(job: ServersJob) -> str:
    """Return text that identifies the process that listens at the address of a job."""
    with contextlib.suppress(OSError), new_socket() as connection:
        connection.connect(job.address())
        pid = credentials(connection)[0]
        return "this process" if pid == os.getpid() else f"pid {pid}"
    return "another process"


def _try(job: ServersJob, handshake: Handshake, seconds: float) -> LocalChannel | None:
    with new_socket() as connection:
        connection.settimeout(max(seconds, 0.001))  # 0 would mean non-blocking
        try:
            connection.connect(job.address())
        except OSError:  # no listener, or its backlog is full
            return None
        pid, uid = credentials(connection)
        if uid != os.geteuid():
            raise PermissionError(
                errno.EPERM,
                f"the socket name of the coordinator of {job} is held by pid {pid} of user {uid}, but "
                f"{job.names_of(handshake.ranks)} runs as user {os.geteuid()}: run all processes as one user; if that "
                "process belongs to another job, choose another RINGLET_JOB_ID",
            )
        message, descriptors = _answer(connection, handshake)
    if message.get("kind") == "refused":
        raise FailedPreconditionError(str(message.get("reason")))
    if message.get("kind") != "welcome" or len(descriptors) != 1:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    return LocalChannel(close_in_children(socket.socket(fileno=descriptors[0])), job.names_of([0]))


def _answer(connection: socket.socket, handshake: Handshake) -> tuple[Message, list[int]]:
    """Send the handshake; return the reply and its descriptors, both empty if the coordinator does not reply."""
    with contextlib.suppress(OSError):  # a coordinator that refused may have closed; its reason is read below
        send(connection, handshake.as_message())
    try:
        return receive(connection) or ({}, [])
    except (OSError, Unreadable):  # the coordinator has exited or is stopped
        return {}, []
