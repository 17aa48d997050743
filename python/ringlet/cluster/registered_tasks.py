"""The processes of a cluster that were started one by one, and came to their coordinator."""

from __future__ import annotations

import logging
import math
import os
import threading
import weakref

from ringlet.cluster.cluster_spec import ClusterSpec
from ringlet.cluster.registration import Arrival, Doorway
from ringlet.cluster.server_job_key import ServersJob
from ringlet.errors import DeadlineExceededError, FailedPreconditionError
from ringlet.ipc import Channel
from ringlet.ipc.deadline import Deadline
from ringlet.rendezvous.handshake import held_by
from ringlet.rendezvous.rendezvous_errors import how_it_left

__all__ = ["JoinedTasks"]

_log = logging.getLogger(__name__)

# After so long a message tells whom the coordinator waits for.
_SLOW_SECONDS = 30.0


class JoinedTasks:
    """Workers and parameter servers that have come by themselves; it has the methods of `Tasks`.

    Parameters
    ----------
    spec : ClusterSpec
        What each server was told, too.
    job_id : str
        Keeps jobs apart that have the same cluster.
    timeout_seconds : float
        How long to wait for all of them, and in `restart` for one; may be infinite.

    Raises
    ------
    DeadlineExceededError
        If some did not come; names them.
    FailedPreconditionError
        If the cluster has another coordinator.
    """

    def __init__(self, spec: ClusterSpec, job_id: str, timeout_seconds: float) -> None:
        self._job = ServersJob.of(spec, job_id)
        self._timeout_seconds = timeout_seconds
        self._seats = _Seats(self._job)
        doorway = Doorway(self._job, self._seats.objection, self._seats.welcome)
        self._close = weakref.finalize(self, _close, self._seats, doorway, os.getpid())
        try:
            self._seats.wait_for({*range(1, self._job.num_ranks)}, Deadline.after(timeout_seconds))
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
        """Wait until somebody starts the process of a task again, and give the channel to it.

        Raises
        ------
        DeadlineExceededError
            If nobody has.
        FailedPreconditionError
            If the cluster is stopped.
        """
        rank = self._job.rank_of((task_type, task_id))
        self._seats[rank].channel.close()
        self._seats.wait_for({rank}, Deadline.after(self._timeout_seconds))
        return self._seats[rank].channel

    def ending_of(self, task_type: str, task_id: int) -> str:
        """Say what happened to the process of a task whose channel has closed."""
        return how_it_left(self._seats[self._job.rank_of((task_type, task_id))].process)

    def pid_of(self, task_type: str, task_id: int) -> int:
        """Give the number of the process of a task."""
        return self._seats[self._job.rank_of((task_type, task_id))].identity.pid

    def stop(self, timeout_seconds: float = 2.0) -> None:
        """Close all channels, so that the servers end by themselves."""
        self._close()

    def _channels(self, job: str) -> list[Channel]:
        return [self._seats[self._job.rank_of(task)].channel for task in self._job.tasks if task[0] == job]


def _close(seats: _Seats, doorway: Doorway, pid: int) -> None:
    if pid != os.getpid():  # a forked child has none of it, and might wait for a lock that another thread held
        return
    doorway.close()  # first: who comes now shall wait for the next coordinator
    seats.close()


class _Seats:
    """Who has come as which rank. Any thread may call it."""

    def __init__(self, job: ServersJob) -> None:
        self._job = job
        self._changed = threading.Condition()  # guards what follows
        self._seated: dict[int, Arrival] = {}
        self._arrived: dict[int, Arrival] = {}  # and not seated yet
        self._is_closed = False

    def __getitem__(self, rank: int) -> Arrival:
        return self._seated[rank]

    def objection(self, rank: int) -> str | None:
        """Say who is there as a rank already, if somebody is."""
        with self._changed:
            for arrivals in (self._arrived, self._seated):
                if rank in arrivals and arrivals[rank].is_there():
                    return held_by([rank], arrivals[rank].identity, self._job)
        return None

    def welcome(self, rank: int, arrival: Arrival) -> None:
        """Heed that somebody has come."""
        with self._changed:
            if self._is_closed:
                arrival.channel.close()
                return
            if rank in self._arrived:
                self._arrived[rank].channel.close()
            self._arrived[rank] = arrival
            self._changed.notify_all()

    def wait_for(self, ranks: set[int], deadline: Deadline) -> None:
        """Wait until all of these have come, and seat them."""
        silence = Deadline.after(_SLOW_SECONDS)
        with self._changed:
            while not self._is_closed and ranks - self._arrived.keys():
                if deadline.is_over():
                    raise DeadlineExceededError(self._waited_text(ranks, deadline))
                if silence.is_over():
                    _log.warning("%s. It goes on waiting (limit: %s)", self._waited_text(ranks, silence), deadline)
                    silence = Deadline.after(math.inf)
                self._changed.wait(min(deadline.left(60.0), silence.left(60.0)))
            if self._is_closed:
                raise FailedPreconditionError("the cluster was stopped: make its strategy again")
            for rank in ranks:
                self._seated[rank] = self._arrived.pop(rank)

    def close(self) -> None:
        """Close all channels; who waits is told."""
        with self._changed:
            self._is_closed = True
            for arrival in (*self._seated.values(), *self._arrived.values()):
                arrival.channel.close()
            self._changed.notify_all()

    def _waited_text(self, ranks: set[int], deadline: Deadline) -> str:
        came = ranks & self._arrived.keys()
        here = f" ({self._job.who(came)} came)" if came else ""
        return (
            f"the coordinator waited {deadline} for {self._job.who(ranks - came)} of {self._job}{here}. "
            f"{self._job.start_alike}, on this machine and in this network namespace, or allow more time with "
            "RINGLET_TIMEOUT_SECONDS"
        )
