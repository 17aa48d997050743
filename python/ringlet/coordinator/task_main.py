"""Main loop of a task: serves its coordinator until the channel closes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from ringlet.coordinator.worker import Worker
from ringlet.ipc import Channel, ChannelClosed, pack, unpack
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from ringlet.values.variables.table_server import TableServer


def serve(
    channel: Channel,
    task_type: str,
    task_id: int,
    tables: TableServer | None = None,
    connect_servers: Callable[[], ParameterServers] | None = None,
) -> None:
    """Serve an authenticated coordinator as ``"worker"`` or ``"ps"`` until the peer closes the channel; then close it.

    `tables` are those of a parameter server, by default none yet; `connect_servers` connects a worker to parameter
    servers on other hosts. Threads of one process may serve several tasks.
    """
    if task_type == "ps":
        serve_tables(tables or TableServer(), channel)
        return
    with contextlib.closing(channel), contextlib.suppress(ChannelClosed):
        Worker(channel, task_id, connect_servers).run()


def serve_tables(server: TableServer, channel: Channel) -> None:
    """Answer requests for tables in order, until the channel closes; each reply has the number of its request."""
    with contextlib.closing(channel), contextlib.suppress(ChannelClosed):
        while True:
            message = channel.receive()
            number, request = unpack(message.header, message.buffers)
            reply, descriptors = server.answer(request)
            try:
                channel.send(*pack((number, reply)), () if channel.is_remote else descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
