"""Transport of bytes between processes by MPI.

This is the only module that imports mpi4py, and it does so only in processes that an MPI launcher started.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import logging
import multiprocessing.util
import os
import socket
import struct
import sys
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ringlet.cluster.environment import Placement
from ringlet.errors import FailedPreconditionError, WorkerLostError

if TYPE_CHECKING:
    from ringlet.collectives.hosts.host_messages import MessageHub

_log = logging.getLogger(__name__)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# Setting of Open MPI by which it does not send large messages over TCP as "puts": if the receiver ends meanwhile, a put
# may wait forever for a lock that its own thread holds (5.0.11).
TCP_VARIABLE, TCP_FLAGS = "OMPI_MCA_btl_tcp_flags", "send,inplace"

_CONNECTION_CHECK_SECONDS = 0.5
END_TAG = 0  # tag of the last message of a process
_PAUSE_SECONDS = 0.001
# Delay of a process's exit after a failure, so that other processes can read its last notice: MPI drops it at the exit.
_LAST_NOTICE_SECONDS = 0.3
INSTALL = "pip install 'ringlet[mpi]'"


class PeerFailed(Exception):
    """A process of the job has failed, as reported by the MPI library."""


class Request(Protocol):
    """A send or receive in progress."""

    def test(self) -> int | None:
        """Return the number of bytes if the message is complete, else None; raise PeerFailed if it cannot complete."""


class PreparedRequest(Request, Protocol):
    """A send or receive that can be started repeatedly, on the same memory."""

    def start(self) -> None:
        """Start the operation; raise PeerFailed if MPI reports a failure."""

    def free(self) -> None:
        """Release the resources of MPI; the operation must not be in progress."""


class Transport(Protocol):
    """Messages between the processes of a job, which are numbered from 0."""

    rank: int
    size: int
    largest_tag: int
    num_groups: int  # number of groups that this process has created
    kept: dict[tuple[int, str], deque[tuple[int, Any]]]  # received messages that no call has consumed, by tag and group
    lock: threading.Lock
    hub: MessageHub | None  # for point-to-point messages

    def send(self, data: Bytes, to: int, tag: int) -> Request:
        """Start sending bytes, which must not change until the request is complete."""

    def receive(self, into: Bytes, source: int, tag: int) -> Request:
        """Start receiving a message, which may be shorter than `into`."""

    def prepare_send(self, data: Bytes, to: int, tag: int) -> PreparedRequest:
        """Prepare a send; raise PeerFailed if the process is known to have failed."""

    def prepare_receive(self, into: Bytes, source: int, tag: int) -> PreparedRequest:
        """Prepare a receive; raise PeerFailed if the process is known to have failed."""

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        """Return the source and the bytes of a message from any process, if one has arrived."""

    def failed(self) -> list[int]:
        """Return the processes known to have failed."""

    def give_up(self) -> None:
        """Record a failure: the process will end without the final synchronization of MPI."""

    def sockets(self) -> set[int]:
        """Return the descriptors of the sockets of this process."""

    def watch_connections(self, others: set[int]) -> None:
        """Make connections fail if the network fails, except those in `others`, which belong to the program."""


# An idle connection is probed every second and fails after five without an answer. The kernel answers for its
# processes, so a slow or stopped process does not count as lost. TCP_USER_TIMEOUT would take it for lost if more data
# wait for it than buffers can hold: `shut_down_dead` looks for data that the other system does not acknowledge. If the
# other process has not read for long, the kernel asks it more and more rarely, and a broken network is noticed later.
_LOSS_SECONDS = 5
_KEEP_ALIVE = (
    {socket.TCP_KEEPIDLE: 1, socket.TCP_KEEPINTVL: 1, socket.TCP_KEEPCNT: _LOSS_SECONDS - 1}
    if sys.platform == "linux"
    else {}
)
_TCP_INFO = struct.Struct("=8B13I")  # the beginning of struct tcp_info of Linux
_RETRANSMITS, _PROBES, _LAST_ACK_MILLISECONDS = 2, 3, 20  # in _TCP_INFO


class MpiTransport:
    """Messages over MPI."""

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        try:
            self._comm = mpi.COMM_WORLD.Dup()
        except mpi.Exception as error:
            raise WorkerLostError(
                f"a process of this MPI job ended while others initialized MPI ({error}). Start the job again.",
                reason="ended",
            ) from None
        self._comm.Set_errhandler(mpi.ERRORS_RETURN)
        self._byte = mpi.BYTE
        self.rank: int = self._comm.rank
        self.size: int = self._comm.size
        self.largest_tag: int = self._comm.Get_attr(mpi.TAG_UB)
        self.num_groups = 0
        self.kept: dict[tuple[int, str], deque[tuple[int, Any]]] = defaultdict(deque)
        self.lock = threading.Lock()
        self.hub: MessageHub | None = None
        self._has_failed = False
        self._watched: dict[int, int] = {}  # descriptors of MPI's connections, and their inodes
        self._checked = 0.0
        # Runs after the exit handlers of asynchronous calls and of groups.
        multiprocessing.util.Finalize(None, self._finalize, exitpriority=-2)

    def send(self, data: Bytes, to: int, tag: int) -> Request:
        """Start sending bytes."""
        return self._request(self._comm.Isend, data, to, tag)

    def receive(self, into: Bytes, source: int, tag: int) -> Request:
        """Start receiving bytes."""
        return self._request(self._comm.Irecv, into, source, tag)

    def prepare_send(self, data: Bytes, to: int, tag: int) -> PreparedRequest:
        """Prepare a send."""
        return self._request(self._comm.Send_init, data, to, tag)

    def prepare_receive(self, into: Bytes, source: int, tag: int) -> PreparedRequest:
        """Prepare a receive."""
        return self._request(self._comm.Recv_init, into, source, tag)

    def _request(self, create: Callable[..., Any], data: Bytes, peer: int, tag: int) -> _MpiRequest:
        try:
            return _MpiRequest(self._mpi, create([data, self._byte], peer, tag))
        except self._mpi.Exception as error:
            raise PeerFailed(str(error)) from None

    def poll(self, tag: int) -> tuple[int, bytes] | None:
        """Return a message from any process, if one has arrived."""
        status = self._mpi.Status()
        try:
            try:
                has_come = self._comm.Iprobe(self._mpi.ANY_SOURCE, tag, status)
            except self._mpi.Exception:  # raised until the program acknowledges a process failure
                self._comm.Ack_failed()
                has_come = self._comm.Iprobe(self._mpi.ANY_SOURCE, tag, status)
            if not has_come:
                return None
            data = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
            self._comm.Recv([data, self._mpi.BYTE], status.source, tag, status)
        except self._mpi.Exception:
            return None  # `failed` reports the failure
        return status.source, data.tobytes()

    def failed(self) -> list[int]:
        """Return the processes known to have failed; empty with MPI libraries that end the whole job instead."""
        if (now := time.monotonic()) - self._checked > _CONNECTION_CHECK_SECONDS:
            self._checked = now
            shut_down_dead(self._watched)
        try:
            group = self._comm.Get_failed()
            return list(group.Translate_ranks(range(group.size), self._comm.group)) if group.size else []
        except (self._mpi.Exception, NotImplementedError, AttributeError):
            return []

    def give_up(self) -> None:
        """Record a failure."""
        self._has_failed = True

    def sockets(self) -> set[int]:
        """Return the descriptors of the sockets of this process."""
        return sockets()

    def watch_connections(self, others: set[int]) -> None:
        """Make the connections of MPI fail if the other system answers nothing for five seconds."""
        self._watched.update(watch_connections(others))

    def _finalize(self) -> None:
        """Wait until all processes are about to end, then finalize MPI; after a failure, return without finalizing.

        With fault tolerance, MPI is never finalized: processes are allowed to exit without ``MPI_Finalize``, which
        does not return if a thread detects failures (Open MPI 5.0.11).
        """
        is_tolerant = os.environ.get("OMPI_MCA_mpi_ft_enable") == "1"  # noqa: SIM112 - Open MPI's name
        if self._all_have_ended() and not is_tolerant:
            if not self._mpi.Is_finalized():
                self._mpi.Finalize()
        else:
            if self._has_failed:
                time.sleep(_LAST_NOTICE_SECONDS)
            _skip_exit_handlers()

    def _all_have_ended(self) -> bool:
        """Wait until all processes have called this method; return False after a failure."""
        is_first, count = self.rank == 0, 0
        expected = self.size - 1 if is_first else 1
        word = np.zeros(1, np.uint8)
        with contextlib.suppress(PeerFailed):
            if not is_first and not self._has_failed:
                self.send(word, 0, END_TAG)
            while count < expected:
                if self._has_failed or self.failed():
                    return False
                if self.poll(END_TAG) is None:
                    time.sleep(_PAUSE_SECONDS)
                else:
                    count += 1
            sent = [self.send(word, rank, END_TAG) for rank in range(1, self.size) if is_first]
            return all(request.test() is not None for request in sent)
        return False


def sockets() -> set[int]:
    """Return the descriptors of the sockets of this process."""
    found = set()
    for path in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            if str(path.readlink()).startswith("socket:"):
                found.add(int(path.name))
    return found


def watch_connections(others: set[int]) -> dict[int, int]:
    """Enable keepalive for the TCP connections of this process except `others`, so that dead connections fail.

    Return the descriptors of these connections, and their inodes.
    """
    watched = {}
    for descriptor in sockets() - others:
        with contextlib.suppress(OSError), _duplicate(descriptor) as connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.getpeername():
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                for option, value in _KEEP_ALIVE.items():
                    connection.setsockopt(socket.IPPROTO_TCP, option, value)
                watched[descriptor] = os.fstat(descriptor).st_ino
    return watched


def is_dead(info: bytes) -> bool:
    """Return whether the other system, by a connection's TCP_INFO, leaves data unacknowledged for five seconds."""
    fields: tuple[int, ...] = _TCP_INFO.unpack(info)
    return fields[_RETRANSMITS] + fields[_PROBES] > 1 and fields[_LAST_ACK_MILLISECONDS] > 1000 * _LOSS_SECONDS


def _duplicate(descriptor: int) -> socket.socket:
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise


def shut_down_dead(watched: dict[int, int]) -> None:
    """Shut down connections with data that the other system does not acknowledge, so that MPI reports a failure.

    `watched` is the result of :func:`watch_connections`; closed connections are removed from it.
    """
    if sys.platform != "linux":
        return
    for descriptor, inode in list(watched.items()):
        try:
            with _duplicate(descriptor) as connection:
                if os.fstat(connection.fileno()).st_ino != inode:
                    watched.pop(descriptor, None)  # the program uses the descriptor again
                elif is_dead(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)):
                    connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            watched.pop(descriptor, None)


def _skip_exit_handlers() -> None:
    """Skip the exit handlers of C libraries after Python's finalization: they would race with MPI's threads."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc calls the handlers in reverse order of registration, with the exit status
        libc.on_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        libc.on_exit(ctypes.cast(libc._exit, ctypes.c_void_p), None)
        libc.fflush(None)


class _MpiRequest:
    __slots__ = ("_count", "_mpi", "_request", "_status")

    def __init__(self, mpi: Any, request: Any) -> None:
        self._mpi, self._request, self._status = mpi, request, mpi.Status()
        self._count: int | None = None

    def test(self) -> int | None:
        if self._count is None:
            try:
                if not self._request.Test(self._status):
                    return None
            except self._mpi.Exception as error:
                raise PeerFailed(str(error)) from None
            self._count = self._status.Get_count(self._mpi.BYTE)
        return self._count

    def start(self) -> None:
        self._count = None
        try:
            self._request.Start()
        except self._mpi.Exception as error:
            raise PeerFailed(str(error)) from None

    def free(self) -> None:
        self._request.Free()


@functools.cache
def mpi_transport(place: Placement) -> MpiTransport:
    """Return the MPI transport of this process; `place` has the number of processes that the launcher has started."""
    of_program = sockets()
    is_late = TCP_VARIABLE not in os.environ and "mpi4py.MPI" in sys.modules
    os.environ.setdefault(TCP_VARIABLE, TCP_FLAGS)
    try:
        import mpi4py

        mpi4py.rc.finalize = False
        from mpi4py import MPI
    except (ImportError, RuntimeError, OSError) as error:
        raise FailedPreconditionError(
            f"this process is one of {place.size} on several hosts ({place.source}), and several hosts require MPI: "
            f"install it on every host with {INSTALL}, and start the job with the mpiexec of that environment "
            f"({error})."
        ) from None
    if is_late and MPI.Get_library_version().startswith("Open MPI"):
        _log.warning(
            "MPI was initialized before the first strategy or group, so that Open MPI may wait forever after the loss "
            "of a process: create it before `from mpi4py import MPI`, or start the job with %s=%s in the environment",
            TCP_VARIABLE,
            TCP_FLAGS,
        )
    if MPI.COMM_WORLD.size != place.size:
        raise FailedPreconditionError(
            f"the launcher started {place.size} processes ({place.source}), but the library of mpi4py, "
            f"{MPI.Get_library_version().split(',')[0]}, connects only {MPI.COMM_WORLD.size}: start the job with the "
            "mpiexec of the same MPI, or set MPI4PY_LIBMPI to the library of the launcher."
        )
    transport = MpiTransport(MPI)
    transport.watch_connections(of_program)
    return transport
