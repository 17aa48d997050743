"""The names of ringlet.checks."""

from __future__ import annotations

import ringlet
from ringlet.rank_zero.equality import all_equal


def test_all_equal_is_among_the_checks():
    assert ringlet.checks.all_equal is all_equal
    assert ringlet.checks.__all__ == ["all_equal"]
