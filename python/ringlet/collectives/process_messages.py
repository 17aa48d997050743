"""Messages between processes."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
from collections.abc import Mapping, Sequence

from ringlet import _core
from ringlet.errors import CollectiveAborted, WorkerLostError
from ringlet.ipc.inbox import Inbox, inboxes_with
from ringlet.ipc.mailbox import Mailbox
from ringlet.rendezvous.connected_group import ConnectedGroup
from ringlet.rendezvous.process_identity import ProcessIdentity

_LAST_MOMENT_MILLISECONDS = 100


class ProcessInbox:
    """The mailbox of one rank of a group in several processes.

    `names` has the name of every mailbox of the group, `peers` the mailboxes of this process, and `identities` the
    process of each rank of the whole group. `numbers` maps ranks of a subgroup to ranks of the whole group.
    """

    def __init__(
        self,
        mailbox: Mailbox,
        rank: int,
        names: Sequence[str],
        peers: Mapping[int, Inbox],
        identities: Sequence[ProcessIdentity],
        *,
        seconds: float,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.seconds = seconds
        self._identities = identities
        self._numbers = numbers
        self._peers = peers
        self._pidfds: dict[int, int] = {}
        self._mailbox = mailbox
        mailbox.join(rank, len(names), self._lost, peers)
        mailbox.connect(names, self._open_pidfds)

    def __call__(self, rank: int) -> Inbox:
        """Return the inbox; `rank` must be its rank."""
        return self._mailbox

    def failure(self, text: str) -> Exception:
        """Return the error about the group's failure: WorkerLostError if a rank was lost, else CollectiveAborted."""
        for rank, process in enumerate(self._identities):
            ranks, _, reason = text.partition(f" ({process}) ")
            if reason and re.fullmatch(r"ranks? [\d, toandmre]+", ranks):
                return WorkerLostError(text, rank, process.host, process.pid, reason.partition(".")[0])
        return CollectiveAborted(text)

    def close(self, rank: int = 0, seconds: float = 0) -> list[str]:
        """Close the inbox; see :meth:`Mailbox.close`."""
        return self._mailbox.close(seconds)

    def open_part(self) -> Inbox:
        """Return an inbox for a rank of a subgroup."""
        return Mailbox()

    def join_part(self, inbox: Inbox, rank: int, ranks: Sequence[int], labels: Sequence[int]) -> ProcessInbox:
        """Return the inbox of a rank of a subgroup."""
        assert isinstance(inbox, Mailbox)
        return ProcessInbox(
            inbox,
            rank,
            [str(label) for label in labels],
            inboxes_with(labels),
            self._identities,
            seconds=self.seconds,
            numbers=[self._in_whole(number) for number in ranks],
        )

    def _in_whole(self, rank: int) -> int:
        return rank if self._numbers is None else self._numbers[rank]

    def _open_pidfds(self) -> dict[int, int]:
        for rank in range(len(self._mailbox.numbers)):
            if rank in self._peers:
                continue
            process = self._identities[self._in_whole(rank)]
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
        process = self._identities[self._in_whole(rank)]
        how = "has ended" if process.has_ended() else "left the group"
        if (pidfd := self._pidfds.get(rank, -1)) >= 0:
            with contextlib.suppress(OSError):  # an error here must not hide the loss of the rank
                ended = select.poll()
                ended.register(pidfd, select.POLLIN)
                if ended.poll(_LAST_MOMENT_MILLISECONDS):  # a process closes its sockets shortly before it ends
                    how = _core.Pidfd(os.dup(pidfd), process.pid).how_it_ended()
        number = (self._numbers or self._mailbox.numbers)[rank]
        text = f"rank {number} ({process}) {how}: it sends and receives no more messages. Start the job again."
        return WorkerLostError(text, self._in_whole(rank), process.host, process.pid, how)


def process_inboxes(connected: ConnectedGroup, seconds: float) -> dict[int, ProcessInbox]:
    """Return the inboxes of the ranks of this process, with open mailboxes."""
    identities = {rank: peer.identity for peer in connected.peers for rank in peer.ranks}
    names = [f"{connected.token.hex()} {rank}" for rank in range(len(identities))]
    mailboxes = {rank: Mailbox(names[rank]) for rank in connected.peers[connected.index].ranks}
    processes = [identities[rank] for rank in range(len(identities))]
    return {
        rank: ProcessInbox(mailbox, rank, names, mailboxes, processes, seconds=seconds)
        for rank, mailbox in mailboxes.items()
    }
