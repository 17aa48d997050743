"""Late arrivals: refusal of processes that connect to a complete group."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence

from ringlet.rendezvous.handshake import Handshake, held_by
from ringlet.rendezvous.job_key import Job
from ringlet.rendezvous.listener import ConnectedProcess, Listener, refuse
from ringlet.rendezvous.process_identity import ProcessIdentity

# Maximum wait for the thread to end. It is limited because the caller may hold a lock that the thread needs.
_LONGEST_WAIT_SECONDS = 1.0


class LateArrivals:
    """Holds the name of a complete group, and refuses processes that connect, in a thread."""

    def __init__(
        self,
        listener: Listener,
        ours: Handshake,
        members: Sequence[tuple[tuple[int, ...], ProcessIdentity]],
        job: Job,
    ) -> None:
        self._listener = listener
        self._ours = ours
        self._members = list(members)
        self._job = job
        self._stop_pipe = os.pipe()  # a byte in the pipe stops the thread, which then closes the pipe
        # Popped before writing: `pop` is atomic, and a finalizer may interrupt any code.
        self._stop_token = [self._stop_pipe[1]]
        self._has_ended = threading.Event()
        self._pid = os.getpid()
        listener.watch(self._stop_pipe[0])
        self._thread = threading.Thread(target=self._run, name="ringlet-late-arrivals", daemon=True)
        try:
            self._thread.start()
        except BaseException:
            self._close_stop_pipe()
            raise

    def stop(self) -> None:
        """Make the thread release the name, without waiting or locking: safe in finalizers, no-op in a forked child."""
        if self._pid != os.getpid():
            return
        try:
            writer = self._stop_token.pop()
        except IndexError:
            return
        os.write(writer, b"x")

    def wait(self) -> None:
        """After `stop`, wait briefly until the name is released; return at once if called on its own thread."""
        if self._pid != os.getpid() or self._stop_token or threading.get_ident() == self._thread.ident:
            return
        if self._has_ended.wait(_LONGEST_WAIT_SECONDS):
            self._thread.join(_LONGEST_WAIT_SECONDS)

    def close(self) -> None:
        """Release the name, and wait until it is released."""
        self.stop()
        self.wait()

    def _run(self) -> None:
        try:
            while True:
                try:
                    clients, ready = self._listener.poll(3600.0)
                except OSError:  # the limit on open files is reached: retry
                    time.sleep(0.1)
                    continue
                for client in clients:
                    self._refuse(client)
                if ready:
                    return
        finally:
            self._listener.close()
            try:
                self._stop_token.pop()
            except IndexError:
                # stop() is writing: the descriptor must not be closed and reused before it has written.
                os.read(self._stop_pipe[0], 1)
            self._close_stop_pipe()
            self._has_ended.set()

    def _close_stop_pipe(self) -> None:
        for descriptor in self._stop_pipe:
            os.close(descriptor)

    def _refuse(self, client: ConnectedProcess) -> None:
        handshake = client.handshake
        for _, identity in self._members:
            if identity.is_same_process(handshake.identity):
                # Other processes may retry, because this process has probably closed its group by the next attempt.
                reason = (
                    f"{identity} is already in a group of this name, which {self._ours.identity} has not closed: close "
                    "that group in every process before creating another group of this name, or use another name."
                )
                refuse(client.connection, reason, may_retry=identity.pid != self._ours.identity.pid)
                return
        reason = self._ours.rejection_of(handshake, client.pid, self._job) or self._refusal_of(handshake)
        refuse(client.connection, reason)

    def _refusal_of(self, handshake: Handshake) -> str:
        for ranks, identity in self._members:
            if taken := sorted({*ranks} & {*handshake.ranks}):
                return held_by(taken, identity, self._job)
        raise AssertionError("a complete group has every rank")
