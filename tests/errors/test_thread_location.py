"""The line that a thread executes."""

from __future__ import annotations

import threading

from ringlet.errors.thread_location import location


def test_the_location_of_a_thread_is_its_line():
    assert location(threading.get_ident()).startswith("in location (")
    assert location(None) == location(-1) == "in a thread that has ended"
