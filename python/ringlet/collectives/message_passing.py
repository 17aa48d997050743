"""Point to point: arrays as messages from one rank to another."""

from __future__ import annotations

import math
import os
import threading
import time
from ast import literal_eval
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from ringlet.collectives.adapters.array_adapters import kind_of
from ringlet.collectives.argument_parsing import root_of, whole_number_of
from ringlet.collectives.buffers import Array, as_ndarray, writeable_memory
from ringlet.collectives.member_base import MemberBase
from ringlet.collectives.work import Work
from ringlet.errors import (
    CollectiveAborted,
    DeadlineExceededError,
    FailedPreconditionError,
    InvalidArgumentError,
    WorkerLostError,
)
from ringlet.observe.stall_reports import stall_seconds

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ringlet.ipc.inbox import Inbox

T = TypeVar("T")
_POLL_SECONDS = 0.1


class MessageWork(Work[T]):
    """A send or receive that runs while the program continues. Returned by `send_async` and `recv_async`.

    `wait` also raises `DeadlineExceededError` when the time-out of the group has passed since the call, and the
    group's error, such as `WorkerLostError`, if the group fails; a receive then consumes no message.

    Examples
    --------
    >>> from ringlet.collectives import Group
    >>> member = Group(1).member(0)
    >>> sent = member.send_async([1, 2], 0, tag=7)
    >>> received = member.recv_async(tag=7)
    >>> received.wait(), received.source
    (array([1, 2]), 0)
    """

    __slots__ = ("_deadline", "_group", "_inboxes", "_rank", "_received", "_withdraw")

    def __init__(
        self,
        name: str,
        future: Future[T],
        member: MemberBase,
        received: Future[int] | None = None,
        withdraw: Callable[[Future[int], Exception], bool] | None = None,
    ) -> None:
        super().__init__(name, future)
        self._rank, self._group, self._inboxes = member.rank, member._core.group, member._inboxes
        self._deadline = time.monotonic() + self._inboxes.seconds
        self._received = received
        self._withdraw = withdraw  # fails a receive; returns False if its message is arriving

    @property
    def source(self) -> int:
        """The rank that sent the message; available once the receive is done."""
        if self._received is None or not self.is_done():
            raise FailedPreconditionError(
                f"{self._name} has no source: only a receive has one, after wait() has returned."
            )
        return self._received.result()

    def _is_done_after(self, seconds: float) -> bool:
        began = time.monotonic()
        until = min(began + seconds, self._deadline)
        is_reported = False
        while not super()._is_done_after(min(max(until - time.monotonic(), 0), _POLL_SECONDS)):
            if (failure := self._group.failure) is not None:
                self._end(self._inboxes.failure(failure))
            elif time.monotonic() >= self._deadline:
                self._end(
                    DeadlineExceededError(
                        f"{self._name} did not complete within the time-out of the group: check what the other rank "
                        "executes, or allow more time with timeout_seconds= of the group."
                    )
                )
            elif time.monotonic() >= until:
                return False
            elif not is_reported and time.monotonic() >= began + stall_seconds():
                is_reported = True
                text = f"{self._name}, of rank {self._rank}, has waited {stall_seconds():g} s."
                self._group.report_stall(text, self._rank)
        return True

    def _end(self, error: Exception) -> None:
        """Fail a receive with `error`, or wait for its message if that is arriving; for a send, raise `error`."""
        if self._withdraw is None or self._received is None:
            raise error
        if not self._withdraw(self._received, error):
            super()._is_done_after(math.inf)  # waits for the message, which is already arriving


class MessagePassing(MemberBase):
    """Member methods that send arrays from one rank to another."""

    __slots__ = ()

    def send(self, x: Any, to: int, *, tag: int = 0) -> None:
        """Send an array to one rank, which receives it with :meth:`recv`.

        Parameters
        ----------
        x : array-like
            An array of any dtype except object, of any memory layout.
        to : int
            The rank that receives; may be this rank.
        tag : int
            Messages with the same source and tag are received in the order of the calls.

        Raises
        ------
        InvalidArgumentError
            If `to` or `tag` is out of range, or `x` is an array of Python objects.
        WorkerLostError
            If the other rank has ended or left the group.
        DeadlineExceededError
            If the message was not received within the time-out of the group.

        Notes
        -----
        The call returns when `x` may be modified: at once, except for messages of more than 64 KiB to another
        process, which may first have to be received.

        Examples
        --------
        >>> from ringlet.testing import run_on_ranks
        >>> def step(member):
        ...     return member.send([1.5, 2], to=1) if member.rank == 0 else member.recv(source=0)
        >>> run_on_ranks(2, step)
        [None, array([1.5, 2. ])]
        """
        self.send_async(x, to, tag=tag).wait()

    def send_async(self, x: Any, to: int, *, tag: int = 0) -> MessageWork[None]:
        """Start a :meth:`send` and return immediately; `x` must not be written to until the call is done.

        Parameters
        ----------
        x, to, tag
            As for :meth:`send`.

        Returns
        -------
        MessageWork
            Its `wait` returns None, or raises the errors of :meth:`send`.
        """
        target, tag = self._rank_of(to, "to"), _tag_of(tag)
        array = np.asarray(as_ndarray(x), order="C")
        inbox = self._inbox()
        sent = inbox.send(_bytes_of(array, "x"), text_of(array), target, tag)
        return MessageWork(f"send to rank {target} with tag {tag}", sent, self)

    def recv(self, source: int | None = None, *, tag: int = 0, out: Array | None = None) -> Array:
        """Receive an array that a rank sends with :meth:`send`.

        Parameters
        ----------
        source : int, optional
            The rank that sends; by default any rank.
        tag : int
            The tag of the message.
        out : ndarray, optional
            Array for the message, of the same shape and dtype.

        Returns
        -------
        ndarray
            `out`, or a new array.

        Raises
        ------
        InvalidArgumentError
            If `source` or `tag` is out of range, or the message differs from `out` in shape or dtype and is then
            lost.
        WorkerLostError
            If the source, or without `source` every other rank, has ended or left the group.
        DeadlineExceededError
            If no message arrived within the time-out of the group.

        Examples
        --------
        >>> from ringlet.collectives import Group
        >>> member = Group(1).member(0)
        >>> member.send(np.eye(2), to=0, tag=3)
        >>> member.recv(tag=3, out=np.empty((2, 2)))
        array([[1., 0.],
               [0., 1.]])
        """
        return self.recv_async(source, tag=tag, out=out).wait()

    def recv_async(self, source: int | None = None, *, tag: int = 0, out: Array | None = None) -> MessageWork[Array]:
        """Start a :meth:`recv` and return immediately; `out` must not be used until the call is done.

        Parameters
        ----------
        source, tag, out
            As for :meth:`recv`.

        Returns
        -------
        MessageWork
            Its `wait` returns the array, or raises the errors of :meth:`recv`; its `source` is the rank that sent.
        """
        origin, tag = None if source is None else self._rank_of(source, "source"), _tag_of(tag)
        made: list[Array] = []

        def allocate(text: str) -> memoryview:
            made.append(array_of(text))
            return _bytes_of(made[0], "the message")

        inbox = self._inbox()
        if out is None:
            received = inbox.receive(allocate, "", origin, tag)
            stored = stored_by(received, lambda _: made[0])
        else:
            target = writeable_memory(out)
            if not target.flags.writeable:
                raise InvalidArgumentError("out is read-only: pass a writeable array, for example out.copy().")
            direct = target if target.flags.c_contiguous else np.empty(target.shape, target.dtype)
            received = inbox.receive(_bytes_of(direct, "out"), text_of(direct), origin, tag)
            stored = stored_by(received, lambda _: _copied(direct, target, out))
        who = "any rank" if origin is None else f"rank {origin}"
        return MessageWork(f"recv from {who} with tag {tag}", stored, self, received, inbox.withdraw)

    def _inbox(self) -> Inbox:
        if (failure := self._core.group.failure) is not None:
            raise self._inboxes.failure(failure)
        return self._inboxes(self.rank)

    def _rank_of(self, value: Any, name: str) -> int:
        return root_of(value, self.num_ranks, name, f"an integer below {self.num_ranks}")


def _tag_of(tag: Any) -> int:
    return whole_number_of(64, tag, "tag", "an integer")


def stored_by(
    received: Future[Any], store: Callable[[Any], T], as_error: Callable[[BaseException], BaseException] | None = None
) -> Future[T]:
    """Return a future with the result of `store`, called with the result of `received` once `received` is done.

    `as_error`, if given, converts an exception to the exception of the future.
    """
    from concurrent.futures import Future

    stored: Future[T] = Future()

    def finish(done: Future[Any]) -> None:
        try:
            result = store(done.result())
        except Exception as error:
            stored.set_exception(error if as_error is None else as_error(error))
        else:
            stored.set_result(result)

    received.add_done_callback(finish)
    return stored


def _copied(direct: Array, target: Array, out: Any) -> Any:
    """Copy a message to the caller's output if necessary, and return the output."""
    if direct is not target:
        target[...] = direct
    if (kind := kind_of(out)) is not None:
        kind.note_write(out)
    return out


def text_of(array: Array) -> str:
    """Return the dtype and the shape of an array as text.

    >>> text_of(np.ones((2, 3)))
    'float64[2, 3]'
    """
    return f"{array.dtype}{list(array.shape)}"


def array_of(text: str) -> Array:
    """Return an uninitialized array of the dtype and shape that a result of :func:`text_of` describes.

    >>> array_of("[('x', '<f4'), ('y', '<i8', (2,))][5]").dtype["y"]
    dtype(('<i8', (2,)))
    """
    name, _, sizes = text.rpartition("[")
    return np.empty(literal_eval(f"[{sizes}"), np.dtype(literal_eval(name) if name[0] in "[{(" else name))


def _bytes_of(array: Array, name: str) -> memoryview:
    if array.dtype.hasobject:
        remedy = "pass an array of numbers" if name == "out" else "send np.frombuffer(pickle.dumps(x), np.uint8)"
        raise InvalidArgumentError(f"{name} is an array of Python objects: {remedy}.")
    return array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(bytearray())


class ThreadInboxes:
    """The inboxes of a group of threads: `made`, or created by the first message.

    `numbers` maps ranks of a subgroup to ranks of the whole group.
    """

    def __init__(self, numbers: Sequence[int], seconds: float, made: dict[int, Inbox] | None = None) -> None:
        self.seconds = seconds
        self._numbers = numbers
        self._made = made or {}
        self._left: set[int] = set()
        self._lock = threading.Lock()

    def __call__(self, rank: int) -> Inbox:
        """Return the inbox of a rank."""
        if not self._made:
            from ringlet.ipc.inbox import Inbox

            with self._lock:
                if not self._made:
                    made = {number: Inbox() for number in range(len(self._numbers))}
                    for number, inbox in made.items():
                        inbox.join(number, len(made), partial(_lost, self._numbers), made)
                    for number in self._left:
                        made[number].close()
                    self._made = made
        return self._made[rank]

    def failure(self, text: str) -> Exception:
        """Return the error for a failure of the group with this text."""
        return CollectiveAborted(text)

    def close(self, rank: int, seconds: float = 0) -> list[str]:
        """Close the inbox of a rank; return the names of its pending receives. Sends to threads complete at once."""
        with self._lock:
            self._left.add(rank)
        return self._made[rank].close() if self._made else []

    def open_part(self) -> Inbox:
        """Return an inbox for a rank of a subgroup."""
        from ringlet.ipc.inbox import Inbox

        return Inbox()

    def join_part(self, inbox: Inbox, rank: int, ranks: Sequence[int], labels: Sequence[int]) -> ThreadInboxes:
        """Return the inboxes of a subgroup."""
        from ringlet.ipc.inbox import inboxes_with

        numbers, made = [self._numbers[number] for number in ranks], inboxes_with(labels)
        inbox.join(rank, len(ranks), partial(_lost, numbers), made)
        return ThreadInboxes(numbers, self.seconds, made)


def _lost(numbers: Sequence[int], rank: int) -> Exception:
    number = numbers[rank]
    text = f"rank {number} has closed its group: it sends and receives no more messages."
    return WorkerLostError(text, number, os.uname().nodename, os.getpid(), "closed its group")
