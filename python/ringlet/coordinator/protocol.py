"""Protocol between a coordinator and its workers: batches of commands, and batches of replies.

An item has a kind, the number of its subject, content, buffers and descriptors. Workers execute commands in
order, except RECALL, CANCEL and DESCRIBE, which they read even while a function runs; so the answer to RECALL doubles
as a heartbeat.

    to a worker                                         from a worker
    DEFINE   function, (its digest, pickle) + buffers   RESULT    call, (seconds, pickle) + buffers
    CALL     call, (function, arguments) + buffers      FAILURE   call, (seconds, Failure)
    MAKE     resource, (function, arguments) + buffers  MADE      resource
    HOLD     resource, pickle + buffers                 NOT_MADE  resource, Failure
    FETCH    resource                                   FETCHED   resource, pickle + buffers
    TABLE    variable, server index (or + descriptor)   UNFETCHED resource, Failure
    FORGET   -, (kind, number) pairs                    RETURNED  -, calls that were not begun
    ENTER    -, pickle of the strategy
    RECALL   -, answered by RETURNED                    READY     -
    CANCEL   -, calls to cancel                         CANCELLED call, which has ended early
    DESCRIBE -, answered by DESCRIBED                   DESCRIBED -, the stack of the running function
"""

from __future__ import annotations

import enum
import pickle
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ringlet.ipc import Message
from ringlet.ipc.channel import OpenFile
from ringlet.ipc.pickle_codec import Unsendable

# A message has at most 65536 buffers, 64 descriptors and a header of 1 GiB. An item may use half of the buffers and of
# the header, so that it fits in any batch that is not full.
_MOST_BUFFERS = 32768
_MOST_DESCRIPTORS = 48
_MOST_PICKLED_BYTES = 1 << 29
_MOST_BYTES = 1 << 20


class Command(enum.IntEnum):
    """Kinds of items sent to a worker."""

    DEFINE = 0
    CALL = 1
    MAKE = 2
    HOLD = 3
    FETCH = 4
    TABLE = 5
    FORGET = 6
    ENTER = 7
    RECALL = 8
    CANCEL = 9
    DESCRIBE = 10


class Reply(enum.IntEnum):
    """Kinds of items sent by a worker."""

    RESULT = 0
    FAILURE = 1
    MADE = 2
    NOT_MADE = 3
    FETCHED = 4
    UNFETCHED = 5
    RETURNED = 6
    READY = 7
    CANCELLED = 8
    DESCRIBED = 9


class Item(NamedTuple):
    """One command or reply."""

    kind: int
    number: Any
    content: Any
    buffers: Sequence[Any]
    descriptors: Sequence[int]


def check_size(header: bytes, buffers: Sequence[Any]) -> None:
    """Raise `Unsendable` if a pickle is too large for one item."""
    if len(buffers) > _MOST_BUFFERS:
        raise Unsendable(
            f"{len(buffers)} arrays are too many: at most {_MOST_BUFFERS} can be sent at a time. Concatenate them"
        )
    if len(header) > _MOST_PICKLED_BYTES:
        raise Unsendable(
            f"{len(header)} bytes of plain objects are too many: at most {_MOST_PICKLED_BYTES} can be sent at a time. "
            "Store them in an array, whose size is limited by memory only"
        )


class Batch:
    """Items to send in one message."""

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
        """Whether the batch should be sent before another item is added."""
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
        """Add one item; a long pickle is its `content`, or the last element of a tuple `content`."""
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
        """Return the message of the added items, and clear the batch."""
        message = pickle.dumps(self._items, protocol=5), self._buffers, self._files
        self._start()
        return message


def items_of(message: Message) -> Iterator[Item]:
    """Yield the items of a message."""
    buffers, descriptors = iter(message.buffers), iter(message.descriptors)
    for kind, number, content, num_buffers, num_descriptors in pickle.loads(message.header):
        yield Item(
            kind,
            number,
            content,
            [next(buffers) for _ in range(num_buffers)] if num_buffers else (),
            [next(descriptors) for _ in range(num_descriptors)] if num_descriptors else (),
        )
