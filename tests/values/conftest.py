"""What tests of this folder share."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def _hasty_interpreter():
    """Threads take turns after a few instructions, so that they meet everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
