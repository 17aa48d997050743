"""Remote tasks: the coordinator, workers and parameter servers of a cluster, connected by authenticated TCP.

Each worker and parameter server listens at its own address of the cluster. The coordinator connects to all of them, and
a worker to the parameter servers. After authentication (:mod:`ringlet.ipc.authenticated_tcp`) the client sends its name
and version, and a digest of the cluster and the task; the task replies with its own and, if it refuses, the reason.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import math
import os
import queue
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.local_addresses import host_and_port, resolves_elsewhere
from ringlet.cluster.registration import ServersJob, Task
from ringlet.cluster.worker_job_key import task_name
from ringlet.errors import ClusterConfigError, DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import Channel, LocalChannel
from ringlet.ipc.authenticated_tcp import NotAuthentic, authenticate, connect, listen, receive_object, send_object
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children
from ringlet.observe.stall_reports import stall_seconds
from ringlet.rendezvous.job_key import listed
from ringlet.version import __version__

_log = logging.getLogger(__name__)

_COORDINATOR = "the coordinator"
_MAKE_SECRET = "python -c 'import secrets; print(secrets.token_hex(32))'"
_LEAST_CHARACTERS = 16
_CONNECT_SECONDS = 2.0  # time-out of one attempt
_ANSWER_SECONDS = 5.0  # time-out of a handshake
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.01, 0.2
# Maximum number of connections whose handshake is not complete; if exceeded, the oldest is dropped.
_MAX_PENDING = 64


@dataclass(frozen=True)
class RemoteCluster:
    """A cluster whose tasks connect by TCP, as configured in one of its processes."""

    spec: ClusterSpec
    job: ServersJob
    secret: bytes = field(repr=False)

    @classmethod
    def of(cls, spec: ClusterSpec, environ: Mapping[str, str] = os.environ) -> RemoteCluster | None:
        """Return the cluster if ``RINGLET_SECRET`` is set, else None.

        Raises ClusterConfigError if the secret is too short, or missing although an address belongs to another machine.
        """
        secret = environ.get("RINGLET_SECRET", "").strip()
        if len(secret) >= _LEAST_CHARACTERS:
            return cls(spec, ServersJob.of(spec, environ.get("RINGLET_JOB_ID", "")), os.fsencode(secret))
        make = f"Set it to the same random value for all tasks; `{_MAKE_SECRET}` prints one"
        if secret:
            raise ClusterConfigError(
                f"RINGLET_SECRET has {len(secret)} characters: expected at least {_LEAST_CHARACTERS}. {make}"
            )
        addresses = [task for job in spec.jobs for task in spec.job_tasks(job) if task]
        if foreign := resolves_elsewhere(addresses):
            raise ClusterConfigError(
                f"the cluster has addresses of other machines ({listed(foreign)}), whose tasks connect by TCP, but "
                f"RINGLET_SECRET is not set. {make}"
            )
        return None

    def address(self, task: Task) -> tuple[str, int]:
        """Return the host and the port of a task."""
        text = self.spec.task_address(*task)
        host, port = host_and_port(text)
        if not port.isdecimal() or not 0 < int(port) < 1 << 16:
            raise ClusterConfigError(
                f"{task_name(*task)} has the address {text!r}: expected host:port, as in node1:2222"
            )
        return host, int(port)

    def name_of(self, task: Task) -> str:
        """Return the name and the address of a task, for messages."""
        return f"{task_name(*task)} at {self.spec.task_address(*task)}"

    def hello(self, name: str, task: Task) -> dict[str, Any]:
        """Return the first message of the process `name`, which is a client of `task` or the task itself."""
        addresses = [(*each, self.spec.task_address(*each)) for each in self.job.tasks]
        job = hashlib.sha256(json.dumps([addresses, self.job.job_id, task]).encode("utf-8", "surrogatepass"))
        python = f"Python {sys.version_info[0]}.{sys.version_info[1]}, {sys.byteorder}-endian"
        return {
            "version": f"ringlet {__version__}, {python}",
            "job": job.hexdigest(),
            "name": name,
            "pid": os.getpid(),
            "host": socket.gethostname(),
        }


class TaskListener:
    """Listens at the address of a task, in threads, until `close`.

    Only the first coordinator that connects is accepted. Workers connect to parameter servers as clients:
    `serve_client` is called in a separate thread for each connection.
    """

    def __init__(self, cluster: RemoteCluster, task: Task, serve_client: Callable[[LocalChannel], None]) -> None:
        self._cluster, self._serve_client = cluster, serve_client
        self._name = cluster.name_of(task)
        self._hello = cluster.hello(self._name, task)
        self._coordinators: queue.SimpleQueue[LocalChannel] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the attributes below
        self._holder: tuple[socket.socket, str] | None = None  # the connection to the coordinator, and its name
        self._pending: dict[socket.socket, None] = {}
        self._note = ""
        host, port = cluster.address(task)
        if resolves_elsewhere([host]):
            raise ClusterConfigError(
                f"{self._name} is not on this machine: start it on the machine with that address, or correct "
                "the address or the task"
            )
        try:
            self._socket = listen(host, port)
        except OSError as error:
            is_used = error.errno == errno.EADDRINUSE
            cause = "the port is in use: end the other process, or change the port in the cluster of all tasks"
            raise OSError(error.errno, f"{self._name} cannot listen: {cause if is_used else error.strerror}") from None
        threading.Thread(target=self._accept, name="ringlet-listener", daemon=True).start()

    def coordinator(self, deadline: Deadline) -> LocalChannel:
        """Wait for the coordinator, and return the channel to it."""
        for limit in (Deadline.after(min(stall_seconds(), deadline.seconds)), deadline):
            with contextlib.suppress(queue.Empty):
                return self._coordinators.get(timeout=limit.left(threading.TIMEOUT_MAX))
            text = (
                f"{self._name} waited {limit} for the coordinator of {self._cluster.job}, which has not connected"
                f"{self._note}. Start it with the same cluster, RINGLET_JOB_ID and RINGLET_SECRET, or allow more time "
                "with timeout_seconds= or RINGLET_TIMEOUT_SECONDS"
            )
            if not deadline.is_over():
                _log.warning("%s. Still waiting (limit: %s)", text, deadline)
        raise DeadlineExceededError(text)

    def close(self) -> None:
        """Stop listening; connections stay open."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._socket.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, address = self._socket.accept()
            except OSError:
                if self._socket.fileno() < 0:
                    return
                time.sleep(0.1)  # no free file descriptor: retry
                continue
            with self._lock:
                self._pending[close_in_children(connection)] = None
                if len(self._pending) > _MAX_PENDING:
                    with contextlib.suppress(OSError):
                        next(iter(self._pending)).shutdown(socket.SHUT_RDWR)
            try:
                threading.Thread(target=self._answer, args=(connection, address[0]), daemon=True).start()
            except RuntimeError:  # no free thread: the peer may try again
                with self._lock:
                    del self._pending[connection]
                connection.close()

    def _answer(self, connection: socket.socket, host: str) -> None:
        deadline = Deadline.after(_ANSWER_SECONDS)
        refusal: str | None = None
        try:
            authenticate(connection, self._cluster.secret, False, deadline)
            theirs = receive_object(connection, deadline)
            refusal = self._refusal(theirs, connection)
            send_object(connection, {**self._hello, "refused": refusal}, deadline)
        except NotAuthentic as error:
            refusal = f"a process on {host} {error}"
        except OSError as error:  # the peer has closed the connection, or is silent
            _log.debug("a connection from %s ended: %s", host, error)
            with self._lock:
                if self._holder is not None and self._holder[0] is connection:
                    self._holder = None
            connection.close()
        with self._lock:
            del self._pending[connection]
        if refusal:
            connection.close()
            self._note = f"; {refusal}"
            _log.error("%s has refused a connection: %s", self._name, refusal)
        elif connection.fileno() >= 0:
            channel = LocalChannel(connection, str(theirs["name"]))
            (self._coordinators.put if channel.peer == _COORDINATOR else self._serve_client)(channel)

    def _refusal(self, theirs: Mapping[str, Any], connection: socket.socket) -> str:
        """Return the reason to refuse a client, or an empty text. Raises OSError if the client may try again."""
        you = f"{theirs.get('name')} (pid {theirs.get('pid')} on {theirs.get('host')})"
        if theirs.get("version") != self._hello["version"]:
            versions = f"{theirs.get('version')}, but {self._name} has {self._hello['version']}"
            return f"{you} has {versions}: install the same versions on all hosts"
        if theirs.get("job") != self._hello["job"]:
            return (
                f"{you} and {self._name} have different clusters, tasks at this address or RINGLET_JOB_ID: start all "
                "processes with the same values"
            )
        with self._lock:
            if theirs["name"] == _COORDINATOR:
                if self._holder is not None:
                    if self._holder[0].fileno() < 0:
                        raise ConnectionAbortedError("the task is about to exit, because its coordinator has exited")
                    return f"{self._name} is held by {self._holder[1]}: {self._cluster.job.taken}"
                self._holder = connection, you
        return ""


class RemoteTasks:
    """Connections from the coordinator of a cluster to all tasks, or from a worker to the parameter servers.

    The constructor waits until all tasks are connected. Thread-safe.
    """

    def __init__(
        self,
        cluster: RemoteCluster,
        timeout_seconds: float,
        *,
        jobs: tuple[str, ...] = ("worker", "ps"),
        name: str = _COORDINATOR,
    ) -> None:
        self._cluster, self._name, self._timeout_seconds = cluster, name, timeout_seconds
        self._is_stopped = threading.Event()
        tasks = [task for task in cluster.job.tasks if task[0] in jobs]
        self._links: dict[Task, tuple[LocalChannel, int]] = {}  # channel and pid of each task
        self._failures: dict[Task, str] = {}  # why the last attempt to connect to a task failed
        self._close = weakref.finalize(self, _close, self._links, self._is_stopped, os.getpid())
        try:
            self._connect(tasks)
        except BaseException:
            self.stop()
            raise
        self._links.update({task: self._links.pop(task) for task in tasks})  # in the order of the tasks

    @property
    def workers(self) -> list[Channel]:
        """The channels to all workers, by index."""
        return [channel for (job, _), (channel, _) in self._links.items() if job == "worker"]

    @property
    def ps(self) -> list[Channel]:
        """The channels to all parameter servers, by index."""
        return [channel for (job, _), (channel, _) in self._links.items() if job == "ps"]

    def restart(self, task_type: str, task_id: int) -> Channel:
        """Wait until the process of a task is started again; return its channel."""
        task = task_type, task_id
        self._links[task][0].close()
        self._connect([task], waits_for_another=True)
        return self._links[task][0]

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Return how the connection to a task ended."""
        return self._links[task_type, task_id][0].ending

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Return the pid of a task on its host."""
        return self._links[task_type, task_id][1]

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels, which ends the tasks if this process is their coordinator."""
        self._close()

    def _connect(self, tasks: Sequence[Task], waits_for_another: bool = False) -> None:
        """Connect to tasks, with retries.

        If a task refuses, raise an error or, with `waits_for_another`, wait until the task's process is restarted.
        """
        deadline, silence = Deadline.after(self._timeout_seconds), Deadline.after(stall_seconds())
        pause, missing = _FIRST_PAUSE_SECONDS, list(tasks)
        while True:
            for task in [*missing]:
                try:
                    self._links[task] = self._try(task, Deadline.after(max(deadline.left(_ANSWER_SECONDS), 0.001)))
                    missing.remove(task)
                except OSError as error:
                    self._failures[task] = error.strerror or str(error)
                except FailedPreconditionError as error:
                    if not waits_for_another:
                        raise
                    if self._failures.get(task) != str(error):
                        _log.error("%s", error)
                    self._failures[task] = str(error)
            if not missing and not self._is_stopped.is_set():
                return
            if missing and deadline.is_over():
                raise DeadlineExceededError(self._waited_text(missing, deadline))
            if silence.is_over():
                _log.warning("%s. Still waiting (limit: %s)", self._waited_text(missing, silence), deadline)
                silence = Deadline.after(math.inf)
            if self._is_stopped.wait(deadline.left(pause)):
                _close(self._links, self._is_stopped, os.getpid())
                raise FailedPreconditionError("the cluster was stopped: create its strategy again")
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _try(self, task: Task, deadline: Deadline) -> tuple[LocalChannel, int]:
        host, port = self._cluster.address(task)
        name = self._cluster.name_of(task)
        connection = connect(host or "localhost", port, deadline.left(_CONNECT_SECONDS))
        try:
            authenticate(connection, self._cluster.secret, True, deadline)
            send_object(connection, self._cluster.hello(self._name, task), deadline)
            answer = receive_object(connection, deadline)
            if answer["refused"]:
                raise FailedPreconditionError(answer["refused"])
            return LocalChannel(connection, name), int(answer["pid"])
        except BaseException as error:
            connection.close()
            if isinstance(error, NotAuthentic):
                raise FailedPreconditionError(f"{name} {error} ({self._name} tried to connect)") from None
            raise

    def _waited_text(self, tasks: Sequence[Task], deadline: Deadline) -> str:
        names = [f"{self._cluster.name_of(task)} ({self._failures.get(task)})" for task in tasks]
        return (
            f"{self._name} waited {deadline} for {listed(names)} of {self._cluster.job}. Start a ringlet.Server for "
            "every task once, with the same cluster, RINGLET_JOB_ID and RINGLET_SECRET, make its port reachable from "
            "the other hosts, or allow more time with RINGLET_TIMEOUT_SECONDS"
        )


def _close(links: Mapping[Task, tuple[LocalChannel, int]], is_stopped: threading.Event, pid: int) -> None:
    if pid == os.getpid():  # a forked child does not own the connections
        is_stopped.set()
        for channel, _ in [*links.values()]:
            channel.close()
