"""Where servers come to their coordinator: who they are is checked before they get a channel.

A server connects to a name made of the cluster, the job and the user (:mod:`ringlet.rendezvous.job_key`). The system
tells whose process it is, and its hello which version and which task: JSON, at most 64 KiB, within a second. Only
then does it get a channel, over which values travel; nothing of strangers is ever unpickled.

    coordinator                         server
    listens   <------- hello ---------  connects, again and again until somebody listens
    checks it ------- welcome ------->  has one end of a new connection
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ringlet import _core
from ringlet.cluster.server_job_key import ServersJob, Task
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import LocalChannel
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import close_in_children, credentials, open_pidfd, pair
from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.listener import Reception, Visitor, listen, refuse
from ringlet.rendezvous.messages import Message, Unreadable, new_socket, receive, send
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Arrival", "Doorway", "knock"]

_log = logging.getLogger(__name__)

# After so long a message tells that a server waits for its coordinator.
_SLOW_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 5.0  # of a coordinator that is there
_END_SECONDS = 1.0  # of a thread that has nothing to do but to end


@dataclass
class Arrival:
    """A process that has come as a task.

    Attributes
    ----------
    channel : LocalChannel
        Leads to it.
    identity : ProcessIdentity
        Which process it is.
    process : _core.Pidfd
        Handle of it.
    """

    channel: LocalChannel
    identity: ProcessIdentity
    process: _core.Pidfd

    def is_there(self) -> bool:
        """Whether it may still answer, as far as is known."""
        return not self.channel.is_closed and not self.identity.has_ended()


class Doorway:
    """Lets the servers of a cluster in, with a thread that sleeps until somebody comes.

    Parameters
    ----------
    job : ServersJob
    objection : callable
        Takes a rank; says why nobody can come as that now, or gives None.
    welcome : callable
        Takes a rank and an `Arrival`. Called by that thread, as `objection` is.

    Raises
    ------
    FailedPreconditionError
        If another process waits for the servers of this cluster.
    """

    def __init__(
        self, job: ServersJob, objection: Callable[[int], str | None], welcome: Callable[[int, Arrival], None]
    ) -> None:
        self._job = job
        self._hello = Hello.of_this_process(job, [0])
        self._objection = objection
        self._welcome = welcome
        listener = listen(job.address())
        if listener is None:
            raise FailedPreconditionError(
                f"{_holder(job)} is the coordinator of this cluster already: end it, or close its strategy, before "
                f"another one is made; if these are two jobs, {job.KEEP_APART}"
            )
        self._reception = Reception(listener, self._hello.version)
        self._bell, self._ear = pair(socket.SOCK_STREAM)
        self._reception.watch(self._ear)
        self._thread = threading.Thread(target=self._run, name="ringlet-doorway", daemon=True)
        try:
            self._thread.start()
        except BaseException:  # an interrupt: the thread has started, or is about to
            self._bell.close()
            raise

    def close(self) -> None:
        """Let nobody in any more; once is enough."""
        self._bell.close()
        if threading.get_ident() != self._thread.ident:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        with self._ear, contextlib.closing(self._reception):
            while True:
                try:
                    visitors, ready = self._reception.poll(3600.0)
                    for visitor in visitors:
                        self._meet(visitor)
                except OSError:  # no descriptor left: perhaps later
                    time.sleep(0.1)
                    continue
                if ready:
                    return

    def _meet(self, visitor: Visitor) -> None:
        with visitor.connection:
            reason = self._reason_to_refuse(visitor)
            if reason is not None:
                refuse(visitor.connection, reason)
                return
            mine, other = pair(socket.SOCK_STREAM)
            channel = LocalChannel(mine, self._job.who(visitor.hello.ranks))
            try:
                with other:
                    send(visitor.connection, {"kind": "welcome"}, [other.fileno()])
                process = _core.Pidfd(open_pidfd(visitor.connection), visitor.pid)
            except OSError:  # it has left
                channel.close()
                return
        self._welcome(visitor.hello.ranks[0], Arrival(channel, visitor.hello.identity, process))

    def _reason_to_refuse(self, visitor: Visitor) -> str | None:
        hello = visitor.hello
        reason = self._hello.objection_to(hello, visitor.pid, self._job)
        if reason is None and (len(hello.ranks) != 1 or hello.ranks == (0,)):
            reason = f"{self._job.who(hello.ranks)} cannot come to the coordinator."
        return reason or self._objection(hello.ranks[0])


def knock(job: ServersJob, task: Task, deadline: Deadline) -> LocalChannel:
    """Wait for the coordinator of a cluster, and come to it as one of its tasks.

    Parameters
    ----------
    job : ServersJob
        The same as the coordinator's.
    task : Task
    deadline : Deadline

    Returns
    -------
    LocalChannel

    Raises
    ------
    FailedPreconditionError
        If the coordinator sends this task away: another process has it, or runs another version.
    PermissionError
        If another user has taken the name.
    DeadlineExceededError
        If no coordinator came.
    """
    hello = Hello.of_this_process(job, [job.rank_of(task)])
    pause, silence = _FIRST_PAUSE_SECONDS, Deadline.after(_SLOW_SECONDS)
    while True:
        channel = _try(job, hello, deadline.left(_ANSWER_SECONDS))
        if channel is not None:
            return channel
        if deadline.is_over():
            raise DeadlineExceededError(_waited_text(job, hello, deadline))
        if silence.is_over():
            _log.warning("%s. It goes on waiting (limit: %s)", _waited_text(job, hello, silence), deadline)
            silence = Deadline.after(math.inf)
        time.sleep(deadline.left(pause))
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _waited_text(job: ServersJob, hello: Hello, deadline: Deadline) -> str:
    return (
        f"{job.who(hello.ranks)} ({hello.identity}) waited {deadline} for the coordinator of {job}, which did not "
        "come. Start it with the same cluster, as the same user, on this machine and in this network namespace, or "
        "allow more with timeout_seconds= or RINGLET_TIMEOUT_SECONDS"
    )


def _holder(job: ServersJob) -> str:
    """Name who listens under the name of a job."""
    with contextlib.suppress(OSError), new_socket() as connection:
        connection.connect(job.address())
        pid = credentials(connection)[0]
        return "this process" if pid == os.getpid() else f"pid {pid}"
    return "another process"


def _try(job: ServersJob, hello: Hello, seconds: float) -> LocalChannel | None:
    with new_socket() as connection:
        connection.settimeout(max(seconds, 0.001))  # 0 would mean another thing
        try:
            connection.connect(job.address())
        except OSError:  # nobody listens, or too many wait
            return None
        pid, uid = credentials(connection)
        if uid != os.geteuid():
            raise PermissionError(
                errno.EPERM,
                f"the name of the coordinator of {job} is held by pid {pid} of user {uid}, not of user {os.geteuid()}, "
                f"who runs {job.who(hello.ranks)}: run all as one user; if that process is none of yours, choose "
                "another RINGLET_JOB_ID",
            )
        message, descriptors = _answer(connection, hello)
    if message.get("kind") == "refused":
        raise FailedPreconditionError(str(message.get("reason")))
    if message.get("kind") != "welcome" or len(descriptors) != 1:
        for descriptor in descriptors:
            os.close(descriptor)
        return None
    return LocalChannel(close_in_children(socket.socket(fileno=descriptors[0])), job.who([0]))


def _answer(connection: socket.socket, hello: Hello) -> tuple[Message, list[int]]:
    """Say hello; give what is answered, or an empty message if that is nothing."""
    with contextlib.suppress(OSError):  # why is told when we read
        send(connection, hello.as_message())
    try:
        return receive(connection) or ({}, [])
    except (OSError, Unreadable):  # it has ended meanwhile, or is stopped
        return {}, []
