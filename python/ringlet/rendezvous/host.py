"""Rendezvous host: used by the process of rank 0; waits for every rank and connects each pair of processes."""

from __future__ import annotations

import contextlib
import os
import socket

from ringlet import _core
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.unix_sockets import open_pidfd
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.handshake import Handshake, held_by
from ringlet.rendezvous.job_key import MOST_PROCESSES, Job
from ringlet.rendezvous.late_arrivals import LateArrivals
from ringlet.rendezvous.listener import ConnectedProcess, Listener, refuse
from ringlet.rendezvous.messages import Message, Unreadable, receive, send
from ringlet.rendezvous.peer_sockets import PeerSockets, WaitingProcess
from ringlet.rendezvous.rendezvous_errors import missing_text

# Maximum time for which a host refuses processes that connect after the rendezvous has failed.
_REFUSAL_SECONDS = 1.0


class RendezvousHost:
    """The host of one rendezvous, which admits processes; owns the listener."""

    def __init__(self, job: Job, ours: Handshake, listener: socket.socket) -> None:
        self._job = job
        self._ours = ours
        self._listener = Listener(listener, ours.version)
        self._clients: list[ConnectedProcess] = []  # connected processes that are neither admitted nor refused
        self._waiting: list[WaitingProcess] = []
        self._left: set[int] = set()  # ranks that connected and then disconnected
        self._seen = {*ours.ranks}  # ranks that have connected, including the refused ones
        self._most_ranks = job.num_ranks  # the largest number of ranks of any process
        self._notes: list[str] = []  # refusals and departures, for the message of a time-out

    def wait_for_all(self, deadline: Deadline) -> ConnectedGroup:
        """Wait for all ranks and connect them."""
        try:
            while self._missing():
                if deadline.is_over():
                    raise DeadlineExceededError(
                        missing_text(self._job, self._ours, deadline, self.arrived(), self._notes)
                    )
                self._clients, ready = self._listener.poll(deadline.left(1.0))
                while self._clients:
                    self._admit(self._clients.pop(0))
                for waiting in [waiting for waiting in self._waiting if waiting.connection in ready]:
                    self._receive_departure(waiting)
            self._waiting.sort(key=lambda waiting: waiting.handshake.ranks)
            connected = PeerSockets(self._job, self._ours, self._waiting, deadline).make()
            self._refuse_late_arrivals(connected)
        except WorkerLostError as error:
            self._give_up({"kind": "lost", "reason": error.reason, "rank": error.rank, "pid": error.pid})
            raise
        except DeadlineExceededError as error:
            self._give_up({"kind": "late", "message": str(error)})
            raise
        except FailedPreconditionError as error:
            self._refuse_all(str(error))
            raise
        except OSError as error:
            reason = f"failed: {error}"
            self._give_up({"kind": "lost", "reason": reason, "rank": 0, "pid": self._ours.identity.pid})
            raise
        except BaseException as error:
            self._give_up({"kind": "leaving", "why": f"was interrupted by {type(error).__name__}"})
            raise
        return connected

    # --- arrivals and departures --------------------------------------------------------------------------------------

    def _present(self) -> set[int]:
        return {*self._ours.ranks}.union(*(waiting.handshake.ranks for waiting in self._waiting))

    def _missing(self) -> set[int]:
        return {*range(self._job.num_ranks)} - self._present()

    def arrived(self) -> set[int]:
        """Return the ranks that the message about a time-out does not list as missing.

        Ranks that have left count as arrived, unless no other rank is missing.
        """
        came = self._present() | self._left
        return came if len(came) < self._job.num_ranks else self._present()

    def _admit(self, client: ConnectedProcess) -> None:
        handshake = client.handshake
        self._seen |= {*handshake.ranks}
        self._most_ranks = max(self._most_ranks, handshake.num_ranks)
        reason = self._ours.rejection_of(handshake, client.pid, self._job) or self._already_here(handshake)
        if reason is not None:
            self._notes.append(f"{reason.split(': ')[0]}, and was refused")
        elif (reason := self._held(handshake)) is not None:
            self._notes.append(
                f"{handshake.identity} also started as {self._job.names_of(handshake.ranks)}, and was refused"
            )
        if reason is not None:
            refuse(client.connection, reason)
            # A process whose rank is already taken probably belongs to another job.
            if handshake.num_ranks not in (0, self._job.num_ranks) and self._held(handshake) is None:
                raise FailedPreconditionError(reason)
            return
        process = _core.Pidfd(open_pidfd(client.connection), handshake.identity.pid)
        self._waiting.append(WaitingProcess(handshake, client.connection, process))
        self._listener.watch(client.connection)
        if 1 + len(self._waiting) + bool(self._missing()) > MOST_PROCESSES:
            raise FailedPreconditionError(
                f"{self._job} has more than {MOST_PROCESSES} processes: assign more ranks to each process, with ranks=."
            )
        self._send_present()

    def _already_here(self, handshake: Handshake) -> str | None:
        for holder in (self._ours, *(waiting.handshake for waiting in self._waiting)):
            if holder.identity.is_same_process(handshake.identity):
                return (
                    f"{self._job.names_of(handshake.ranks)} ({handshake.identity}) is in the same process as "
                    f"{self._job.names_of(holder.ranks)}: call once in each process, with all of its ranks in ranks=."
                )
        return None

    def _held(self, handshake: Handshake) -> str | None:
        for holder in (self._ours, *(waiting.handshake for waiting in self._waiting)):
            if taken := sorted({*holder.ranks} & {*handshake.ranks}):
                return held_by(taken, holder.identity, self._job)
        return None

    def _receive_departure(self, waiting: WaitingProcess) -> None:
        """Receive "leaving", the only message that a waiting process sends; the process may connect again."""
        try:
            received = receive(waiting.connection)
        except (OSError, Unreadable):
            received = None
        if received is None:
            raise waiting.lost(self._job)
        for descriptor in received[1]:
            os.close(descriptor)
        name = f"{self._job.names_of(waiting.handshake.ranks)} ({waiting.handshake.identity})"
        self._notes.append(f"{name} connected, and {received[0].get('why')}")
        self._left |= {*waiting.handshake.ranks}
        self._listener.unwatch(waiting.connection)
        waiting.connection.close()
        self._waiting.remove(waiting)
        self._send_present()

    def _send_present(self) -> None:
        message = {"kind": "waiting", "came": sorted(self.arrived())}
        for waiting in self._waiting:
            with contextlib.suppress(OSError):  # `poll` reports a process that has exited
                send(waiting.connection, message)

    # --- completion and failure ---------------------------------------------------------------------------------------

    def _refuse_late_arrivals(self, connected: ConnectedGroup) -> None:
        for waiting in self._waiting:
            self._listener.unwatch(waiting.connection)
            waiting.connection.close()
        try:
            members = [(peer.ranks, peer.identity) for peer in connected.peers]
            connected.late_arrivals = LateArrivals(self._listener, self._ours, members, self._job)
        except BaseException:
            connected.close()
            raise

    def _refuse_all(self, reason: str) -> None:
        """Refuse the waiting processes, and for a short time processes that connect later and would find no host."""
        for waiting in self._waiting:
            self._listener.unwatch(waiting.connection)
            refuse(waiting.connection, reason)
        self._waiting.clear()
        deadline = Deadline.after(_REFUSAL_SECONDS)
        with contextlib.closing(self._listener), contextlib.suppress(OSError):
            while True:
                for client in self._clients:
                    self._seen |= {*client.handshake.ranks}
                    refuse(client.connection, reason)
                if len(self._seen) >= self._most_ranks or deadline.is_over():
                    return
                self._clients, _ = self._listener.poll(deadline.left(1.0))

    def _give_up(self, message: Message) -> None:
        self._listener.close()
        waiting, clients = self._waiting, self._clients
        for connection in [*(each.connection for each in waiting), *(each.connection for each in clients)]:
            with contextlib.suppress(OSError):
                send(connection, message)
            connection.close()
