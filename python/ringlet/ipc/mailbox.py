"""Mailbox: messages from rank to rank between processes of one machine, matched by source and tag.

Each mailbox listens under an abstract name derived from the group's key and its rank. The first message to a rank opens
a connection, on which one thread writes and another one reads. A message stays in the socket until a receive takes it.
It is stored if it is small, or if a receive waits for a later message from the same source.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import queue
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.ipc.unix_sockets import close_in_children, credentials

__all__ = ["Mailbox"]

_HEADER = struct.Struct("<qQ48s")  # tag, bytes, description
_HELLO = struct.Struct("<I")  # rank
_STORED_BYTES = 1 << 16  # a message up to this size is stored at once
_RETRY_SECONDS = 0.05
_LAST_SECONDS = 1.0  # time to stop a thread whose write has failed


@dataclass
class _Receive:
    """A waiting receive; the result of its future is the source."""

    into: memoryview
    text: str
    source: int | None
    tag: int
    numbers: Sequence[int]
    done: Future[int] = field(default_factory=Future)

    def matches(self, source: int, tag: int) -> bool:
        return self.source in (None, source) and self.tag == tag

    def finish(self, source: int, text: str) -> None:
        if text == self.text:
            self.done.set_result(source)
        else:
            self.done.set_exception(
                InvalidArgumentError(
                    f"rank {self.numbers[source]} sent {text} with tag {self.tag}, and this rank receives into "
                    f"{self.text}: pass tensors of one dtype and number of elements on both ranks."
                )
            )


class Mailbox:
    """The messages of one rank. `key` is a secret of the group; `lost` returns the error for a rank that has ended.

    `pidfds` has a descriptor for each rank, or -1; they are closed with the mailbox, and then set to -1. `numbers` are
    the ranks' numbers in errors.
    """

    def __init__(
        self,
        key: str,
        rank: int,
        pidfds: list[int],
        lost: Callable[[int], Exception],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self._numbers = numbers or range(len(pidfds))
        self._key, self._rank, self._pidfds, self._lost_error = key, rank, pidfds, lost
        self._changed = threading.Condition()
        self._waiting: list[_Receive] = []
        self._stored: list[tuple[int, int, str, bytes]] = []
        self._connected: dict[int, socket.socket] = {}  # connections by source
        self._ended: set[int] = set()
        self._senders: dict[int, _Sender] = {}
        self._watcher: threading.Thread | None = None
        self._is_closing = self._is_closed = False
        self._refused: Exception | None = None  # the error of receives after `abort` or `close`
        self._listener = _socket()
        self._listener.bind(_address(key, rank))
        self._listener.listen(len(pidfds))
        self._wake_reader, self._wake_writer = os.pipe()

    def send(self, data: memoryview, text: str, target: int, tag: int) -> Future[None]:
        """Start sending bytes, described by `text`; they must not change until the future is done."""
        with self._changed:
            if self._is_closing:
                refused: Future[None] = Future()
                refused.set_exception(
                    FailedPreconditionError(f"rank {self._numbers[self._rank]} has left the group: it sends no more.")
                )
                return refused
            if target not in self._senders:
                self._senders[target] = _Sender(
                    _address(self._key, target), self._rank, lambda: self._lost_error(target)
                )
        return self._senders[target].send([_HEADER.pack(tag, data.nbytes, text.encode()[:48]), data])

    def receive(self, into: memoryview, text: str, source: int | None, tag: int) -> Future[int]:
        """Start receiving from one source, or from any; the result of the future is the source."""
        wanted = _Receive(into, text[:48], source, tag, self._numbers)
        with self._changed:
            if self._refused is not None:
                wanted.done.set_exception(self._refused)
                return wanted.done
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, name="ringlet mailbox", daemon=True)
                self._watcher.start()
            for number, (origin, its_tag, its_text, data) in enumerate(self._stored):
                if wanted.matches(origin, its_tag):
                    del self._stored[number]
                    if its_text == wanted.text:
                        into[:] = data
                    wanted.finish(origin, its_text)
                    return wanted.done
            self._waiting.append(wanted)
            self._fail_hopeless()
            self._changed.notify_all()
        return wanted.done

    def withdraw(self, done: Future[int], error: Exception) -> bool:
        """Make a waiting receive fail with an error; return False if it already has a message."""
        with self._changed:
            for number, wanted in enumerate(self._waiting):
                if wanted.done is done:
                    del self._waiting[number]
                    done.set_exception(error)
                    return True
        return False

    def abort(self, error: Exception) -> None:
        """Make waiting and later receives fail with an error."""
        with self._changed:
            self._refused = self._refused or error
            self._fail_hopeless()

    def close(self, seconds: float) -> None:
        """Wait up to `seconds` until all messages are sent, end waiting receives, and close all connections."""
        deadline = time.monotonic() + seconds
        with self._changed:
            self._is_closing = True
        self._take_leave()
        for sender in self._senders.values():
            sender.close(deadline - time.monotonic())
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._refused = self._refused or FailedPreconditionError(
                f"rank {self._numbers[self._rank]} has left the group: its receives have ended."
            )
            self._fail_hopeless()
            self._listener.close()
            for connection in self._connected.values():
                _interrupt(connection)
            self._changed.notify_all()
        os.write(self._wake_writer, b"x")
        if self._watcher is not None:
            self._watcher.join()
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        for rank, fd in enumerate(self._pidfds):
            if fd >= 0:
                self._pidfds[rank] = -1  # before another file gets the descriptor's number
                os.close(fd)

    def _take_leave(self) -> None:
        """Connect to the ranks without a connection, and disconnect, so that their receives from this rank end."""
        for target in range(len(self._pidfds)):
            if target != self._rank and target not in self._senders:
                with contextlib.suppress(OSError), _socket() as connection:  # the rank may have left
                    connection.setblocking(False)
                    connection.connect(_address(self._key, target))
                    connection.sendall(_HELLO.pack(self._rank))

    # --- threads ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Accept connections, and detect processes that have ended."""
        ranks = {fd: rank for rank, fd in enumerate(self._pidfds) if fd >= 0}
        poll = select.poll()
        with self._changed:
            if self._is_closed:
                return
            for fd in (self._listener.fileno(), self._wake_reader, *ranks):
                poll.register(fd, select.POLLIN)
            self._listener.setblocking(False)
        while True:
            ready = [fd for fd, _ in poll.poll()]
            while True:  # accept all connections before a process that opened one counts as ended
                try:
                    connection, _ = self._listener.accept()
                except BlockingIOError:
                    break
                except OSError:
                    if self._is_closed:
                        return
                    time.sleep(_RETRY_SECONDS)  # no file descriptor is free
                    break
                self._admit(connection)
            with self._changed:
                if self._is_closed:
                    return
                for fd in ready:
                    if fd in ranks:
                        poll.unregister(fd)
                        self._ended.add(ranks[fd])
                self._fail_hopeless()

    def _admit(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        hello = _read_exactly(connection, _HELLO.size) if credentials(connection)[1] == os.geteuid() else b""
        if not hello:
            connection.close()
            return
        (source,) = _HELLO.unpack(hello)
        with self._changed:
            self._connected[source] = close_in_children(connection)
        threading.Thread(target=self._read, args=(connection, source), name="ringlet reader", daemon=True).start()

    def _read(self, connection: socket.socket, source: int) -> None:
        while header := _read_exactly(connection, _HEADER.size):
            tag, size, packed = _HEADER.unpack(header)
            text = packed.rstrip(b"\0").decode()
            wanted = self._taker(source, tag, size)
            if wanted is not None and wanted.text == text:
                if not _fill(connection, wanted.into):
                    with self._changed:
                        self._waiting.append(wanted)  # the read below fails
                    break
                wanted.finish(source, text)
                continue
            data = bytearray(size)
            if not _fill(connection, memoryview(data)):
                break
            if wanted is None:
                with self._changed:
                    wanted = self._matching(source, tag)
                    if wanted is None:
                        self._stored.append((source, tag, text, bytes(data)))
                        continue
                    if wanted.text == text:
                        wanted.into[:] = data
            wanted.finish(source, text)
        with self._changed:
            self._connected.pop(source, connection).close()
            self._ended.add(source)
            self._fail_hopeless()

    def _taker(self, source: int, tag: int, size: int) -> _Receive | None:
        """Wait for the receive that takes a message; return None if the message must be stored."""
        with self._changed:
            while not self._is_closed:
                if (wanted := self._matching(source, tag)) is not None:
                    return wanted
                if size <= _STORED_BYTES or any(wanted.source in (None, source) for wanted in self._waiting):
                    return None
                self._changed.wait()
        return None

    def _matching(self, source: int, tag: int) -> _Receive | None:
        for number, wanted in enumerate(self._waiting):
            if wanted.matches(source, tag):
                return self._waiting.pop(number)
        return None

    def _fail_hopeless(self) -> None:
        """End receives whose source has ended and is not connected; after `abort` or `close`, end all receives."""
        if self._refused is not None:
            while self._waiting:
                self._waiting.pop().done.set_exception(self._refused)
            return
        ended = self._ended - self._connected.keys()
        others = set(range(len(self._pidfds))) - {self._rank}
        for wanted in list(self._waiting):
            source = wanted.source
            if source in ended or (source is None and others and others <= ended):
                self._waiting.remove(wanted)
                wanted.done.set_exception(self._lost_error(min(others) if source is None else source))


class _Sender:
    """The connection to one rank; a thread writes the data that the socket does not accept immediately."""

    def __init__(self, address: str, rank: int, lost: Callable[[], Exception]) -> None:
        self._lost = lost
        self._queue: queue.SimpleQueue[tuple[list[memoryview], Future[None]] | None] = queue.SimpleQueue()
        self._unsent = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._socket = close_in_children(_socket())
        self._error: Exception | None = None
        self._is_closed = False
        try:
            self._socket.connect(address)
            self._socket.sendall(_HELLO.pack(rank))
        except OSError:
            self._error = lost()

    def send(self, message: Sequence[bytes | memoryview]) -> Future[None]:
        done: Future[None] = Future()
        parts = [memoryview(part) for part in message if len(part)]
        with self._lock:
            if self._is_closed:
                self._error = self._error or _unsent_error()
            if self._error is not None:
                done.set_exception(self._error)
                return done
            if not self._unsent:
                try:
                    parts = _after(parts, self._socket.sendmsg(parts, [], socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL))
                except BlockingIOError:
                    pass
                except OSError:
                    self._error = self._lost()
                    done.set_exception(self._error)
                    return done
                if not parts:
                    done.set_result(None)
                    return done
            self._unsent += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="ringlet sender", daemon=True)
                self._thread.start()
            self._queue.put((parts, done))
        return done

    def close(self, seconds: float) -> None:
        """Wait up to `seconds` until all messages are sent; make the others fail."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._queue.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(max(seconds, 0))
            if self._thread.is_alive():
                self._error = self._error or _unsent_error()
                _interrupt(self._socket)
                self._thread.join(_LAST_SECONDS)
        self._socket.close()

    def _write(self) -> None:
        while (item := self._queue.get()) is not None:
            parts, done = item
            try:
                while parts:
                    parts = _after(parts, self._socket.sendmsg(parts, [], socket.MSG_NOSIGNAL))
            except OSError:
                self._error = self._error or self._lost()
            with self._lock:
                self._unsent -= 1
            if self._error is None:
                done.set_result(None)
            else:
                done.set_exception(self._error)


def _unsent_error() -> Exception:
    return FailedPreconditionError("this rank left the group before the message was sent: wait() for it first.")


def _address(key: str, rank: int) -> str:
    return f"\0ringlet-mail-{hashlib.sha256(f'{key} {rank}'.encode()).hexdigest()}"


def _socket() -> socket.socket:
    return close_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))


def _interrupt(connection: socket.socket) -> None:
    """Wake the thread that reads or writes."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _after(parts: list[memoryview], sent: int) -> list[memoryview]:
    """Return the unsent rest of a message."""
    while parts and sent >= len(parts[0]):
        sent -= len(parts[0])
        parts = parts[1:]
    return [parts[0][sent:], *parts[1:]] if parts else []


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return `size` bytes; none at the end of the stream."""
    data = bytearray(size)
    return bytes(data) if _fill(connection, memoryview(data)) else b""


def _fill(connection: socket.socket, into: memoryview) -> bool:
    """Fill a buffer; return False if the connection ends earlier."""
    try:
        while len(into):
            count = connection.recv_into(into)
            if not count:
                return False
            into = into[count:]
    except OSError:
        return False
    return True
