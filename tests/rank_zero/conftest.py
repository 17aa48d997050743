"""What tests of this folder share."""

from __future__ import annotations

import pytest

from tests.processes.harness import Processes
from tests.strategy.workers import Workers


@pytest.fixture(scope="session", params=[(2, 1), (2, 2)], ids=["2x1", "2x2"])
def workers(request):
    """Processes that are the workers of a strategy: so many workers, of so many replicas each."""
    with Workers(*request.param) as started:
        yield started


@pytest.fixture
def processes():
    """Starts processes, and ends them with the test."""
    with Processes() as started:
        yield started
