"""Messages from rank to rank of a job over several hosts.

A small message is sent at once, and stored on arrival. For a larger message, the sender sends an offer; when a receive
on the target accepts the offer, the bytes follow, directly into the memory of that receive.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from ringlet.collectives.hosts.host_group import HostGroup
from ringlet.collectives.hosts.mpi_transport import Bytes, PeerFailed, Request, Transport
from ringlet.ipc.inbox import Inbox, Place, Receive, inboxes_with, unsent_error

_MESSAGE_TAG = 3
_BYTES_TAG, _TAG_STEP = 5, 8  # tag of an offer's bytes: _BYTES_TAG plus a multiple of _TAG_STEP
# Kind, label of the inbox, rank of the source, tag, number of the offer, bytes, and length of the description, which
# follows.
_HEADER = struct.Struct("<BqqqQQI")
_SMALL, _OFFER, _ACCEPT, _LEAVE = range(4)
_SMALL_BYTES = 1 << 16
_SPINS = 100
_PAUSE_SECONDS, _LONG_PAUSE_SECONDS, _LONG_AFTER_SECONDS = 5e-5, 1e-3, 0.1
_CHECK_SECONDS = 0.05
_IDLE_SECONDS = 1.0
_LAST_SECONDS = 1.0  # timeout for messages that a receive has accepted


class _Offer(NamedTuple):
    process: int
    number: int
    size: int


class _Offered(NamedTuple):
    inbox: HostInbox
    target: int
    data: memoryview
    done: Future[None]


@dataclass(eq=False)
class _Transfer:
    """A message in progress; `finish` is called with its size in bytes, or with None if it has failed."""

    request: Request
    data: Bytes
    finish: Callable[[int | None], None]
    inbox: HostInbox | None = None  # the inbox that made an accepted offer


class HostInbox(Inbox):
    """The inbox of one rank of a group over several hosts; see :class:`MessageHub`."""

    def __init__(self, hub: MessageHub) -> None:
        super().__init__()
        self.addresses: list[tuple[int, int]] = []  # process of each rank, and label of the rank's inbox
        self._hub = hub
        hub.inboxes[self.label] = self

    def send(self, data: memoryview, text: str, target: int, tag: int) -> Future[None]:
        """Start sending bytes, described by `text`; the bytes must not change until the future is done."""
        if target in self._peers or self._is_closing:
            return super().send(data, text, target, tag)
        return self._hub.send(self, data, text, target, tag)

    def receive(self, into: Place, text: str, source: int | None, tag: int) -> Future[int]:
        """Start receiving from one source, or from any source; the result of the future is the source."""
        done = super().receive(into, text, source, tag)
        self._hub.wake()
        return done

    def close(self, seconds: float = 0) -> list[str]:
        """Wait up to `seconds` until all messages are sent; then fail unfinished operations and return their names."""
        with self._changed:
            if self._is_closing or self._pid != os.getpid():
                return []
            self._is_closing = True
        targets = self._hub.finish_sends(self, seconds)
        unfinished = [f"send to rank {self.numbers[target]}" for target in targets] + self._end()
        peers = self._peers
        self._leave_peers()
        for target, (process, label) in enumerate(self.addresses):
            if target not in peers:
                self._hub.notify(process, _HEADER.pack(_LEAVE, label, self.rank, 0, 0, 0, 0))
        return unfinished

    def is_receiving(self) -> bool:
        """Return whether a receive waits for a message."""
        return bool(self._waiting)

    def has_ended(self, rank: int) -> bool:
        """Return whether a rank is known to have left or ended."""
        return rank in self._ended

    def lost(self, target: int) -> Exception:
        """Return the error about a rank that has left or ended."""
        return self._lost_error(target)

    def note_end(self, sources: Sequence[int]) -> None:
        """Record that ranks have left or ended; the messages that they offered are lost."""
        with self._changed:
            if not self._ended.issuperset(sources):
                self._stored = [each for each in self._stored if not (each[0] in sources and type(each[3]) is _Offer)]
                self._ended.update(sources)
                self._fail_hopeless()

    def arrive(self, source: int, tag: int, text: str, content: bytes | _Offer) -> None:
        """Process a message or an offer."""
        with self._changed:
            if self._is_closed:
                return
            if (wanted := self._matching(source, tag)) is not None:
                self._store(wanted, source, text, content)
            else:
                self._stored.append((source, tag, text, content))

    def _store(self, wanted: Receive, source: int, text: str, data: Any) -> None:
        if type(data) is not _Offer:
            super()._store(wanted, source, text, data)
            return
        place = wanted.place(text, self.numbers[source])

        def finish(count: int | None) -> None:
            if count != data.size:
                wanted.error = wanted.error or self._lost_error(source)
            wanted.finish(source)

        self._hub.accept(
            data, np.empty(data.size, np.uint8) if place is None else np.frombuffer(place, np.uint8), finish
        )


class MessageHub:
    """The messages of one process over a transport.

    A thread advances the messages while a send or a receive is pending, because MPI moves bytes only during its calls.
    """

    def __init__(self, transport: Transport) -> None:
        self.inboxes: WeakValueDictionary[int, HostInbox] = WeakValueDictionary()
        self._transport = transport
        self._changed = threading.Condition()  # guards the attributes below
        self._numbers = itertools.count()
        self._offered: dict[int, _Offered] = {}
        self._transfers: list[_Transfer] = []
        self._moving = threading.Lock()  # held while messages are processed, to keep their order
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def send(self, inbox: HostInbox, data: memoryview, text: str, target: int, tag: int) -> Future[None]:
        """Start sending bytes to a rank of another process."""
        done: Future[None] = Future()
        self._move()
        if inbox.has_ended(target):
            done.set_exception(inbox.lost(target))
            return done
        (process, label), name, size = inbox.addresses[target], text.encode(), data.nbytes
        is_small = size <= _SMALL_BYTES
        try:
            with self._changed:
                number = next(self._numbers)
                header = _HEADER.pack(_SMALL if is_small else _OFFER, label, inbox.rank, tag, number, size, len(name))
                self._post(process, b"".join((header, name, data if is_small else b"")))
                if not is_small:
                    self._offered[number] = _Offered(inbox, target, data, done)
        except PeerFailed:
            done.set_exception(inbox.lost(target))
            return done
        if is_small:
            done.set_result(None)  # complete, because the bytes were copied
        self.wake()
        return done

    def accept(self, offer: _Offer, into: Bytes, finish: Callable[[int | None], None]) -> None:
        """Start receiving an offered message; `finish` is called with its size in bytes, or with None if it fails."""
        transfer: _Transfer | None = None
        try:
            with self._changed:
                request = self._transport.receive(into, offer.process, self._tag_of(offer.number))
                transfer = _Transfer(request, into, finish)
                self._transfers.append(transfer)
                self._post(offer.process, _HEADER.pack(_ACCEPT, 0, 0, 0, offer.number, 0, 0))
        except PeerFailed:
            if transfer is None:  # otherwise the receive fails, too, and finishes the transfer
                finish(None)
        self.wake()

    def notify(self, process: int, header: bytes) -> None:
        """Send a message without content, unless the process was lost."""
        with contextlib.suppress(PeerFailed), self._changed:
            self._post(process, header)
        self.wake()

    def finish_sends(self, inbox: HostInbox, seconds: float) -> list[int]:
        """Wait up to `seconds` until large messages are accepted; withdraw the others, and return their targets."""

        def is_sending() -> bool:
            offered = any(each.inbox is inbox for each in self._offered.values())
            return offered or any(each.inbox is inbox for each in self._transfers)

        with self._changed:
            self._changed.wait_for(lambda: not is_sending(), seconds)
            unsent = {number: each for number, each in self._offered.items() if each.inbox is inbox}
            for number, each in unsent.items():
                del self._offered[number]
                with contextlib.suppress(PeerFailed):  # an empty message ends a receive that accepts the offer later
                    self._send_bytes(each._replace(data=memoryview(b"")), number)
            self._changed.wait_for(lambda: not is_sending(), _LAST_SECONDS)
        return [each.target for each in unsent.values()]

    def wake(self) -> None:
        """Wake the thread of the hub; start it if there is work."""
        with self._changed:
            if self._thread is None and not self._is_stopped and self._has_work():
                self._thread = threading.Thread(target=self._run, name="ringlet messages", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def stop(self) -> None:
        """Close all inboxes and stop, before MPI ends."""
        for inbox in self._live():
            inbox.close()
        with self._changed:
            self._is_stopped = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(_LAST_SECONDS)

    def failed(self) -> list[int]:
        """Return the processes known to have failed."""
        return self._transport.failed()

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _has_work(self) -> bool:
        return bool(self._transfers or self._offered) or any(each.is_receiving() for each in self._live())

    def _live(self) -> list[HostInbox]:
        # valuerefs() instead of values(), because other threads may add inboxes during the loop.
        return [inbox for known in self.inboxes.valuerefs() if (inbox := known()) is not None]

    def _run(self) -> None:
        idle, worked = 0, time.monotonic()
        checked = worked
        while True:
            idle = 0 if self._move() else idle + 1
            now = time.monotonic()
            if not idle:
                worked = now
            if now - checked > _CHECK_SECONDS:
                checked = now
                self._note_losses()
            with self._changed:
                if not self._has_work() and not self._changed.wait_for(
                    lambda: self._is_stopped or self._has_work(), _IDLE_SECONDS
                ):
                    self._thread = None
                    return
                if self._is_stopped:
                    return
            if idle > _SPINS:
                time.sleep(_PAUSE_SECONDS if now - worked < _LONG_AFTER_SECONDS else _LONG_PAUSE_SECONDS)

    def _move(self) -> bool:
        """Process arrived messages and completed requests; return whether any were found.

        No effect while another thread runs this method, or in a callback that sends a message.
        """
        if not self._moving.acquire(blocking=False):
            return False
        has_moved = False
        try:
            while (found := self._transport.poll(_MESSAGE_TAG)) is not None:
                has_moved = True
                self._arrive(*found)
            return self._complete() or has_moved
        finally:
            self._moving.release()

    def _complete(self) -> bool:
        has_moved = False
        with self._changed:
            transfers = list(self._transfers)
        for each in transfers:
            try:
                count = each.request.test()
            except PeerFailed:
                count = -1
            if count is None:
                continue
            has_moved = True
            with self._changed:
                self._transfers.remove(each)
                self._changed.notify_all()
            each.finish(None if count < 0 else count)
        return has_moved

    def _arrive(self, process: int, message: bytes) -> None:
        kind, label, source, tag, number, size, length = _HEADER.unpack_from(message)
        end = _HEADER.size + length
        if kind == _ACCEPT:
            with self._changed, contextlib.suppress(PeerFailed):
                if (offered := self._offered.pop(number, None)) is not None:  # None if the sending rank has left
                    self._send_bytes(offered, number)
        elif (inbox := self.inboxes.get(label)) is not None:
            if kind == _LEAVE:
                inbox.note_end([source])
            else:
                text = message[_HEADER.size : end].decode()
                inbox.arrive(source, tag, text, message[end:] if kind == _SMALL else _Offer(process, number, size))

    def _note_losses(self) -> None:
        if not (failed := set(self._transport.failed())):
            return
        for inbox in self._live():
            inbox.note_end([rank for rank, (process, _) in enumerate(inbox.addresses) if process in failed])
        with self._changed:
            lost = [n for n, each in self._offered.items() if each.inbox.addresses[each.target][0] in failed]
            offered = [self._offered.pop(number) for number in lost]
        for each in offered:
            each.done.set_exception(each.inbox.lost(each.target))

    # --- with the lock held -------------------------------------------------------------------------------------------

    def _tag_of(self, number: int) -> int:
        return _BYTES_TAG + _TAG_STEP * (number % (self._transport.largest_tag // _TAG_STEP))

    def _post(self, process: int, content: bytes) -> None:
        data = np.frombuffer(content, np.uint8)
        request = self._send_to(process, data, _MESSAGE_TAG)
        self._transfers.append(_Transfer(request, data, lambda count: None))

    def _send_to(self, process: int, data: Bytes, tag: int) -> Request:
        if process in self._transport.failed():  # MPI may crash in a message to it (Open MPI 5.0.11)
            raise PeerFailed(f"process {process}")
        return self._transport.send(data, process, tag)

    def _send_bytes(self, offered: _Offered, number: int) -> None:
        """Send the bytes of an offer; no bytes if this rank leaves before the offer is accepted."""
        inbox, target, data, done = offered

        def finish(count: int | None) -> None:
            if count is None:
                done.set_exception(inbox.lost(target))
            elif data:
                done.set_result(None)
            else:
                done.set_exception(unsent_error())

        memory = np.frombuffer(data, np.uint8)
        try:
            request = self._send_to(inbox.addresses[target][0], memory, self._tag_of(number))
        except PeerFailed:
            finish(None)
        else:
            self._transfers.append(_Transfer(request, memory, finish, inbox))


def hub_of(transport: Transport) -> MessageHub:
    """Return the message hub of a transport, created on first use."""
    with transport.lock:
        transport.hub = transport.hub or MessageHub(transport)
    return transport.hub


class HostInboxes:
    """The inboxes of the ranks of this process; `numbers` maps ranks of a subgroup to ranks of the whole group."""

    def __init__(
        self,
        hub: MessageHub,
        group: HostGroup,
        made: Mapping[int, HostInbox],
        addresses: Sequence[tuple[int, int]],
        *,
        seconds: float,
        numbers: Sequence[int],
    ) -> None:
        self.seconds = seconds
        self._hub = hub
        self._group = group
        self._made = made
        self._addresses = addresses
        self._numbers = numbers
        for rank, inbox in made.items():
            inbox.join(rank, len(addresses), self._lost, made)
            inbox.addresses = list(addresses)

    def __call__(self, rank: int) -> HostInbox:
        """Return the inbox of a rank."""
        return self._made[rank]

    def failure(self, text: str) -> Exception:
        """Return the error for a failure of the group with this text."""
        return self._group.failure_of(text)

    def close(self, rank: int, seconds: float = 0) -> list[str]:
        """Close the inbox of a rank."""
        return self._made[rank].close(seconds)

    def open_part(self) -> HostInbox:
        """Return an inbox for a rank of a subgroup."""
        return HostInbox(self._hub)

    def join_part(self, inbox: Inbox, rank: int, ranks: Sequence[int], labels: Sequence[int]) -> HostInboxes:
        """Return the inboxes of a subgroup."""
        assert isinstance(inbox, HostInbox)
        addresses = [(self._addresses[number][0], label) for number, label in zip(ranks, labels, strict=True)]
        numbers = [self._numbers[number] for number in ranks]
        made = {rank: each for rank, each in inboxes_with(labels).items() if isinstance(each, HostInbox)}
        return HostInboxes(self._hub, self._group, made, addresses, seconds=self.seconds, numbers=numbers)

    def _lost(self, rank: int) -> Exception:
        has_ended = self._addresses[rank][0] in self._hub.failed()
        return self._group.lost_target(self._numbers[rank], "has ended" if has_ended else "left the group")
