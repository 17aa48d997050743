"""Messages between the leaders of a group's hosts.

A stamp identifies each message but those of kind DATA, a time-out limits each wait, and notices report failures.
"""

from __future__ import annotations

import logging
import math
import os
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ringlet.collectives.hosts.mpi_transport import PeerFailed, PreparedRequest, Request, Transport
from ringlet.errors import CollectiveAborted, DeadlineExceededError
from ringlet.observe.stall_reports import stall_seconds

_log = logging.getLogger(__name__)

Bytes = np.ndarray[Any, np.dtype[np.uint8]]

# Prefix of error texts whose ranks are numbered in the whole group. Texts without it come from the core, which numbers
# ranks within the host.
WHOLE = "\x1e"

# Kinds of messages: each has its own tag, so that messages of one kind arrive in order.
HEAD, PARTIAL, RESULT, NOTICE, DATA, NUM_KINDS = 1, 2, 3, 4, 6, 8

# Magic number, epoch, number of the call, sending host, kind, position in the call, bytes after the stamp, zeros.
_STAMP = struct.Struct("<8sQQHHIQ24x")
_MAGIC = b"ringlet1"
_STAMP_BYTES = _STAMP.size  # a cache line, so that the payload is aligned to cache lines
_NO_STAMP = bytes(_STAMP_BYTES)

# A host reports its own missing ranks at the time-out; the other hosts wait this much longer for the report.
EXTRA_SECONDS = 1.0
# Time to wait, after MPI has reported a failure, for the notice that contains the cause.
_CAUSE_SECONDS = 0.3
# Maximum time to wait until a notice has been sent.
_NOTICE_SECONDS = 0.2

_FIRST_CALL = 1
_SPINS = 100
_YIELD_SECONDS = 0.05  # a waiting rank yields before it sleeps, because MPI makes progress only inside its calls
_LONG_PAUSE_SECONDS = 0.0002
_CHECK_SECONDS = 0.01

# Memory that MPI may still access, because the group failed while messages were in flight.
_abandoned: list[Any] = []


class Frame:
    """Memory for one message: its stamp and its payload; `bytes` is a view of both."""

    __slots__ = ("bytes", "memory", "payload")

    def __init__(self, capacity: int) -> None:
        whole = np.empty(capacity + 2 * _STAMP_BYTES, np.uint8)
        begin = -whole.ctypes.data % _STAMP_BYTES
        self.memory: Bytes = whole[begin : begin + _STAMP_BYTES + capacity]
        self.payload: Bytes = self.memory[_STAMP_BYTES:]
        self.bytes = self.memory.data

    def erase_stamp(self) -> None:
        """Erase the stamp, so that the stamp of an earlier message is not mistaken for the stamp of the next."""
        self.bytes[:_STAMP_BYTES] = _NO_STAMP

    def write(self, content: bytes) -> None:
        """Write `content` at the beginning of the payload."""
        self.bytes[_STAMP_BYTES : _STAMP_BYTES + len(content)] = content


@dataclass(eq=False, slots=True)
class Incoming:
    """A message that is expected from a host."""

    host: int
    kind: int
    index: int
    frame: Frame
    request: Request
    size: int | None = None  # size of the payload, if known in advance


class Exchange:
    """Memory for a repeated exchange: one message to all other hosts, and one from each of them.

    A message is `begin` followed by an array; `parts` are the arrays of all hosts, in the order of the hosts.
    """

    def __init__(
        self, link: HostLink, begin: bytes, shape: tuple[int, ...], dtype: np.dtype[Any], capacity: int
    ) -> None:
        self.begin = begin
        self.size = len(begin) + math.prod(shape) * dtype.itemsize
        frames = [Frame(capacity) for _ in range(link.num_hosts)]
        self.parts = [frame.payload[len(begin) : self.size].view(dtype).reshape(shape) for frame in frames]
        self.own = frames[link.host]
        self.own.write(begin)
        expected = {host: (frames[host], link.prepare_receive(host, HEAD, frames[host])) for host in link.others}
        self.incoming = [Incoming(host, HEAD, 0, *each) for host, each in expected.items()]
        self.requests = [
            *((request, host) for host, (_, request) in expected.items()),
            *((link.prepare_send(host, HEAD, self.own, self.size), host) for host in link.others),
        ]


class HostLink:
    """The link of a leader to the leaders of the other hosts.

    `leaders` has the number of each host's leader among the processes of the transport; `tag` distinguishes groups.
    `check` is called periodically during a wait, and raises if the group has failed. `lost` returns the error for
    failed processes. `on_notice` is called with each notice from another host. `is_leader` must be False for a rank
    other than the leader in the leader's process.
    """

    def __init__(
        self,
        transport: Transport,
        leaders: Sequence[int],
        host: int,
        *,
        epoch: int,
        tag: int,
        seconds: float,
        check: Callable[[], None],
        lost: Callable[[Sequence[int]], Exception],
        on_notice: Callable[[int, bytes], None],
        names: Sequence[str],
        is_leader: bool = True,
    ) -> None:
        self.transport = transport
        self._leaders = leaders
        self.host = host
        self.num_hosts = len(leaders)
        self.others = [other for other in range(len(leaders)) if other != host]
        self._epoch = epoch
        self._tag = tag * NUM_KINDS
        self.seconds = seconds
        self._stall_seconds = stall_seconds()
        self._check = check
        self._lost = lost
        self._on_notice = on_notice
        self._names = names
        self._frames: list[Frame] = []  # all frames, because MPI may access each of them after a failure
        self._idle: dict[int, list[Frame]] = {}
        self._sent: list[tuple[list[Request], Frame | Bytes]] = []
        self._exchanges: list[Exchange] = []
        # Number of messages sent and received in the call in progress, by host and kind.
        self._numbers_to: dict[tuple[int, int], int] = {}
        self._numbers_from: dict[tuple[int, int], int] = {}
        self._of_program: set[int] = set()  # sockets that the program had open when the first call began
        self.number = 0  # number of the call in progress
        self._is_open = is_leader and transport.rank == leaders[host]

    # --- messages -----------------------------------------------------------------------------------------------------

    def frame(self, capacity: int) -> Frame:
        """Return memory for a message with a payload of at most `capacity` bytes."""
        idle = self._idle.get(capacity)
        if not idle and self._sent:
            self._release_sent()
            idle = self._idle.get(capacity)
        if idle:
            return idle.pop()
        self._frames.append(Frame(capacity))
        return self._frames[-1]

    def release(self, frame: Frame) -> None:
        """Make a frame available for another message."""
        self._idle.setdefault(len(frame.payload), []).append(frame)

    def begin(self, number: int) -> None:
        """Begin a call; its messages are numbered from 0 for each host and kind."""
        if number == _FIRST_CALL:  # the first call opens MPI's connections between the leaders
            self._of_program = self.transport.sockets()
        self.number = number
        self._numbers_to.clear()
        self._numbers_from.clear()

    def send(self, hosts: Sequence[int], kind: int, frame: Frame, size: int) -> None:
        """Start sending a frame to hosts; the frame is released once it has been sent."""
        index = max([_counted(self._numbers_to, (host, kind)) for host in hosts], default=0)
        self._stamp(frame, kind, index, size)
        data, tag = frame.memory[: _STAMP_BYTES + size], self._tag + kind
        try:
            requests = [self.transport.send(data, self._leaders[host], tag) for host in hosts]
        except PeerFailed:
            self._raise_lost()
        self._sent.append((requests, frame))

    def send_data(self, hosts: Sequence[int], data: Bytes) -> list[tuple[Request, int]]:
        """Start sending bytes where they are, without a stamp; return the requests to wait for before they change.

        The sender must confirm the bytes with a stamped message after the requests are complete.
        """
        requests: list[Request] = []
        self._sent.append((requests, data))  # before MPI knows the memory: an interrupt must not free it
        try:
            for host in hosts:
                requests.append(self.transport.send(data, self._leaders[host], self._tag + DATA))
        except PeerFailed:
            self._raise_lost()
        return list(zip(requests, hosts, strict=True))

    def receive(self, host: int, kind: int, capacity: int, size: int | None = None) -> Incoming:
        """Start receiving a message from a host; one of kind DATA has no stamp."""
        index = _counted(self._numbers_from, (host, kind))
        frame = self.frame(capacity)
        frame.erase_stamp()
        memory = frame.payload if kind == DATA else frame.memory
        try:
            request = self.transport.receive(memory, self._leaders[host], self._tag + kind)
        except PeerFailed:
            self._raise_lost()
        return Incoming(host, kind, index, frame, request, size)

    def prepare_send(self, host: int, kind: int, frame: Frame, size: int) -> PreparedRequest:
        """Prepare to send a frame to a host many times."""
        return self.transport.prepare_send(frame.memory[: _STAMP_BYTES + size], self._leaders[host], self._tag + kind)

    def prepare_receive(self, host: int, kind: int, frame: Frame) -> PreparedRequest:
        """Prepare to receive a message from a host many times."""
        return self.transport.prepare_receive(frame.memory, self._leaders[host], self._tag + kind)

    def _stamp(self, frame: Frame, kind: int, index: int, size: int) -> None:
        _STAMP.pack_into(frame.bytes, 0, _MAGIC, self._epoch, self.number, self.host, kind, index, size)

    def wait(
        self, messages: Sequence[Incoming], sends: Sequence[tuple[Request, int]] = ()
    ) -> list[tuple[Incoming, Bytes]]:
        """Wait for messages and sends, check the messages, and return them with payloads, valid until `release`."""
        self._wait_for([*((message.request, message.host) for message in messages), *sends])
        if sends:  # their memory need not be kept; MPI is not asked, which would slow down the pieces in flight
            complete = {request for request, _ in sends}
            self._sent = [entry for entry in self._sent if complete.isdisjoint(entry[0])]
        return [(message, self._payload(message)) for message in messages]

    def exchange_of(self, begin: bytes, shape: tuple[int, ...], dtype: np.dtype[Any], capacity: int) -> Exchange:
        """Return the memory for `exchange`; the messages of other hosts have at most `capacity` bytes."""
        self._exchanges.append(Exchange(self, begin, shape, dtype, capacity))
        return self._exchanges[-1]

    def exchange(self, exchange: Exchange) -> list[Incoming]:
        """Send this host's part of an exchange as the first message of a call, and receive the other parts.

        Return the messages that begin differently, because their hosts made a different call.
        """
        for message in exchange.incoming:
            message.frame.erase_stamp()
        self._stamp(exchange.own, HEAD, 0, exchange.size)
        try:
            for request, _ in exchange.requests:
                request.start()
        except PeerFailed:
            self._raise_lost()
        self._wait_for(exchange.requests)
        different, begin, size = [], exchange.begin, exchange.size
        end = _STAMP_BYTES + len(begin)
        for message in exchange.incoming:
            expected = _STAMP.pack(_MAGIC, self._epoch, self.number, message.host, HEAD, 0, size) + begin
            if message.frame.bytes[:end] != expected or message.request.test() != _STAMP_BYTES + size:
                self._payload(message)
                if message.frame.bytes[_STAMP_BYTES:end] != begin:
                    different.append(message)
        return different

    def flush(self) -> None:
        """Wait until all messages have been sent."""
        if self._sent:
            self._wait_for([(request, self.host) for requests, _ in self._sent for request in requests])
            self._release_sent()
        if self.number == _FIRST_CALL:
            self.transport.watch_connections(self._of_program)

    def report_failure(self, data: bytes) -> None:
        """Notify the other hosts of a failure, after which MPI is not finalized."""
        self.transport.give_up()
        self.notify(data)

    def abandon(self) -> None:
        """Keep the memory that MPI may still access after a failure."""
        _abandoned.extend((self._sent, self._frames, self._exchanges))
        self._exchanges = []  # otherwise `leave` would free the exchanges

    def _release_sent(self) -> None:
        unsent = []
        for requests, frame in self._sent:
            if self._have_been_sent(requests):
                if isinstance(frame, Frame):
                    self.release(frame)
            else:
                unsent.append((requests, frame))
        self._sent = unsent

    def _have_been_sent(self, requests: Sequence[Request]) -> bool:
        try:
            return all(request.test() is not None for request in requests)
        except PeerFailed:
            self._raise_lost()

    # --- notices ------------------------------------------------------------------------------------------------------

    def notify(self, data: bytes) -> None:
        """Send a notice to the leaders of all other hosts, and wait briefly until MPI has sent it.

        The notice may be queued behind other messages, and MPI sends nothing after this process has ended.
        """
        stamp = _STAMP.pack(_MAGIC, self._epoch, self.number, self.host, NOTICE, 0, len(data))
        message = np.frombuffer(stamp + data, np.uint8)
        until = time.monotonic() + _NOTICE_SECONDS
        lost = self.transport.failed()  # MPI may crash in a message to a failed process (Open MPI 5.0.11)
        for host in self.others:
            if self._leaders[host] in lost:
                continue
            try:
                request = self.transport.send(message, self._leaders[host], self._tag + NOTICE)
                while request.test() is None:
                    if time.monotonic() > until:
                        _abandoned.append((request, message))
                        break
                    os.sched_yield()
            except PeerFailed:  # a lost host does not need the notice
                continue

    def leave(self, reason: str) -> None:
        """Notify the other hosts that this host makes no more calls; only the first call on a leader's link does so."""
        if self._is_open:
            self._is_open = False
            self.notify(f"{self.number} {reason}".encode())
            for exchange in self._exchanges:
                for request, _ in exchange.requests:
                    request.free()
            self._exchanges = []

    def read_own_notices(self) -> None:
        """Call `read_notices` if this is the link of a leader that has not left; otherwise do nothing."""
        if self._is_open:
            self.read_notices()

    def read_notices(self) -> None:
        """Pass the notices that have arrived to `on_notice`."""
        while (found := self.transport.poll(self._tag + NOTICE)) is not None:
            data = found[1]
            if len(data) < _STAMP.size:
                continue
            magic, epoch, _, host, kind, _, size = _STAMP.unpack_from(data)
            if (magic, epoch, kind, size) == (_MAGIC, self._epoch, NOTICE, len(data) - _STAMP.size):
                self._on_notice(host, data[_STAMP.size :])

    # --- waits --------------------------------------------------------------------------------------------------------

    def _wait_for(self, requests: Sequence[tuple[Request, int]]) -> None:
        """Wait for requests, each given with its host; testing one of them makes MPI advance all messages."""
        began: float | None = None
        checked, is_reported, spins = 0.0, False, 0
        try:
            for request, _ in requests:
                while request.test() is None:
                    spins += 1
                    if spins <= _SPINS:
                        continue
                    now = time.monotonic()
                    if began is None:
                        began = checked = now
                    if now - began < _YIELD_SECONDS:
                        os.sched_yield()
                    else:
                        time.sleep(_LONG_PAUSE_SECONDS)
                    if now - checked >= _CHECK_SECONDS:
                        checked = now
                        self._check_group()
                        if now - began > self._stall_seconds and not is_reported:
                            is_reported = True
                            _log.warning("%s; still waiting", self._waiting_text(requests, self._stall_seconds))
                        if now - began > self.seconds + EXTRA_SECONDS:
                            raise DeadlineExceededError(
                                f"{WHOLE}{self._waiting_text(requests, self.seconds)}. Check what they execute and "
                                "whether the network between the hosts works, or allow more time with timeout_seconds= "
                                "or RINGLET_TIMEOUT_SECONDS."
                            )
        except PeerFailed:
            self._raise_lost()

    def _check_group(self) -> None:
        self.read_notices()
        self._check()
        if self.transport.failed():
            self._raise_lost()

    def _raise_lost(self) -> NoReturn:
        """Raise the error about a process that MPI reports as failed, unless a notice with the cause arrives."""
        until = time.monotonic() + _CAUSE_SECONDS
        while time.monotonic() < until:
            self.read_notices()
            self._check()
            time.sleep(_LONG_PAUSE_SECONDS)
        raise self._lost(self.transport.failed())

    def _waiting_text(self, requests: Sequence[tuple[Request, int]], seconds: float) -> str:
        hosts = sorted({host for request, host in requests if request.test() is None})
        names = " and ".join(self._names[host] for host in hosts)
        return f"call {self.number} of {self._names[self.host]} waited {seconds:g} s for {names}"

    def _payload(self, message: Incoming) -> Bytes:
        count = message.request.test()
        if message.kind == DATA:
            if count != message.size:
                self.refuse(message.host, f"has {count} bytes, expected {message.size}")
            return message.frame.payload[:count]
        magic, epoch, number, host, kind, index, size = _STAMP.unpack_from(message.frame.bytes)
        expected = (_MAGIC, self._epoch, self.number, message.host, message.kind, message.index)
        found = (magic, epoch, number, host, kind, index)
        is_whole = count == _STAMP_BYTES + size and message.size in (None, size)
        if found != expected or not is_whole:
            self.refuse(
                message.host,
                f"has the stamp {found} and {size} bytes, expected the stamp {expected} and {message.size} bytes",
            )
        return message.frame.payload[:size]

    def refuse(self, host: int, what: str) -> NoReturn:
        """Raise the error about a message from a host that is not the expected one."""
        raise CollectiveAborted(
            f"{WHOLE}the message from {self._names[host]} in call {self.number} {what}: MPI delivered a wrong message, "
            "and the result was discarded. Start the job again; with Open MPI, add `--mca coll ^han`."
        )


def _counted(numbers: dict[tuple[int, int], int], key: tuple[int, int]) -> int:
    """Return the number of earlier messages of this host and kind, and increment it."""
    number = numbers.get(key, 0)
    numbers[key] = number + 1
    return number
