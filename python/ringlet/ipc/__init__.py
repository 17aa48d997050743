"""Bytes between processes: what carries messages, and how values become such."""

from __future__ import annotations

from ringlet.ipc.channel import Channel, ChannelClosed, Message
from ringlet.ipc.message_codec import pack, unpack
from ringlet.ipc.unix_channel import LocalChannel

__all__ = ["Channel", "ChannelClosed", "LocalChannel", "Message", "pack", "unpack"]
