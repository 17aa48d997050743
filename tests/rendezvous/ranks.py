"""Ranks that rendezvous, each in a separate process.

Each reports its result or error, and then sends a message to every other process over its connections.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from ringlet.rendezvous.job_key import Job
from tests.processes.harness import eventually

__all__ = ["MEET", "all_met", "start", "wait_for_listener", "wait_for_seats"]

MEET = """
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.rendezvous import rendezvous
import os
ranks = [int(rank) for rank in sys.argv[1].split(",")]
name, job_id, num_ranks, seconds = sys.argv[2], sys.argv[3], int(sys.argv[4]), float(sys.argv[5])
started = time.monotonic()
try:
    connected = rendezvous(Job(name, job_id, num_ranks), ranks, seconds)
except BaseException as error:
    known = {key: value for key, value in vars(error).items() if key in ("rank", "pid", "reason")}
    text = " ".join([str(error), *getattr(error, "__notes__", ())])
    tell([type(error).__name__, text, known, time.monotonic() - started])
    sys.exit(3)
me = connected.index
tell(["met", me, [list(peer.ranks) for peer in connected.peers], connected.token.hex()])
for index, peer in enumerate(connected.peers):
    if index != me:
        assert not peer.connection.get_inheritable()
        peer.connection.send(f"{me} to {index}".encode())
for index, peer in enumerate(connected.peers):
    if index != me:
        peer.connection.settimeout(30)
        assert peer.connection.recv(100).decode() == f"{index} to {me}"
        if peer.pidfd >= 0:
            assert not os.get_inheritable(peer.pidfd)
            information = open(f"/proc/self/fdinfo/{peer.pidfd}").read()
            assert f"Pid:\\t{peer.identity.pid}\\n" in information, information
tell("heard all")
hear()
connected.close()
"""


def start(processes, name, ranks, num_ranks, *, seconds=60, job_id="", **how):
    """Start a process that drives some ranks."""
    listed = ranks if isinstance(ranks, str) else str(ranks)
    return processes.start(MEET, listed, name, job_id, num_ranks, seconds, **how)


def all_met(started):
    """Return the tokens of processes, all of which must have joined one group."""
    tokens = set()
    for process in started:
        told = process.told()
        assert told[0] == "met", told
        tokens.add(told[3])
    for process in started:
        assert process.told() == "heard all"
    return tokens


def wait_for_listener(name, job_id=""):
    """Wait until a process listens under the name."""
    address = Job(name, job_id, 1).address()
    assert eventually(lambda: "@" + address[1:] in Path("/proc/net/unix").read_text()), "nobody listens"


def wait_for_seats(listener, count):
    """Wait until `count` processes have connected to the listener, which has a pidfd of each."""

    def seats():
        handles = 0
        for path in Path(f"/proc/{listener.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                handles += "pidfd" in str(path.readlink())
        return handles

    assert eventually(lambda: seats() == count), "they do not come"
