"""Cancellation checks in the context of a function that runs for another process."""

from __future__ import annotations

import threading

import pytest

from ringlet.cancellation import check_cancelled, checked_by
from ringlet.errors import CancelledError


def test_a_check_counts_in_its_context_alone():
    def refuse():
        raise CancelledError("cancelled")

    other = threading.Thread(target=check_cancelled)
    with checked_by(refuse):
        with pytest.raises(CancelledError):
            check_cancelled()
        other.start()
        other.join()
    check_cancelled()
