"""Inbox: the messages to one rank, matched by source and tag; messages between ranks of one process are copied."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

from ringlet.errors import FailedPreconditionError, InvalidArgumentError

Place = memoryview | Callable[[str], memoryview]


@dataclass
class Receive:
    """A pending receive; the result of its future `done` is the source.

    `into` is the memory for a message whose description equals `text`, or a function that returns memory for any
    description.
    """

    into: Place
    text: str
    source: int | None
    tag: int
    done: Future[int] = field(default_factory=Future)
    error: Exception | None = None

    def matches(self, source: int, tag: int) -> bool:
        """Return whether the receive accepts a message with this source and tag."""
        return self.source in (None, source) and self.tag == tag

    def place(self, text: str, number: int) -> memoryview | None:
        """Return the memory for a message from rank `number`, or set `error` and return None if it does not fit."""
        if isinstance(self.into, memoryview) and text == self.text:
            return self.into
        try:
            if not isinstance(self.into, memoryview):
                return self.into(text)
            self.error = InvalidArgumentError(
                f"rank {number} sent {text} with tag {self.tag}, but this rank receives into {self.text}: use the "
                "same dtype and shape on both ranks."
            )
        except Exception as error:
            self.error = error
        return None

    def finish(self, source: int) -> None:
        """End the receive after its message has arrived."""
        if self.error is None:
            self.done.set_result(source)
        else:
            self.done.set_exception(self.error)


class Inbox:
    """The messages to one rank, including messages that arrive before `join`.

    `label` is a random 64-bit number by which `inboxes_with` finds the inbox.
    """

    def __init__(self) -> None:
        self.label = int.from_bytes(os.urandom(8), "little", signed=True)
        _inboxes[self.label] = self
        self._pid = os.getpid()
        self.rank, self.numbers = 0, [0]
        self._peers: Mapping[int, Inbox] = {}
        self._changed = threading.Condition()
        self._waiting: list[Receive] = []
        self._stored: list[tuple[int, int, str, Any]] = []  # source, tag, description, content
        self._connected: Mapping[int, object] = {}  # sources that are ranks of other processes
        self._ended: set[int] = set()
        self._refused: Exception | None = None  # the error of receives after `abort` or `close`
        self._is_closing = self._is_closed = False

    def join(self, rank: int, num_ranks: int, lost: Callable[[int], Exception], peers: Mapping[int, Inbox]) -> None:
        """Assign a rank to this inbox; `peers` are the inboxes of all ranks in this process, including this inbox.

        `lost` returns the error for a rank that has left or exited. Other errors name rank ``r`` as `numbers[r]`.
        """
        self.rank, self.numbers = rank, list(range(num_ranks))
        self._lost_error = lost
        self._peers = peers

    def send(self, data: memoryview, text: str, target: int, tag: int) -> Future[None]:
        """Start sending bytes, described by `text`; the bytes must not change until the future is done."""
        done: Future[None] = Future()
        if self._is_closing:
            done.set_exception(
                FailedPreconditionError(f"rank {self.numbers[self.rank]} has left the group: it can no longer send.")
            )
        elif target in self._peers and self._peers[target]._deliver(self.rank, data, text, tag):
            done.set_result(None)
        else:
            done.set_exception(self._lost_error(target))
        return done

    def receive(self, into: Place, text: str, source: int | None, tag: int) -> Future[int]:
        """Start receiving from one source, or from any if `source` is None; the result of the future is the source."""
        wanted = Receive(into, text, source, tag)
        with self._changed:
            if self._refused is not None:
                wanted.done.set_exception(self._refused)
                return wanted.done
            for number, (origin, its_tag, its_text, data) in enumerate(self._stored):
                if wanted.matches(origin, its_tag):
                    del self._stored[number]
                    self._store(wanted, origin, its_text, data)
                    return wanted.done
            self._waiting.append(wanted)
            self._fail_hopeless()
            self._changed.notify_all()
        return wanted.done

    def withdraw(self, done: Future[int], error: Exception) -> bool:
        """Fail a waiting receive with an error; return False if the receive no longer waits."""
        with self._changed:
            for number, wanted in enumerate(self._waiting):
                if wanted.done is done:
                    del self._waiting[number]
                    done.set_exception(error)
                    return True
        return False

    def abort(self, error: Exception) -> None:
        """Fail waiting and later receives with an error."""
        with self._changed:
            self._refused = self._refused or error
            self._fail_hopeless()

    def close(self, seconds: float = 0) -> list[str]:
        """Fail the pending receives, and return their descriptions.

        `seconds` is unused: messages between threads have already been sent.
        """
        if self._pid != os.getpid():  # in a forked child, the parent's locks may never be released
            return []
        unfinished = self._end()
        self._leave_peers()
        return unfinished

    def _leave_peers(self) -> None:
        peers, self._peers = self._peers, {}
        for rank, peer in peers.items():
            if rank != self.rank:
                with peer._changed:
                    peer._ended.add(self.rank)
                    peer._fail_hopeless()

    def _end(self) -> list[str]:
        with self._changed:
            names = [
                f"recv from {'any rank' if wanted.source is None else f'rank {self.numbers[wanted.source]}'}"
                for wanted in self._waiting
            ]
            self._is_closing = self._is_closed = True
            self._refused = self._refused or FailedPreconditionError(
                f"rank {self.numbers[self.rank]} has left the group: its receives have ended."
            )
            self._fail_hopeless()
            self._changed.notify_all()
        return names

    def _deliver(self, source: int, data: memoryview, text: str, tag: int) -> bool:
        """Copy a message to the receive that matches it, or store it; return whether the inbox is open."""
        with self._changed:
            if self._is_closed:
                return False
            wanted = self._matching(source, tag)
            if wanted is None:
                self._stored.append((source, tag, text, bytes(data)))
            else:
                self._store(wanted, source, text, data)
        return True

    def _store(self, wanted: Receive, source: int, text: str, data: Any) -> None:
        if (place := wanted.place(text, self.numbers[source])) is not None:
            place[:] = data
        wanted.finish(source)

    def _matching(self, source: int, tag: int) -> Receive | None:
        for number, wanted in enumerate(self._waiting):
            if wanted.matches(source, tag):
                return self._waiting.pop(number)
        return None

    def _fail_hopeless(self) -> None:
        """Fail the receives whose source has ended and has no open connection.

        After `abort` or `close`, fail all receives.
        """
        if self._refused is not None:
            while self._waiting:
                self._waiting.pop().done.set_exception(self._refused)
            return
        ended = self._ended - self._connected.keys()
        others = set(range(len(self.numbers))) - {self.rank}
        for wanted in list(self._waiting):
            source = wanted.source
            if source in ended or (source is None and others and others <= ended):
                self._waiting.remove(wanted)
                wanted.done.set_exception(self._lost_error(min(others) if source is None else source))


_inboxes: WeakValueDictionary[int, Inbox] = WeakValueDictionary()


def inboxes_with(labels: Sequence[int]) -> dict[int, Inbox]:
    """Return this process's inboxes with one of these labels, keyed by the position of the label in `labels`."""
    found = ((rank, _inboxes.get(label)) for rank, label in enumerate(labels))
    return {rank: inbox for rank, inbox in found if inbox is not None}


def unsent_error() -> Exception:
    """Return the error of a message that was not sent before its rank left the group."""
    return FailedPreconditionError(
        "this rank left the group before the message was sent: call wait() on the send first."
    )
