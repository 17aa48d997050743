"""Inter-process communication: channels, message framing, pickling of values, worker processes."""

from __future__ import annotations

from ringlet.ipc.channel import Channel, ChannelClosed, Message
from ringlet.ipc.pickle_codec import pack, unpack
from ringlet.ipc.unix_channel import LocalChannel

__all__ = ["Channel", "ChannelClosed", "LocalChannel", "Message", "pack", "unpack"]
