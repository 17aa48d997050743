"""Fixtures of this folder."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture
def _hasty_interpreter():
    """Switch threads after a few instructions, so that races occur everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
