"""Messages between processes that have one rank each."""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections.abc import Sequence

from ringlet import _core
from ringlet.errors import CollectiveAborted, WorkerLostError
from ringlet.ipc.inbox import Inbox
from ringlet.ipc.mailbox import Mailbox
from ringlet.rendezvous.process_identity import ProcessIdentity

__all__ = ["ProcessInbox"]

_LAST_MOMENT_MILLISECONDS = 100


class ProcessInbox:
    """The mailbox of the rank of this process; `identities` has the process of each rank, and `key` is their secret."""

    def __init__(self, key: str, rank: int, identities: Sequence[ProcessIdentity], seconds: float) -> None:
        self.seconds = seconds
        self._rank = rank
        self._identities = identities
        self._pidfds: dict[int, int] = {}
        self._mailbox = Mailbox(key, rank, len(identities), self._open_pidfds, self._lost)

    def __call__(self, rank: int) -> Inbox:
        """Return the inbox of the rank."""
        return self._mailbox

    def failure(self, text: str) -> Exception:
        """Return the error about the failure of the group: that a rank was lost, or another."""
        for rank, process in enumerate(self._identities):
            if text.startswith(begin := f"rank {rank} ({process}) "):
                reason = text.removeprefix(begin).partition(".")[0]
                return WorkerLostError(text, rank, process.host, process.pid, reason)
        return CollectiveAborted(text)

    def close(self, rank: int = 0, seconds: float = 0) -> list[str]:
        """Close the inbox; see :meth:`Mailbox.close`."""
        return self._mailbox.close(seconds)

    def _open_pidfds(self) -> dict[int, int]:
        for rank, process in enumerate(self._identities):
            if rank == self._rank:
                continue
            try:
                pidfd = os.pidfd_open(process.pid)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise
                pidfd = -1
            if not process.has_ended():
                self._pidfds[rank] = pidfd
            elif pidfd >= 0:
                os.close(pidfd)
        return self._pidfds

    def _lost(self, rank: int) -> Exception:
        process = self._identities[rank]
        how = "has ended" if process.has_ended() else "left the group"
        if (pidfd := self._pidfds.get(rank, -1)) >= 0:
            with contextlib.suppress(OSError):  # else no error would end the call
                ended = select.poll()
                ended.register(pidfd, select.POLLIN)
                if ended.poll(_LAST_MOMENT_MILLISECONDS):  # its sockets close before it has ended
                    how = _core.Pidfd(os.dup(pidfd), process.pid).how_it_ended()
        number = self._mailbox.numbers[rank]
        text = f"rank {number} ({process}) {how}: the message of this rank cannot be delivered. Start the job again."
        return WorkerLostError(text, rank, process.host, process.pid, how)
