"""Programs that are no ranks connect to the socket of a job (reliability E6)."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest

from ringlet.rendezvous.handshake import Hello
from ringlet.rendezvous.job_key import Job
from tests.processes.harness import descriptors_of, eventually
from tests.rendezvous.ranks import all_met, start, wait_for_listener


@pytest.fixture
def strangers():
    """Connections that are closed at the end of the test."""
    with contextlib.ExitStack() as connections:
        yield connections


def connect(strangers, address):
    connection = strangers.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    connection.settimeout(20)
    end = time.monotonic() + 20
    while True:
        try:
            connection.connect(address)
            return connection
        except BlockingIOError:  # more are waiting than the system queues
            assert time.monotonic() < end, "nobody is let in"
            time.sleep(0.001)


def is_dropped(connection):
    try:
        return connection.recv(65536) == b"" or is_dropped(connection)
    except ConnectionResetError:
        return True


# Things to say for strangers: nothing (they are given a second for that), no JSON, deep JSON, no object, a pickle that
# would run a program.
BOMB = b"\x80\x04cposix\nsystem\nX\x10\x00\x00\x00touch /tmp/bombed\x85R."
WORDS = [
    b"",
    b"GET / HTTP/1.1\r\n",
    b"[" * 60000,
    b"[1]",
    BOMB,
    b'{"kind": "hello"}',
    b'{"kind": "hello", "ringlet": 3}',
]


@pytest.mark.parametrize("is_complete", [False, True])
def test_a_thousand_strangers_are_dropped_and_the_job_is_unharmed(processes, strangers, name, is_complete):
    started = [start(processes, name, rank, 2) for rank in range(2 if is_complete else 1)]
    wait_for_listener(name)
    if is_complete:
        all_met(started)
    address = Job(name, "", 2).address()
    for turn in range(5):
        some = []
        for number in range(200):
            word = WORDS[number % len(WORDS)] if turn == 0 else WORDS[1 + number % (len(WORDS) - 1)]
            some.append(connect(strangers, address))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                some[-1].send(word) if word else None
        assert all(is_dropped(connection) for connection in some)
        strangers.close()
    assert eventually(lambda: descriptors_of(started[0].pid) < 40, 5)
    if not is_complete:
        assert len(all_met([started[0], start(processes, name, 1, 2)])) == 1
    for process in started:
        process.say()
        assert process.wait() == 0
    assert not Path("/tmp/bombed").exists()


def test_a_stranger_who_says_nothing_is_dropped_within_a_second(processes, strangers, name):
    start(processes, name, 0, 2)
    wait_for_listener(name)
    connection = connect(strangers, Job(name, "", 2).address())
    started = time.monotonic()
    assert is_dropped(connection)
    assert time.monotonic() - started < 1.5


def test_hellos_of_ranks_that_cannot_be_are_dropped(processes, strangers, name):
    start(processes, name, 0, 2)
    wait_for_listener(name)
    genuine = (
        '{"kind": "hello", "ringlet": "%s", "num_ranks": 2, "ranks": %s, "nonce": "", "process": {"pid": 1, '
        '"start_ticks": 1, "host": "h", "boot_id": "b", "network_namespace": "n", "pid_namespace": "p"}}'
    )
    version = Hello.of_this_process(Job(name, "", 2), [1]).version
    for ranks in ("[2]", "[-1]", "[]", "[1, 1]", '["1"]', "[1.0]", "[true]", "1", "null"):
        connection = connect(strangers, Job(name, "", 2).address())
        connection.send((genuine % (version, ranks)).encode())
        assert connection.recv(1000) == b"", ranks
    connection = connect(strangers, Job(name, "", 2).address())
    connection.send((genuine % (version, "[1]")).encode())
    assert b"refused" in connection.recv(1000), "who lies about the process is told"
