"""Main loop of a task: serves its coordinator until the channel closes."""

from __future__ import annotations

import contextlib
import os

from ringlet.coordinator.worker import Worker
from ringlet.ipc import Channel, ChannelClosed, pack, unpack
from ringlet.values.variables.table_server import TableServer


def serve(channel: Channel, task_type: str, task_id: int) -> None:
    """Serve an authenticated coordinator as ``"worker"`` or ``"ps"`` until the peer closes the channel; then close it.

    Threads of one process may serve several tasks.
    """
    with contextlib.closing(channel), contextlib.suppress(ChannelClosed):
        if task_type == "worker":
            Worker(channel, task_id).run()
        else:
            _serve_tables(channel)


def _serve_tables(channel: Channel) -> None:
    """Answer requests for tables in order; each reply has the number of its request."""
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
