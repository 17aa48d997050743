"""Sends away who comes to a group that is complete."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from ringlet.rendezvous.handshake import Hello, held_by
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.listener import Reception, Visitor, refuse
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["Guard"]

# For a thread that has nothing to do but to end; whoever waits may hold a lock that it needs.
_LONGEST_WAIT_SECONDS = 1.0


class Guard:
    """Keeps the name of a complete group, with a thread that sleeps until somebody comes.

    Parameters
    ----------
    reception : Reception
        Taken over.
    ours : Hello
        What this process said, which gathered the group.
    members : sequence of (ranks, ProcessIdentity)
        All processes of the group.
    job : Job
        Whose group it is.
    """

    def __init__(
        self,
        reception: Reception,
        ours: Hello,
        members: Sequence[tuple[tuple[int, ...], ProcessIdentity]],
        job: Job,
    ) -> None:
        self._reception = reception
        self._ours = ours
        self._members = list(members)
        self._job = job
        self._bell = os.pipe()  # a byte in it ends the thread, which closes it
        self._right_to_ring = [self._bell[1]]  # who takes it out writes the byte: a finalizer may interrupt anybody
        self._has_ended = threading.Event()
        self._pid = os.getpid()
        reception.watch(self._bell[0])
        self._thread = threading.Thread(target=self._run, name="ringlet-guard", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._close_bell()
            raise

    def ring(self) -> None:
        """Have the name given back soon; wait for nothing and take no lock, for finalizers, which run anywhere.

        In a forked child, which has not got the name, do nothing.
        """
        if self._pid != os.getpid():
            return
        try:
            bell = self._right_to_ring.pop()
        except IndexError:
            return
        os.write(bell, b"x")

    def wait(self) -> None:
        """Wait until the name is given back, if the bell was rung; not for long, and not on the guard's own thread."""
        if self._pid != os.getpid() or self._right_to_ring or threading.get_ident() == self._thread.ident:
            return
        if self._has_ended.wait(_LONGEST_WAIT_SECONDS):
            self._thread.join(_LONGEST_WAIT_SECONDS)

    def close(self) -> None:
        """Give the name back, now."""
        self.ring()
        self.wait()

    def _run(self) -> None:
        try:
            while True:
                try:
                    visitors, ready = self._reception.poll(3600.0)
                except OSError:  # no descriptor left: perhaps later
                    time.sleep(0.1)
                    continue
                for visitor in visitors:
                    self._send_away(visitor)
                if ready:
                    return
        finally:
            self._reception.close()
            try:
                self._right_to_ring.pop()
            except IndexError:
                os.read(self._bell[0], 1)  # somebody rings, or has: not before that may others get the number
            self._close_bell()
            self._has_ended.set()

    def _close_bell(self) -> None:
        for descriptor in self._bell:
            os.close(descriptor)

    def _send_away(self, visitor: Visitor) -> None:
        hello = visitor.hello
        for _, identity in self._members:
            if identity.is_same_process(hello.identity):
                # It has left this group, or will, and wants to make the next one: so will this process, soon.
                reason = (
                    f"{identity} is in a group of this name already, which {self._ours.identity} has not closed yet: "
                    "close it in every process before the next one of its name, or give that another name."
                )
                refuse(visitor.connection, reason, may_retry=identity.pid != self._ours.identity.pid)
                return
        reason = self._ours.objection_to(hello, visitor.pid, self._job) or self._refusal_of(hello)
        refuse(visitor.connection, reason)

    def _refusal_of(self, hello: Hello) -> str:
        for ranks, identity in self._members:
            if taken := sorted({*ranks} & {*hello.ranks}):
                return held_by(taken, identity, self._job)
        raise AssertionError("a complete group has every rank")
