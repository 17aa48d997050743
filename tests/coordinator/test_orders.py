"""What is said in one message arrives as it was said."""

from __future__ import annotations

import os

from ringlet.coordinator.orders import Batch, Order, Report, items_of
from ringlet.engine import LocalChannel


def test_things_arrive_in_order_each_with_its_buffers_and_its_descriptor():
    one, other = LocalChannel.pair("one", "other")
    reader, writer = os.pipe()
    batch = Batch()
    batch.add(Order.DEFINE, 1, ("name", "", b"pickle"), [b"ab", b"cde"])
    batch.add(Order.TABLE, 2, descriptor=writer)
    batch.add(Order.CALL, 3, (1, None))
    one.send(*batch.take())
    os.close(writer)
    items = list(items_of(other.receive()))
    assert [(item.kind, item.number, item.content) for item in items] == [
        (Order.DEFINE, 1, ("name", "", b"pickle")),
        (Order.TABLE, 2, None),
        (Order.CALL, 3, (1, None)),
    ]
    assert [[bytes(buffer) for buffer in item.buffers] for item in items] == [[b"ab", b"cde"], [], []]
    os.write(items[1].descriptors[0], b"here")
    assert os.read(reader, 10) == b"here"
    for descriptor in (reader, *items[1].descriptors):
        os.close(descriptor)
    one.close()
    other.close()


def test_a_batch_is_full_before_a_message_would_be_too_large():
    for buffers, descriptor, count in (([b""], -1, 32768), ([bytes(1 << 19)], -1, 2), ([], 1, 48)):
        batch = Batch()
        for number in range(count):
            assert not batch.is_full
            batch.add(Report.RESULT, number, None, buffers, descriptor)
        assert batch.is_full
        assert len(batch) == count
        batch.take()
        assert not batch.is_full
        assert len(batch) == 0
