"""Messages between inboxes of one process."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.ipc.inbox import Inbox


class LostError(Exception):
    """The error about a rank that has left."""


@pytest.fixture
def boxes():
    made = {rank: Inbox() for rank in range(3)}
    for rank, box in made.items():
        box.join(rank, 3, LostError, made)
    return list(made.values())


def send(box, values, target, tag=0):
    return box.send(np.array(values, "u1").data, f"uint8[{len(values)}]", target, tag)


def test_memory_may_be_allocated_when_the_message_is_known(boxes):
    made = []

    def allocate(text):
        made.append((text, bytearray(2)))
        return memoryview(made[0][1])

    send(boxes[1], [4, 5], 0).result(0)
    assert boxes[0].receive(allocate, "", None, 0).result(0) == 1
    assert made == [("uint8[2]", b"\4\5")]


def test_an_error_of_the_allocation_is_that_of_the_receive(boxes):
    done = boxes[0].receive(lambda text: memoryview(bytes(1 // 0)), "", None, 0)
    send(boxes[1], [4], 0).result(0)
    with pytest.raises(ZeroDivisionError):
        done.result(0)


def test_errors_use_the_numbers_of_the_ranks(boxes):
    boxes[0].numbers = [5, 6, 7]
    send(boxes[1], [4], 0).result(0)
    with pytest.raises(InvalidArgumentError, match=r"rank 6 sent uint8\[1\] with tag 0"):
        boxes[0].receive(memoryview(bytearray(2)), "uint8[2]", 1, 0).result(0)


def test_an_inbox_that_closes_ends_the_receives_of_others_and_its_own(boxes):
    waits, any_source, own = (
        box.receive(memoryview(bytearray(1)), "uint8[1]", source, 0)
        for box, source in ((boxes[0], 1), (boxes[0], None), (boxes[1], 2))
    )
    assert boxes[1].close() == ["recv from rank 2"]
    with pytest.raises(LostError, match="1"):
        waits.result(0)
    with pytest.raises(FailedPreconditionError, match="rank 1 has left the group: its receives"):
        own.result(0)
    assert not any_source.done()  # rank 2 may send
    send(boxes[2], [4], 0).result(0)
    assert any_source.result(0) == 2
    with pytest.raises(LostError, match="1"):
        send(boxes[0], [4], 1).result(0)
    with pytest.raises(FailedPreconditionError, match="rank 1 has left the group: it can no longer send"):
        send(boxes[1], [4], 0).result(0)


def test_closing_in_a_forked_child_waits_for_no_lock_of_the_parent(boxes):
    with boxes[0]._changed:
        child = os.fork()
        if not child:
            thread = threading.Thread(target=boxes[0].close)
            thread.start()
            thread.join(5)
            os._exit(thread.is_alive())
    assert os.waitpid(child, 0)[1] == 0
