"""Messages between mailboxes: matching, storage, large ones, and ranks that have ended."""

from __future__ import annotations

import errno
import os
import signal
import socket
import time
import uuid

import numpy as np
import pytest

from ringlet.errors import FailedPreconditionError, InvalidArgumentError
from ringlet.ipc.mailbox import Mailbox


class LostError(Exception):
    """The error about a rank that has ended."""


def mailbox(names, rank, pidfds):
    """Return a mailbox that finds the others by their names, as if they were in other processes."""
    box = Mailbox(names[rank])
    box.join(rank, len(names), LostError, {rank: box})
    box.connect(names, pidfds)
    return box


def new_names(num_ranks):
    return [uuid.uuid4().hex for _ in range(num_ranks)]


@pytest.fixture
def boxes():
    names = new_names(2)
    made = [mailbox(names, rank, lambda: {0: -1, 1: -1}) for rank in range(2)]
    yield made
    for box in made:
        box.close(5)


def send(box, values, target, tag=0):
    return box.send(np.array(values, "u1").data, f"uint8[{len(values)}]", target, tag)


def receive(box, size, source, tag=0):
    into = np.zeros(size, "u1")
    return into, box.receive(into.data, f"uint8[{size}]", source, tag)


def test_messages_are_matched_by_source_and_tag_in_order(boxes):
    zero, one = boxes
    for values, tag in (([1], 0), ([2], 7), ([3], 0), ([], 5)):
        send(zero, values, 1, tag).result(5)
    send(one, [9], 1, 7).result(5)
    for size, tag, expected in ((0, 5, []), (1, 7, [2]), (1, 0, [1]), (1, 0, [3])):
        into, done = receive(one, size, 0, tag)
        assert done.result(5) == 0
        assert into.tolist() == expected
    into, done = receive(one, 1, None, 7)
    assert (done.result(5), into.tolist()) == (1, [9])


def test_a_receive_may_come_first(boxes):
    into, done = receive(boxes[1], 2, None, 3)
    time.sleep(0.02)
    assert not done.done()
    send(boxes[0], [4, 5], 1, 3).result(5)
    assert (done.result(5), into.tolist()) == (0, [4, 5])


def test_a_large_message_waits_in_the_socket_until_it_is_received(boxes):
    values = np.arange(5_000_000) % 251
    sent = [send(boxes[0], values, 1, tag) for tag in (1, 2)]
    time.sleep(0.05)
    assert not sent[0].done()
    for tag in (2, 1):  # the first is stored, so that the second can pass
        into, done = receive(boxes[1], len(values), 0, tag)
        assert done.result(10) == 0
        assert np.array_equal(into, values)
    for done in sent:
        done.result(5)


def test_a_message_of_another_size_is_an_error_and_the_next_one_arrives(boxes):
    for size in (3, 100_000, 2):
        send(boxes[0], [0] * size, 1)
    for _ in range(2):
        _, done = receive(boxes[1], 2, 0)
        with pytest.raises(InvalidArgumentError, match=r"rank 0 sent uint8\[\d+\] with tag 0, .* into uint8\[2\]"):
            done.result(5)
    _, done = receive(boxes[1], 2, 0)
    assert done.result(5) == 0


def test_a_mailbox_that_closes_delivers_what_it_has_sent(boxes):
    send(boxes[0], [1], 1).result(5)
    early = receive(boxes[1], 1, 0, tag=9)[1]
    boxes[0].close(5)
    into, done = receive(boxes[1], 1, 0)
    assert (done.result(5), into.tolist()) == (0, [1])
    for done in (early, receive(boxes[1], 1, 0)[1], receive(boxes[1], 1, None)[1]):
        with pytest.raises(LostError):
            done.result(5)
    with pytest.raises(LostError):
        send(boxes[1], [1], 0).result(5)


def test_a_process_that_never_connected_is_noticed_when_it_ends():
    child = os.fork()
    if not child:
        time.sleep(60)
        os._exit(0)
    box = mailbox(new_names(2), 1, lambda: {0: os.pidfd_open(child)})
    done = receive(box, 1, 0)[1]
    time.sleep(0.05)
    assert not done.done()
    os.kill(child, signal.SIGKILL)
    with pytest.raises(LostError, match="0"):
        done.result(5)
    os.waitpid(child, 0)
    box.close(1)


def test_receives_end_when_their_mailbox_closes(boxes):
    started, waits = receive(boxes[1], 1 << 20, 0, tag=1)[1], receive(boxes[1], 1, 0)[1]
    send(boxes[0], np.zeros(1 << 20), 1, tag=2)
    time.sleep(0.05)
    boxes[1].close(5)
    for done in (started, waits, receive(boxes[1], 1, None)[1]):
        with pytest.raises(FailedPreconditionError, match="rank 1 has left the group"):
            done.result(5)


def test_receives_end_when_their_mailbox_is_aborted(boxes):
    waits = receive(boxes[1], 1, 0)[1]
    boxes[1].abort(LostError("aborted"))
    for done in (waits, receive(boxes[1], 1, 0)[1]):
        with pytest.raises(LostError, match="aborted"):
            done.result(5)


def test_a_receive_that_is_withdrawn_takes_no_message(boxes):
    late = receive(boxes[1], 1, 0)[1]
    assert boxes[1].withdraw(late, TimeoutError("late"))
    with pytest.raises(TimeoutError, match="late"):
        late.result(5)
    send(boxes[0], [7], 1).result(5)
    into, done = receive(boxes[1], 1, 0)
    assert (done.result(5), into.tolist()) == (0, [7])
    assert not boxes[1].withdraw(done, TimeoutError("late"))


def test_messages_that_are_not_sent_when_a_mailbox_closes_fail_within_one_deadline():
    names = new_names(3)
    pidfds = {1: os.pidfd_open(os.getpid()), 2: -1}
    others = [mailbox(names, rank, dict) for rank in (1, 2)]
    box = mailbox(names, 0, lambda: pidfds)
    unsent = [send(box, np.zeros(5_000_000), target) for target in (1, 2, 1, 2)]
    started = time.monotonic()
    box.close(0.5)
    assert time.monotonic() - started < 0.9
    assert pidfds == {1: -1, 2: -1}
    for done in (*unsent, send(box, [1], 1)):
        with pytest.raises(FailedPreconditionError, match="left the group"):
            done.result(1)
    for other in others:
        other.close(1)


def test_a_mailbox_without_a_free_file_descriptor_accepts_later(boxes, monkeypatch):
    accept, failures = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")] * 2

    def limited(listener):
        if failures:
            raise failures.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", limited)
    into, done = receive(boxes[1], 1, 0)
    send(boxes[0], [7], 1).result(5)
    assert (done.result(5), into.tolist()) == (0, [7])
    assert not failures


def test_a_receive_from_a_rank_that_left_without_a_message_ends(boxes):
    early = receive(boxes[1], 1, 0)[1]
    boxes[0].close(5)
    for done in (early, receive(boxes[1], 1, 0)[1], receive(boxes[1], 1, None)[1]):
        with pytest.raises(LostError):
            done.result(5)
