"""Fixtures of this folder, shared with tests/rank_zero."""

from __future__ import annotations

from tests.rank_zero.conftest import processes, workers

__all__ = ["processes", "workers"]
