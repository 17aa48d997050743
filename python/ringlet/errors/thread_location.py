"""The line that a thread executes, for messages about threads that are still busy."""

from __future__ import annotations

import sys
import traceback


def location(thread: int | None) -> str:
    """Describe the line that a thread, given by its ``get_ident()``, is executing."""
    frame = None if thread is None else sys._current_frames().get(thread)
    if frame is None:
        return "in a thread that has ended"
    last = traceback.extract_stack(frame)[-1]
    return f"in {last.name} ({last.filename}:{last.lineno})"
