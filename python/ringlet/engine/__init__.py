"""Bytes between processes: what carries messages, and how values become such."""

from __future__ import annotations

from ringlet.engine.local import LocalChannel
from ringlet.engine.transport import Channel, ChannelClosed, Message
from ringlet.engine.values import pack, unpack

__all__ = ["Channel", "ChannelClosed", "LocalChannel", "Message", "pack", "unpack"]
