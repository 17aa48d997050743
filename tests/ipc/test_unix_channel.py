"""The channel between processes of one machine."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import pickle
import resource
import select
import signal
import socket
import threading
import time
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.ipc import ChannelClosed, LocalChannel
from ringlet.ipc.frames import frame_start
from ringlet.ipc.unix_sockets import pair
from tests.processes.harness import PATIENCE_SECONDS, descriptors_of


@pytest.fixture
def ends():
    one, other = LocalChannel.pair("one", "other")
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def raw():
    """A channel, and the socket at its other end."""
    ours, theirs = pair(socket.SOCK_STREAM)
    channel = LocalChannel(ours, "stranger")
    with theirs:
        yield channel, theirs
    channel.close()


def received_by(channel, deliver):
    """The messages that arrive while somebody sends, until one that is empty."""
    found = []

    def receive():
        while (message := channel.receive()).header:
            found.append((message.header, [bytes(buffer) for buffer in message.buffers]))

    thread = threading.Thread(target=receive)
    thread.start()
    deliver()
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    return found


contents = st.lists(st.tuples(st.binary(min_size=1, max_size=100), st.lists(st.binary(max_size=100_000), max_size=3)))


@given(contents, st.booleans())
def test_messages_arrive_whole_and_in_order(sent, waits):
    one, other = LocalChannel.pair("one", "other")

    def deliver():
        for header, buffers in sent:
            (one.send if waits else one.post)(header, buffers)
        one.send(b"")

    assert received_by(other, deliver) == sent
    one.close()
    other.close()


def test_many_small_messages_come_with_one_reading(ends):
    for number in range(100):
        ends[0].send(b"%d" % number)
    assert select.select([ends[1]], [], [], 0)[0]
    assert ends[1].poll().header == b"0"
    assert not select.select([ends[1]], [], [], 0)[0]
    assert [ends[1].poll().header for _ in range(99)] == [b"%d" % number for number in range(1, 100)]
    assert ends[1].poll() is None


def test_messages_of_several_threads_do_not_mix(ends):
    def deliver():
        def send(mark):
            for _ in range(50):
                ends[0].send(mark, [mark * 50_000])

        threads = [threading.Thread(target=send, args=(mark,)) for mark in (b"a", b"b", b"c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE_SECONDS)
        ends[0].send(b"")

    found = received_by(ends[1], deliver)
    assert len(found) == 150
    assert all(buffer == header * 50_000 for header, (buffer,) in found)


def test_arrays_of_any_dtype_are_sent_from_their_own_memory_and_can_be_written_to_afterwards(ends):
    array = np.arange(10.0).reshape(2, 5)
    ends[0].send(b"", [array])
    (buffer,) = ends[1].receive().buffers
    buffer.view(np.float64)[0] = 7
    assert buffer.view(np.float64).tolist() == [7, *range(1, 10)]


def test_more_buffers_than_the_system_takes_at_once_arrive(ends):
    ends[0].send(b"", [b"%d" % number for number in range(5000)])
    assert [bytes(buffer) for buffer in ends[1].receive().buffers] == [b"%d" % number for number in range(5000)]


class Kept:
    """A file that is closed with it."""

    def __init__(self, file):
        self._file = file

    def fileno(self):
        return self._file

    def __del__(self):
        os.close(self._file)


def test_descriptors_arrive_with_their_message(ends):
    files = [os.memfd_create(f"file {number}") for number in range(6)]
    for number, file in enumerate(files):
        os.write(file, b"%d" % number)
    ends[0].send(b"none")
    ends[0].post(b"two", [b"x" * 300_000], files[:2])
    for file in files[2:]:
        ends[0].post(b"one", (), [Kept(file)])  # which nobody else keeps
    found = []
    while len(found) < 6:
        ends[0].flush()
        message = ends[1].poll()
        found += [] if message is None else [message]
    contents = [[os.pread(file, 1, 0) for file in message.descriptors] for message in found]
    assert contents == [[], [b"0", b"1"], [b"2"], [b"3"], [b"4"], [b"5"]]
    for file in files[:2]:
        os.close(file)
    for message in found:
        assert not any(os.get_inheritable(file) for file in message.descriptors)
        for file in message.descriptors:
            os.close(file)


# --- the end --------------------------------------------------------------------------------------------------------


def test_what_was_sent_before_the_end_still_arrives(ends):
    ends[0].send(b"last")
    ends[0].close()
    assert ends[1].is_closed
    assert ends[1].receive().header == b"last"
    for call in (ends[1].receive, ends[1].poll, ends[1].flush, lambda: ends[1].send(b"x")):
        with pytest.raises(ChannelClosed, match=r"^one has closed its connection$") as caught:
            call()
    assert caught.value.peer == "one"
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert ends[1].fileno() == -1


def test_who_closes_a_channel_hears_that_it_was_here(ends):
    ends[0].close()
    ends[0].close()
    with pytest.raises(ChannelClosed, match="other is not connected: the channel was closed by this process"):
        ends[0].receive()


def test_a_channel_was_closed_here_from_when_others_can_see_it(ends):
    """A thread that polls wakes as soon as the connection is shut down, before it is closed."""
    channel, seen = ends[0], []

    class Connection(socket.socket):
        def shutdown(self, how):
            seen.append(channel.was_closed_here)

    channel._connection = Connection(fileno=channel._connection.detach())
    assert not channel.was_closed_here
    channel.close()
    assert seen == [True]


def test_a_channel_closed_by_another_thread_wakes_the_one_that_waits(ends):
    def close():
        time.sleep(0.05)
        ends[0].close()

    threading.Thread(target=close).start()
    started = time.monotonic()
    with pytest.raises(ChannelClosed, match="was closed by this process"):
        ends[0].receive()
    assert time.monotonic() - started < PATIENCE_SECONDS / 2


def test_posting_to_a_peer_that_does_not_read_returns_at_once(ends):
    assert ends[0].post(b"small")
    assert not ends[0].post(b"", [bytes(10_000_000)])
    assert not ends[0].flush()
    assert ends[1].receive().header == b"small"
    while ends[1].poll() is None:
        ends[0].flush()
    assert ends[0].flush()


def test_a_message_whose_channel_is_closed_meanwhile_is_an_error_of_its_sender(ends):
    threading.Timer(0.05, ends[0].close).start()
    with pytest.raises(ChannelClosed, match="the channel was closed by this process"):
        ends[0].send(b"", [bytes(10_000_000)])


def test_a_channel_can_be_closed_by_who_interrupts_its_use(ends):
    class Interrupting:
        def fileno(self):
            ends[0].close()
            return 0

    with pytest.raises(ChannelClosed, match="the channel was closed by this process"):
        ends[0].send(b"", (), [Interrupting()])


@pytest.mark.parametrize("number", [errno.ETOOMANYREFS, errno.ENOBUFS])
def test_descriptors_that_the_system_does_not_take_now_are_sent_later(ends, number):
    errors = [OSError(number, "not now")]

    class Refused:
        def fileno(self):
            if errors:
                raise errors.pop()
            return 0

    assert not ends[0].post(b"file", (), [Refused()])
    assert ends[0].flush()
    (descriptor,) = ends[1].receive().descriptors
    os.close(descriptor)


def test_a_child_that_is_forked_while_another_thread_uses_the_channel_does_not_wait_for_it(ends):
    is_held, is_over = threading.Event(), threading.Event()

    def use():
        with ends[0]._lock:
            is_held.set()
            is_over.wait(PATIENCE_SECONDS)

    thread = threading.Thread(target=use)
    thread.start()
    assert is_held.wait(PATIENCE_SECONDS)
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_SECONDS))
        for call in (ends[0].flush, ends[0].receive, lambda: ends[0].post(b"x")):
            with contextlib.suppress(ChannelClosed):
                call()
        ends[0].close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    is_over.set()
    thread.join(PATIENCE_SECONDS)
    assert status == 0


def test_nothing_is_left_of_a_channel_with_messages_on_their_way():
    before = descriptors_of()
    one, other = LocalChannel.pair("one", "other")
    array = np.zeros(10_000_000, np.uint8)
    other.post(b"", [array], [0])
    other.post(b"", (), [0, 1])
    assert one.poll() is None
    one.close()
    other.close()
    assert descriptors_of() == before
    reference = weakref.ref(array)
    del array
    gc.collect()
    assert reference() is None


def test_a_forked_child_cannot_use_the_channel_and_closing_it_there_changes_nothing(ends):
    child = os.fork()
    if child == 0:
        try:
            ends[0].send(b"x")
        except ChannelClosed:
            ends[0].close()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    ends[0].send(b"mine")
    assert ends[1].receive().header == b"mine"


# --- peers that send nonsense -----------------------------------------------------------------------------------------


BOMB = b"\x80\x04cposix\nsystem\nX\x10\x00\x00\x00touch /tmp/bombed\x85R."


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n" * 4, BOMB * 2, bytes(28)])
def test_who_sends_nonsense_is_closed_and_named(raw, said):
    raw[1].send(said)
    with pytest.raises(ChannelClosed, match=r"^stranger has sent data that is not a ringlet message$"):
        raw[0].receive()
    assert raw[1].recv(100) == b""


def test_descriptors_that_were_announced_and_not_sent_are_missed(raw):
    raw[1].send(frame_start(0, b"", [], 1))
    with pytest.raises(ChannelClosed, match="has announced 1 descriptors, but sent 0"):
        raw[0].receive()


def test_descriptors_that_nobody_announced_do_not_pile_up(raw):
    before = descriptors_of()

    def send_many():
        for byte in frame_start(0, b"header", [], 0)[:-1]:
            socket.send_fds(raw[1], [bytes([byte])], [0] * 60)
            raw[0].poll()

    with pytest.raises(ChannelClosed, match="has sent descriptors without a message"):
        send_many()
    assert descriptors_of() < before


def test_descriptors_for_which_there_is_no_room_are_missed_at_once():
    child = os.fork()
    if child == 0:
        signal.alarm(int(PATIENCE_SECONDS))
        one, other = LocalChannel.pair("one", "other")
        other.send(b"x", (), [0, 0])
        first_free = os.dup(0)
        os.close(first_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        try:
            one.receive()
        except OSError as error:
            os._exit(0 if error.errno == errno.EMFILE and one.fileno() < 0 else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


def test_half_a_message_is_waited_for(raw):
    start = frame_start(0, b"header", [], 0)
    raw[1].send(start[:-1])
    assert raw[0].poll() is None
    raw[1].send(start[-1:])
    assert raw[0].poll().header == b"header"
