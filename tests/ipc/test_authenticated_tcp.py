"""Authenticated TCP: a peer without the secret is refused before anything is decoded."""

from __future__ import annotations

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from ringlet.ipc import LocalChannel
from ringlet.ipc.authenticated_tcp import NotAuthentic, authenticate, connect, listen, receive_object, send_object
from ringlet.ipc.deadline import Deadline
from tests.processes.harness import PATIENCE_SECONDS

SECRET = b"a secret of these tests"


@pytest.fixture
def ends():
    """Two ends of a connection on the loopback interface: of the client, and of the server."""
    with contextlib.ExitStack() as opened:
        server = opened.enter_context(listen("127.0.0.1", 0))
        client = opened.enter_context(connect("127.0.0.1", server.getsockname()[1], PATIENCE_SECONDS))
        yield client, opened.enter_context(server.accept()[0])


@pytest.fixture
def prove():
    """Start the handshake of an end; the result is its future."""
    with ThreadPoolExecutor() as threads:

        def start(end, is_client, secret=SECRET, seconds=PATIENCE_SECONDS):
            return threads.submit(authenticate, end, secret, is_client, Deadline.after(seconds))

        yield start


def test_both_ends_know_the_secret_and_then_exchange_objects_and_messages(ends, prove):
    for proof in [prove(end, number == 0) for number, end in enumerate(ends)]:
        proof.result()
    deadline = Deadline.after(PATIENCE_SECONDS)
    send_object(ends[0], {"name": "é"}, deadline)
    assert receive_object(ends[1], deadline) == {"name": "é"}
    one, other = (LocalChannel(end, "the peer") for end in ends)
    one.send(b"head", [b"a" * 100_000])
    assert bytes(other.receive().buffers[0]) == b"a" * 100_000
    assert one.is_remote
    assert not one.leads_to_this_process
    other.close()
    assert (one.ending, one.was_closed_here, other.was_closed_here) == ("has closed its connection", False, True)
    one.close()


def test_both_ends_name_another_secret(ends, prove):
    for proof in (prove(ends[0], True), prove(ends[1], False, b"another")):
        with pytest.raises(NotAuthentic, match="has a different RINGLET_SECRET: set the same value for all tasks"):
            proof.result()


def test_a_client_without_the_secret_receives_nothing_that_depends_on_it(ends, prove):
    proof = prove(ends[1], False)
    ends[0].sendall(b"ringlet1" + bytes(32))
    assert ends[0].recv(40, socket.MSG_WAITALL).startswith(b"ringlet1")
    ends[0].sendall(bytes(32))
    with pytest.raises(NotAuthentic, match="a different RINGLET_SECRET"):
        proof.result()
    assert ends[0].recv(32, socket.MSG_WAITALL) == bytes(32)


def test_an_end_that_sends_back_what_it_receives_is_refused(ends, prove):
    proof = prove(ends[0], True)
    for count in (40, 32):
        ends[1].sendall(ends[1].recv(count, socket.MSG_WAITALL))
    with pytest.raises(NotAuthentic, match="a different RINGLET_SECRET"):
        proof.result()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100_000])
def test_another_protocol_is_refused(ends, prove, data):
    threading.Thread(target=ends[0].sendall, args=(data,), daemon=True).start()
    with pytest.raises(NotAuthentic, match="is not a task of a ringlet cluster"):
        prove(ends[1], False).result()
    ends[1].close()


def test_a_silent_end_is_not_waited_for(ends, prove):
    with pytest.raises(TimeoutError):
        prove(ends[1], False, seconds=0.05).result()


def test_an_end_that_leaves_is_no_longer_waited_for(ends, prove):
    ends[0].sendall(b"ring")
    ends[0].close()
    with pytest.raises(ConnectionResetError):
        prove(ends[1], False).result()


@pytest.mark.parametrize("data", [b"\xff\xff\xff\xff", b"\1\0\0\0{", b"\2\0\0\0[]", b"\1\0\0\0\xff"])
def test_an_object_is_a_short_json_object(ends, data):
    ends[0].sendall(data)
    with pytest.raises(NotAuthentic, match="not a message"):
        receive_object(ends[1], Deadline.after(PATIENCE_SECONDS))


@pytest.mark.parametrize(("host", "address"), [("127.0.0.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("", "::")])
def test_a_name_listens_on_all_interfaces_and_an_address_on_its_own(host, address):
    with listen(host, 0) as server:
        assert server.getsockname()[0] in (address, "0.0.0.0")


def test_a_port_where_nothing_listens_refuses():
    with listen("127.0.0.1", 0) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectionRefusedError):
        connect("127.0.0.1", port, PATIENCE_SECONDS)
