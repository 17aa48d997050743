"""Mailbox: messages from rank to rank between processes of one machine, matched by source and tag.

Each mailbox listens under an abstract name. The first message to a rank of another process opens a connection, which a
thread of the receiving process reads. A message stays in the socket until a matching receive is called; the message is
stored instead if it is small, or if a receive of another message from the same source is waiting.
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

from ringlet.ipc.inbox import Inbox, Place, Receive, unsent_error
from ringlet.ipc.unix_sockets import close_in_children, credentials

_SHORT_BYTES = 48
_HEADER = struct.Struct(f"<qQI{_SHORT_BYTES}s")  # tag, number of bytes, length of the description, and its first bytes
_HELLO = struct.Struct("<I")  # rank of the connecting process
_BACKLOG = 4096  # one connection for each rank of the largest group
_STORED_BYTES = 1 << 16  # maximum size of a message that is read before its receive starts
_RETRY_SECONDS = 0.05
_LAST_SECONDS = 1.0  # timeout for stopping a thread whose write has failed


class Mailbox(Inbox):
    """The inbox of one rank of a group that spans several processes.

    Other processes connect to its `name`, which is known only in the group; the default is `label`.
    """

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self._names: Sequence[str] = ()
        self._pidfds: dict[int, int] | None = None
        self._connected: dict[int, socket.socket] = {}
        self._senders: dict[int, _Sender] = {}
        self._watcher: threading.Thread | None = None
        self._listener = _socket()
        self._listener.bind(_address(name or str(self.label)))
        self._listener.listen(_BACKLOG)

    def connect(self, names: Sequence[str], pidfds: Callable[[], dict[int, int]]) -> None:
        """Set the names of all ranks' mailboxes; called after `join`.

        `pidfds` returns a pidfd for each rank in another running process, or -1 if the system has no pidfds. The first
        receive, or send to another process, calls it. `close` closes the pidfds and replaces them with -1.
        """
        self._names, self._open_pidfds = names, pidfds

    def send(self, data: memoryview, text: str, target: int, tag: int) -> Future[None]:
        """Start sending bytes, described by `text`; the bytes must not change until the future is done."""
        if target in self._peers:
            return super().send(data, text, target, tag)
        with self._changed:
            if self._is_closing:
                return super().send(data, text, target, tag)
            self._open()
            if target not in self._senders:
                self._senders[target] = _Sender(
                    _address(self._names[target]), self.rank, lambda: self._lost_error(target)
                )
        name = text.encode()
        header = _HEADER.pack(tag, data.nbytes, len(name), name[:_SHORT_BYTES])
        return self._senders[target].send([header, name[_SHORT_BYTES:], data])

    def receive(self, into: Place, text: str, source: int | None, tag: int) -> Future[int]:
        """Start receiving from one source, or from any source; the result of the future is the source."""
        with self._changed:
            if not self._is_closed:
                self._open()
        return super().receive(into, text, source, tag)

    def close(self, seconds: float = 0) -> list[str]:
        """Wait up to `seconds` until all messages are sent, then fail pending operations; return their descriptions."""
        if self._is_closed or self._pid != os.getpid():
            return []
        deadline = time.monotonic() + seconds
        with self._changed:
            self._is_closing = True
        self._take_leave()
        unfinished = []
        for target, sender in self._senders.items():
            unfinished += [f"send to rank {self.numbers[target]}"] * sender.close(deadline - time.monotonic())
        with self._changed:
            if self._is_closed:
                return []
            unfinished += self._end()
            self._listener.close()
            for connection in self._connected.values():
                _interrupt(connection)
        if self._watcher is not None:
            os.write(self._wake_writer, b"x")
            if self._watcher is not threading.current_thread():
                self._watcher.join()
            os.close(self._wake_reader)
            os.close(self._wake_writer)
        for rank, fd in (self._pidfds or {}).items():
            if fd >= 0:
                (self._pidfds or {})[rank] = -1  # reset before close(), after which another file may get this number
                os.close(fd)
        return unfinished

    def _take_leave(self) -> None:
        """End the receives from this rank in this process, and on ranks to which it has no connection.

        The latter are connected and disconnected, because only a disconnection ends their receives.
        """
        peers = self._peers
        self._leave_peers()
        for target, name in enumerate(self._names):
            if target not in peers and target not in self._senders:
                with contextlib.suppress(OSError), _socket() as connection:  # the rank may have left
                    connection.setblocking(False)
                    connection.connect(_address(name))
                    connection.sendall(_HELLO.pack(self.rank))

    def _open(self) -> None:
        """Start the thread that watches the other processes, unless it has been started."""
        if self._watcher is None:
            self._pidfds = self._open_pidfds()
            self._wake_reader, self._wake_writer = os.pipe()
            self._watcher = threading.Thread(target=self._watch, name="ringlet mailbox", daemon=True)
            self._watcher.start()

    # --- threads ------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """Accept connections, and detect processes that have ended."""
        pidfds = self._pidfds or {}
        ranks = {fd: rank for rank, fd in pidfds.items() if fd >= 0}
        ended = set(range(len(self.numbers))) - pidfds.keys() - self._peers.keys()
        poll = select.poll()
        with self._changed:
            if self._is_closed:
                return
            for fd in (self._listener.fileno(), self._wake_reader, *ranks):
                poll.register(fd, select.POLLIN)
            self._listener.setblocking(False)
        while True:
            ready = [fd for fd, _ in poll.poll(0 if ended - self._ended else None)]
            while True:  # accept all connections before a process that opened one counts as ended
                try:
                    connection, _ = self._listener.accept()
                except BlockingIOError:
                    break
                except OSError:
                    if self._is_closed:
                        return
                    time.sleep(_RETRY_SECONDS)  # no free file descriptor: retry
                    break
                self._admit(connection)
            with self._changed:
                if self._is_closed:
                    return
                for fd in ready:
                    if fd in ranks:
                        poll.unregister(fd)
                        self._ended.add(ranks[fd])
                self._ended |= ended
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
            tag, size, length, packed = _HEADER.unpack(header)
            name = packed[:length]
            if length > len(name):
                name += _read_exactly(connection, length - len(name))
            text = name.decode(errors="replace")
            wanted = self._taker(source, tag, size)
            place = None if wanted is None else wanted.place(text, self.numbers[source])
            if wanted is not None and place is not None:
                if not _fill(connection, place):
                    with self._changed:
                        self._waiting.append(wanted)  # _fail_hopeless() then fails the receive
                    break
                wanted.finish(source)
                continue
            data = bytearray(size)
            if not _fill(connection, memoryview(data)):
                break
            if wanted is None:
                self._deliver(source, memoryview(data), text, tag)
            else:
                wanted.finish(source)
        with self._changed:
            self._connected.pop(source, connection).close()
            self._ended.add(source)
            self._fail_hopeless()

    def _taker(self, source: int, tag: int, size: int) -> Receive | None:
        """Wait for the receive that matches a message; return None if the message must be stored."""
        with self._changed:
            while not self._is_closed:
                if (wanted := self._matching(source, tag)) is not None:
                    return wanted
                if size <= _STORED_BYTES or any(wanted.source in (None, source) for wanted in self._waiting):
                    return None
                self._changed.wait()
        return None


class _Sender:
    """The connection to one rank. If a message does not fit in the socket's buffer, a thread writes the rest."""

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
                self._error = self._error or unsent_error()
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

    def close(self, seconds: float) -> int:
        """Wait up to `seconds` until all messages are sent; fail the remaining messages, and return their number."""
        with self._lock:
            if self._is_closed:
                return 0
            self._is_closed = True
            self._queue.put(None)
        unsent = 0
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(max(seconds, 0))
            unsent = self._unsent
            if self._thread.is_alive():
                self._error = self._error or unsent_error()
                _interrupt(self._socket)
                self._thread.join(_LAST_SECONDS)
        self._socket.close()
        return unsent

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


def _address(name: str) -> str:
    return f"\0ringlet-mail-{hashlib.sha256(name.encode()).hexdigest()}"


def _socket() -> socket.socket:
    return close_in_children(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))


def _interrupt(connection: socket.socket) -> None:
    """Shut down a connection, which wakes the thread that reads or writes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _after(parts: list[memoryview], sent: int) -> list[memoryview]:
    """Return the parts of a message after its first `sent` bytes."""
    while parts and sent >= len(parts[0]):
        sent -= len(parts[0])
        parts = parts[1:]
    return [parts[0][sent:], *parts[1:]] if parts else []


def _read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes, or ``b""`` if the stream ends first."""
    data = bytearray(size)
    return bytes(data) if _fill(connection, memoryview(data)) else b""


def _fill(connection: socket.socket, into: memoryview) -> bool:
    """Fill a buffer; return False if the connection ends before it is full."""
    try:
        while len(into):
            count = connection.recv_into(into)
            if not count:
                return False
            into = into[count:]
    except OSError:
        return False
    return True
