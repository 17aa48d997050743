"""What a coordinator and its workers say to each other: many short things in one message.

Each thing is a kind, the number that it is about, what more there is to say, and the buffers and descriptors that
belong to it. Workers do what they are told in that order; a RECALL alone is heeded at once, so that its answer tells
that a worker lives, whatever it runs.

    to a worker                                         from a worker
    DEFINE   function, (its digest, pickle) + buffers   RESULT    call, (seconds, pickle) + buffers
    CALL     call, (function, arguments) + buffers      FAILURE   call, (seconds, Failure)
    MAKE     resource, (function, arguments) + buffers  MADE      resource
    HOLD     resource, pickle + buffers                 NOT_MADE  resource, Failure
    FETCH    resource                                   FETCHED   resource, pickle + buffers
    TABLE    variable + its descriptor                  UNFETCHED resource, Failure
    FORGET   which table, numbers                       RETURNED  -, calls that it has not begun
    ENTER    -, pickle of the strategy
    RECALL   -, answered by RETURNED                    READY     -
"""

from __future__ import annotations

import enum
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ringlet.ipc import Message
from ringlet.ipc.call_codec import Unsendable
from ringlet.ipc.channel import OpenFile

__all__ = ["Batch", "Item", "Order", "Report", "check_size", "items_of"]

# A message takes at most 65536 buffers, 64 descriptors and 1 GiB besides the buffers: one thing half of that.
_MOST_BUFFERS = 32768
_MOST_DESCRIPTORS = 48
_MOST_PICKLED_BYTES = 1 << 29
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


def check_size(header: bytes, buffers: Sequence[Any]) -> None:
    """Refuse what is too much for one thing to say.

    Raises
    ------
    Unsendable

    Examples
    --------
    >>> check_size(b"pickle", [b"abc"])
    """
    if len(buffers) > _MOST_BUFFERS:
        raise Unsendable(f"{len(buffers)} arrays are too many: at most {_MOST_BUFFERS} travel at a time. Join them")
    if len(header) > _MOST_PICKLED_BYTES:
        raise Unsendable(
            f"{len(header)} bytes of plain objects are too many: at most {_MOST_PICKLED_BYTES} travel at a time. Put "
            "them in an array, which may have as many as there is memory for"
        )


class Batch:
    """Things to say in one message.

    Examples
    --------
    >>> from ringlet.ipc import LocalChannel
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
        self._files: list[OpenFile] = []
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def is_full(self) -> bool:
        """Whether it should be sent before more is added."""
        return (
            self._bytes >= _MOST_BYTES or len(self._buffers) >= _MOST_BUFFERS or len(self._files) >= _MOST_DESCRIPTORS
        )

    def add(
        self,
        kind: int,
        number: Any = None,
        content: Any = None,
        buffers: Sequence[Any] = (),
        file: OpenFile | None = None,
    ) -> None:
        """Add one thing.

        Parameters
        ----------
        kind : Order or Report
        number, content : object
            Plain ones, which pickle without looking at classes. What is long in a content is its end.
        buffers : sequence of buffers
        file : OpenFile, optional
            Goes along.
        """
        self._items.append((int(kind), number, content, len(buffers), int(file is not None)))
        pickled = content[-1] if type(content) is tuple else content
        if type(pickled) is bytes:
            self._bytes += len(pickled)
        if buffers:
            self._buffers.extend(buffers)
            self._bytes += sum(memoryview(buffer).nbytes for buffer in buffers)
        if file is not None:
            self._files.append(file)

    def take(self) -> tuple[bytes, list[Any], list[OpenFile]]:
        """Give the message of what was added, and begin anew."""
        message = pickle.dumps(self._items, protocol=5), self._buffers, self._files
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
