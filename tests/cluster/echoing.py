"""The simplest task: echoes the bytes it receives, because both directions of a channel number messages alike."""

from __future__ import annotations

import os


def main(descriptor, task_type, task_id):
    """Echo until the connection is closed."""
    while data := os.read(descriptor, 1 << 16):
        os.write(descriptor, data)
