"""Sockets between processes."""

from __future__ import annotations

import os
import socket

import pytest

from ringlet.ipc.unix_sockets import (
    MSG_CMSG_CLOEXEC,
    credentials,
    descriptor_space,
    descriptors_in,
    no_descriptor_left,
    open_pidfd,
    pair,
)


@pytest.fixture
def ends():
    one, other = pair(socket.SOCK_STREAM)
    with one, other:
        yield one, other


def test_a_connection_leads_to_a_process_that_the_system_tells(ends):
    assert credentials(ends[0]) == (os.getpid(), os.geteuid())
    handle = open_pidfd(ends[0])
    if handle >= 0:
        os.close(handle)


def test_descriptors_arrive_as_new_ones_that_no_program_inherits(ends):
    socket.send_fds(ends[0], [b"x"], [0, 1])
    _, extras, _, _ = ends[1].recvmsg(1, descriptor_space(2), MSG_CMSG_CLOEXEC)
    received = descriptors_in(extras)
    assert len(received) == 2
    assert not any(os.get_inheritable(descriptor) for descriptor in received)
    for descriptor in received:
        os.close(descriptor)


def test_what_is_no_descriptor_counts_as_none():
    assert descriptors_in([(socket.SOL_SOCKET, 99, b"1234"), (socket.SOL_SOCKET, socket.SCM_RIGHTS, b"123")]) == []


def test_a_forked_child_does_not_hold_a_connection(ends):
    child = os.fork()
    if child == 0:
        os._exit(0 if ends[0].fileno() < 0 and ends[1].fileno() < 0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ends[0].fileno() >= 0


def test_too_few_descriptors_are_told_with_the_limit():
    assert "may open no more than" in no_descriptor_left()
