"""What a coordinator and its workers say to each other: many short things in one message.

Each thing is a kind, the number that it is about, what more there is to say, and the buffers and descriptors that
belong to it. Workers do what they are told in that order; a RECALL alone is heeded at once.

    to a worker                                         from a worker
    DEFINE   function, (its digest, pickle) + buffers   RESULT    call, (seconds, pickle) + buffers
    CALL     call, (function, arguments) + buffers      FAILURE   call, (seconds, Failure)
    MAKE     resource, (function, arguments) + buffers  MADE      resource
    HOLD     resource, pickle + buffers                 NOT_MADE  resource, Failure
    FETCH    resource                                   FETCHED   resource, pickle + buffers
    TABLE    variable + its descriptor                  UNFETCHED resource, Failure
    FORGET   which table, numbers                       RETURNED  -, calls that it has not begun
    ENTER    -, pickle of the strategy
    RECALL   -                                          READY     -
"""

from __future__ import annotations

import enum
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ringlet.engine import Message

__all__ = ["Batch", "Item", "Order", "Report", "items_of"]

# A message takes at most 65536 buffers and 64 descriptors.
_MOST_BUFFERS = 32768
_MOST_DESCRIPTORS = 48
_MOST_BYTES = 1 << 20


class Order(enum.IntEnum):
    """What a worker is told."""

    DEFINE = 0
    CALL = 1
    MAKE = 2
    HOLD = 3
    FETCH = 4
    TABLE = 5
    FORGET = 6
    ENTER = 7
    RECALL = 8


class Report(enum.IntEnum):
    """What a worker tells."""

    RESULT = 0
    FAILURE = 1
    MADE = 2
    NOT_MADE = 3
    FETCHED = 4
    UNFETCHED = 5
    RETURNED = 6
    READY = 7


class Item(NamedTuple):
    """One thing that was said."""

    kind: int
    number: Any
    content: Any
    buffers: Sequence[Any]
    descriptors: Sequence[int]


class Batch:
    """Things to say in one message.

    Examples
    --------
    >>> from ringlet.engine import LocalChannel
    >>> one, other = LocalChannel.pair("one", "other")
    >>> batch = Batch()
    >>> batch.add(Order.FETCH, 3)
    >>> batch.add(Order.HOLD, 4, b"pickle", [b"abc"])
    >>> one.send(*batch.take())
    >>> [(item.kind, item.number, len(item.buffers)) for item in items_of(other.receive())]
    [(4, 3, 0), (3, 4, 1)]
    >>> one.close()
    >>> other.close()
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._items: list[tuple[int, Any, Any, int, int]] = []
        self._buffers: list[Any] = []
        self._descriptors: list[int] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        """Whether it should be sent before more is added."""
        return (
            self._bytes >= _MOST_BYTES
            or len(self._buffers) >= _MOST_BUFFERS
            or len(self._descriptors) >= _MOST_DESCRIPTORS
        )

    def add(
        self, kind: int, number: Any = None, content: Any = None, buffers: Sequence[Any] = (), descriptor: int = -1
    ) -> None:
        """Add one thing.

        Parameters
        ----------
        kind : Order or Report
        number, content : object
            Plain ones, which pickle without looking at classes.
        buffers : sequence of buffers
        descriptor : int
            An open file that goes along; -1 for none.
        """
        self._items.append((int(kind), number, content, len(buffers), int(descriptor >= 0)))
        if buffers:
            self._buffers.extend(buffers)
            self._bytes += sum(memoryview(buffer).nbytes for buffer in buffers)
        if descriptor >= 0:
            self._descriptors.append(descriptor)

    def take(self) -> tuple[bytes, list[Any], list[int]]:
        """Give the message of what was added, and begin anew."""
        message = pickle.dumps(self._items, protocol=5), self._buffers, self._descriptors
        self._start()
        return message


def items_of(message: Message) -> Iterator[Item]:
    """Give what a message says, one after the other."""
    buffers, descriptors = iter(message.buffers), iter(message.descriptors)
    for kind, number, content, num_buffers, num_descriptors in pickle.loads(message.header):
        yield Item(
            kind,
            number,
            content,
            [next(buffers) for _ in range(num_buffers)] if num_buffers else (),
            [next(descriptors) for _ in range(num_descriptors)] if num_descriptors else (),
        )
