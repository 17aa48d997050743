"""Unix channel: a channel over a stream socket, between processes of one machine or, without descriptors, over TCP."""

from __future__ import annotations

import collections
import contextlib
import errno
import os
import select
import socket
import threading
import time
from collections.abc import Generator, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ringlet.ipc.channel import Buffer, ChannelClosed, Message, OpenFile
from ringlet.ipc.frames import HEAD_BYTES, MOST_DESCRIPTORS, BadFrame, Head, frame_start, read_sizes
from ringlet.ipc.unix_sockets import (
    MSG_CMSG_CLOEXEC,
    close_in_children,
    credentials,
    descriptor_space,
    descriptors_in,
    no_descriptor_left,
    pair,
)

_MOST_BYTES = 1 << 36  # largest total size of the buffers of one message
_PARTS = 512  # buffers per sendmsg() call; the limit is IOV_MAX = 1024
_DESCRIPTOR_SPACE = descriptor_space(MOST_DESCRIPTORS)
_RETRY_SECONDS = 0.002
_GONE = "has closed its connection"
_CLOSED_HERE = "is not connected: the channel was closed by this process"


class LocalChannel:
    """A connection to one process, of this machine unless `is_remote`; implements `Channel`.

    It owns `connection`, a stream socket whose other end belongs to another `LocalChannel`.
    """

    def __init__(self, connection: socket.socket, peer: str) -> None:
        self.peer = peer
        self._connection = close_in_children(connection)
        self.is_remote = connection.family != socket.AF_UNIX
        connection.setblocking(False)
        self._reader = FrameReader(_MOST_BYTES)
        self._descriptors: collections.deque[int] = collections.deque()
        # Guards the attributes below. Reentrant: a signal handler may close the channel that its thread is using.
        self._lock = threading.RLock()
        self._number = 0
        self._outbox: collections.deque[_Outgoing] = collections.deque()
        self._closed: str | None = None

    @classmethod
    def pair(cls, one: str, other: str) -> tuple[LocalChannel, LocalChannel]:
        """Return the two ends of a channel: for the process named `one`, and for the process named `other`."""
        ends = pair(socket.SOCK_STREAM)
        return cls(ends[0], other), cls(ends[1], one)

    @property
    def is_closed(self) -> bool:
        """Whether the channel was closed, or a peer on this machine has closed its end."""
        if self._closed is None:
            poll = select.poll()
            with contextlib.suppress(OSError, ValueError):  # the channel was closed concurrently, or in a forked child
                poll.register(self._connection, 0)
                return any(events & select.POLLHUP for _, events in poll.poll(0))
        return True

    @property
    def was_closed_here(self) -> bool:
        """Whether this process has closed the channel, or is a forked child, in which it is closed."""
        has_no_connection = self.fileno() < 0  # read first: another thread sets _closed before closing
        return self._closed == _CLOSED_HERE or (has_no_connection and self._closed is None)

    @property
    def ending(self) -> str:
        """Why the channel was closed, or is about to be, as a predicate about the peer."""
        with contextlib.suppress(OSError):  # the connection is closed
            if number := self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                return _reason(OSError(number, os.strerror(number)))
        return self._closed or _GONE

    @property
    def leads_to_this_process(self) -> bool:
        """Whether the peer is this process, as reported by the kernel."""
        return credentials(self._connection)[0] == os.getpid()

    def fileno(self) -> int:
        """Return the descriptor of the connection; -1 once it is closed."""
        return self._connection.fileno()

    def send(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> None:
        """Send a message; block until all of it is written."""
        mine = self._post(header, buffers, descriptors)
        while mine.parts:
            self._wait(select.POLLOUT)
            self.flush()

    def post(self, header: bytes, buffers: Sequence[Buffer] = (), descriptors: Sequence[OpenFile] = ()) -> bool:
        """Send a message without waiting; return whether all posted messages have been sent."""
        self._post(header, buffers, descriptors)
        return not self._outbox

    def flush(self) -> bool:
        """Send as many posted messages as possible without blocking; return whether all have been sent."""
        with self._while_open():
            self._flush()
            return not self._outbox

    def receive(self) -> Message:
        """Return the next message; block until it has arrived."""
        while (message := self.poll()) is None:
            self._wait(select.POLLIN)
        return message

    def poll(self) -> Message | None:
        """Return the next message if all of it has arrived, else None."""
        try:
            while (frame := self._reader.take()) is None:
                if not self._read():
                    return None
            header, buffers, count = frame
            return Message(header, buffers, self._take_descriptors(count) if count else [])
        except BadFrame as error:
            raise self._fail(str(error)) from error

    def close(self) -> None:
        """Close the connection, idempotently."""
        self._fail(_CLOSED_HERE)

    # --- system calls -------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        """Read once; return False if no data was available."""
        self._check_open()
        try:
            count, extras, flags, _ = self._connection.recvmsg_into(
                [self._reader.room()], _DESCRIPTOR_SPACE, MSG_CMSG_CLOEXEC
            )
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            raise self._fail(_reason(error)) from None
        if extras:
            self._put_descriptors(descriptors_in(extras))
        if flags & socket.MSG_CTRUNC:
            self._fail("has sent descriptors that exceed this process's limit of open files")
            raise OSError(errno.EMFILE, no_descriptor_left())
        if not count:
            raise self._fail(_GONE)
        self._reader.add(count)
        return True

    def _put_descriptors(self, descriptors: Sequence[int]) -> None:
        with self._lock:
            self._descriptors.extend(descriptors)
            if self._closed is not None:  # the channel was closed concurrently
                self._close_descriptors()
            if len(self._descriptors) > 2 * MOST_DESCRIPTORS:
                raise BadFrame("has sent descriptors without a message")

    def _take_descriptors(self, count: int) -> list[int]:
        with self._while_open():
            if count > len(self._descriptors):
                raise BadFrame(f"has announced {count} descriptors, but sent {len(self._descriptors)}")
            return [self._descriptors.popleft() for _ in range(count)]

    def _post(self, header: bytes, buffers: Sequence[Buffer], descriptors: Sequence[OpenFile]) -> _Outgoing:
        views = [memoryview(buffer).cast("B") for buffer in buffers]
        with self._while_open():
            start = frame_start(self._number, header, [view.nbytes for view in views], len(descriptors))
            outgoing = _Outgoing([start, *filter(len, views)], descriptors)
            self._number += 1
            self._outbox.append(outgoing)
            self._flush()
        return outgoing

    def _flush(self) -> None:
        outbox = self._outbox  # a signal handler that closes the channel replaces self._outbox
        while outbox:
            try:
                outbox[0].write(self._connection)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno in (errno.ETOOMANYREFS, errno.ENOBUFS):  # too many descriptors in flight
                    time.sleep(_RETRY_SECONDS)
                    return
                raise self._fail_locked(_reason(error)) from None
            if not outbox[0].parts:
                outbox.popleft()

    def _wait(self, events: int) -> None:
        self._check_open()
        poll = select.poll()
        try:
            poll.register(self._connection, events)
            poll.poll()
        except (OSError, ValueError):  # the channel was closed concurrently
            self._check_open()

    # --- closing ------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._connection.fileno() < 0:
            raise self._gone()

    @contextlib.contextmanager
    def _while_open(self) -> Iterator[None]:
        # Also checked without the lock: in a forked child, a lock held by another thread is never released.
        self._check_open()
        with self._lock:
            self._check_open()
            yield

    def _gone(self) -> ChannelClosed:
        return ChannelClosed(self.peer, self._closed or "is connected to the parent process, not to this forked child")

    def _fail(self, reason: str) -> ChannelClosed:
        with contextlib.suppress(ChannelClosed), self._while_open():
            self._fail_locked(reason)
        return self._gone()

    def _fail_locked(self, reason: str) -> ChannelClosed:
        """Close the connection and the descriptors that were not taken; keep the first reason."""
        if self._closed is None:
            self._closed = reason
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)  # wakes waiting threads
            self._connection.close()
            self._outbox = collections.deque()
            self._close_descriptors()
        return self._gone()

    def _close_descriptors(self) -> None:
        while self._descriptors:
            os.close(self._descriptors.popleft())


class _Outgoing:
    """The unsent rest of a message; no element of `parts` is empty."""

    def __init__(self, parts: list[bytes | memoryview], descriptors: Sequence[OpenFile]) -> None:
        self.parts = parts
        self._descriptors = descriptors

    def write(self, connection: socket.socket) -> None:
        """Send everything, or raise BlockingIOError at a full buffer; the descriptors accompany the first byte."""
        while self.parts:
            some = self.parts[:_PARTS]
            if self._descriptors:
                numbers = [entry if isinstance(entry, int) else entry.fileno() for entry in self._descriptors]
                count = socket.send_fds(connection, some, numbers, socket.MSG_NOSIGNAL)
                self._descriptors = ()
            else:
                count = connection.sendmsg(some, (), socket.MSG_NOSIGNAL)
            done = 0
            while done < len(some) and count >= len(some[done]):
                count -= len(some[done])
                done += 1
            del self.parts[:done]
            if count:
                self.parts[0] = memoryview(self.parts[0])[count:]


def _reason(error: OSError) -> str:
    return _GONE if error.errno in (errno.EPIPE, errno.ECONNRESET) else f"cannot be reached: {error.strerror}"


# Header, buffers, number of descriptors.
Frame = tuple[bytes, list[npt.NDArray[np.uint8]], int]

# Minimum size of parts that are received directly into their memory; smaller parts are received together and copied.
_IN_PLACE_BYTES = 16384
_INBOX_BYTES = 65536


class FrameReader:
    """Assembles messages from the bytes of a stream.

    The caller reads bytes into `room`, reports their number with `add`, and calls `take` until it returns None.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._number = 0
        self._inbox = memoryview(bytearray(_INBOX_BYTES))
        self._begin = self._end = 0
        self._steps = _read_frame(0, most_bytes)
        self._want = next(self._steps)
        self._is_in_place = False

    def room(self) -> memoryview:
        """Return the memory for the next bytes; it is not empty."""
        self._is_in_place = len(self._want) >= _IN_PLACE_BYTES
        return self._want if self._is_in_place else self._inbox

    def add(self, count: int) -> None:
        """Record that `count` bytes were written into `room`."""
        if self._is_in_place:
            self._want = self._want[count:]
        else:
            self._begin, self._end = 0, count

    def take(self) -> Frame | None:
        """Return the next message if it is complete, else None; after it raises BadFrame, the stream is unreadable."""
        while True:
            count = min(len(self._want), self._end - self._begin)
            if count:
                self._want[:count] = self._inbox[self._begin : self._begin + count]
                self._want = self._want[count:]
                self._begin += count
            if self._want:
                return None
            try:
                self._want = next(self._steps)
            except StopIteration as done:
                self._number += 1
                self._steps = _read_frame(self._number, self._most_bytes)
                self._want = next(self._steps)
                frame: Frame = done.value
                return frame


def _read_frame(number: int, most_bytes: int) -> Generator[memoryview, None, Frame]:
    """Yield each block of memory to fill; return the message."""
    data = memoryview(bytearray(HEAD_BYTES))
    yield data
    head = Head.read(data, number)
    num_bytes = head.rest_bytes
    try:
        rest = np.empty(num_bytes, np.uint8)
        if rest.size:
            yield rest.data
        sizes, header = read_sizes(head, rest.data, most_bytes)
        num_bytes = sum(sizes)
        buffers = [np.empty(size, np.uint8) for size in sizes]
    except MemoryError:
        raise BadFrame(f"has sent a message of {num_bytes} bytes, but this process has no memory left for it") from None
    for buffer in buffers:
        if buffer.size:
            yield buffer.data
    return header, buffers, head.num_descriptors
