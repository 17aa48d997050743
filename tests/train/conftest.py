"""What tests of this folder share: what those of the helpers do."""

from __future__ import annotations

from tests.rank_zero.conftest import processes, workers

__all__ = ["processes", "workers"]
