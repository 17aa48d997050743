"""What a process of a cluster does: what its coordinator says, until that is gone."""

from __future__ import annotations

import contextlib
import os

from ringlet.coordinator.worker import Worker
from ringlet.ipc import Channel, ChannelClosed, pack, unpack
from ringlet.values.variables.table_server import TableServer

__all__ = ["serve"]


def serve(channel: Channel, task_type: str, task_id: int) -> None:
    """Serve a coordinator until it is gone. Several tasks may be served by threads of one process.

    Parameters
    ----------
    channel : Channel
        Leads to the coordinator, which was authenticated. Closed in the end.
    task_type : str
        ``"worker"`` or ``"ps"``.
    task_id : int
    """
    with contextlib.closing(channel), contextlib.suppress(ChannelClosed):
        if task_type == "worker":
            Worker(channel, task_id).run()
        else:
            _serve_tables(channel)


def _serve_tables(channel: Channel) -> None:
    """Make tables for a coordinator, one request after another; each reply has the number of its request."""
    server = TableServer()
    while True:
        message = channel.receive()
        number, request = unpack(message.header, message.buffers)
        reply, descriptors = server.answer(request)
        try:
            channel.send(*pack((number, reply)), descriptors)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
