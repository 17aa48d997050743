"""What is said in one message arrives as it was said."""

from __future__ import annotations

import os

import pytest

from ringlet.coordinator import protocol
from ringlet.coordinator.protocol import Batch, Command, Reply, check_size, items_of
from ringlet.ipc import LocalChannel
from ringlet.ipc.pickle_codec import Unsendable


def test_things_arrive_in_order_each_with_its_buffers_and_its_descriptor():
    one, other = LocalChannel.pair("one", "other")
    reader, writer = os.pipe()
    batch = Batch()
    batch.add(Command.DEFINE, 1, ("name", "", b"pickle"), [b"ab", b"cde"])
    batch.add(Command.TABLE, 2, file=writer)
    batch.add(Command.CALL, 3, (1, None))
    one.send(*batch.take())
    os.close(writer)
    items = list(items_of(other.receive()))
    assert [(item.kind, item.number, item.content) for item in items] == [
        (Command.DEFINE, 1, ("name", "", b"pickle")),
        (Command.TABLE, 2, None),
        (Command.CALL, 3, (1, None)),
    ]
    assert [[bytes(buffer) for buffer in item.buffers] for item in items] == [[b"ab", b"cde"], [], []]
    os.write(items[1].descriptors[0], b"here")
    assert os.read(reader, 10) == b"here"
    for descriptor in (reader, *items[1].descriptors):
        os.close(descriptor)
    one.close()
    other.close()


def test_a_batch_is_full_before_a_message_would_be_too_large():
    cases = (
        # content, buffers, file, how many are enough
        (None, [b""], None, 32768),
        (None, [bytes(1 << 19)], None, 2),
        ((0.1, bytes(1 << 19)), [], None, 2),
        (bytes(1 << 19), [], None, 2),
        (None, [], 1, 48),
    )
    for content, buffers, file, count in cases:
        batch = Batch()
        for number in range(count):
            assert not batch.is_full
            batch.add(Reply.RESULT, number, content, buffers, file)
        assert batch.is_full
        assert len(batch) == count
        batch.take()
        assert not batch.is_full
        assert len(batch) == 0


def test_one_thing_that_is_too_much_for_a_message_is_refused(monkeypatch):
    with pytest.raises(
        Unsendable, match=r"32769 arrays are too many: at most 32768 can be sent at a time\. Concatenate them"
    ):
        check_size(b"", [b""] * 32769)
    check_size(b"", [b""] * 32768)
    monkeypatch.setattr(protocol, "_MOST_PICKLED_BYTES", 5)
    with pytest.raises(
        Unsendable, match=r"6 bytes of plain objects are too many: at most 5 .*\. Store them in an array"
    ):
        check_size(b"abcdef", [])
