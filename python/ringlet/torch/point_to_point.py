"""Sends and receives of tensors, as messages of the group's mailbox."""

from __future__ import annotations

import contextlib
import errno
import os
import select
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.errors import WorkerLostError
from ringlet.ipc.mailbox import Mailbox
from ringlet.torch.store_rendezvous import Ranks
from ringlet.torch.tensors import Flat
from ringlet.torch.works import RingletWork, backend_error

__all__ = ["PointToPoint"]

_LAST_MOMENT_MILLISECONDS = 100


class PointToPoint:
    """Sends and receives of one rank of a group."""

    def __init__(self, ranks: Ranks, rank: int, seconds: float, global_ranks: Sequence[int]) -> None:
        self._identities = ranks.identities
        self._seconds = seconds
        self._global_ranks = global_ranks
        self._pidfds = [
            -1 if number == rank else _open_pidfd(identity.pid) for number, identity in enumerate(self._identities)
        ]
        self._mailbox = Mailbox(ranks.key, rank, self._pidfds, self._lost, global_ranks)

    def send(self, tensor: Any, target: int, tag: int) -> RingletWork:
        """Start sending a tensor."""
        data = np.ascontiguousarray(Flat(tensor, as_bytes=True).array)
        return RingletWork(self._mailbox.send(data.data, _text(tensor), target, tag), [tensor], self._seconds)

    def receive(self, tensor: Any, source: int | None, tag: int) -> RingletWork:
        """Start receiving a tensor; None as `source` means any rank."""
        flat = Flat(tensor, as_bytes=True)
        received = self._mailbox.receive(flat.array.data, _text(tensor), source, tag)
        stored: Future[int] = Future()

        def store(done: Future[int]) -> None:
            error = done.exception()
            if error is None:
                try:
                    flat.store()
                except Exception as raised:  # in a done callback, an exception would only be logged
                    error = raised
            if error is not None:
                stored.set_exception(backend_error(error))
            else:
                stored.set_result(done.result())

        received.add_done_callback(store)
        return RingletWork(stored, [tensor], self._seconds, partial(self._mailbox.withdraw, received))

    def abort(self, error: Exception) -> None:
        """Make waiting and later receives fail with this error."""
        self._mailbox.abort(error)

    def close(self, seconds: float) -> None:
        """Finish the sends and close all connections."""
        self._mailbox.close(seconds)

    def _lost(self, rank: int) -> Exception:
        process = self._identities[rank]
        number = self._global_ranks[rank]
        how = "left the group"
        if (pidfd := self._pidfds[rank]) >= 0:
            with contextlib.suppress(OSError):  # an exception here would leave the operation waiting
                ended = select.poll()
                ended.register(pidfd, select.POLLIN)
                if ended.poll(_LAST_MOMENT_MILLISECONDS):  # an exiting process closes its sockets first
                    how = _core.Pidfd(os.dup(pidfd), process.pid).how_it_ended()
        text = f"rank {number} ({process}) {how}: the message of this rank cannot be delivered. Start the job again."
        error = backend_error(WorkerLostError(text, number, process.host, process.pid, how))
        assert isinstance(error, Exception)
        return error


def _open_pidfd(pid: int) -> int:
    try:
        return os.pidfd_open(pid)
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE):
            raise
        return -1


def _text(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}[{tensor.numel()}]"
