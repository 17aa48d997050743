"""Fixtures of this folder."""

from __future__ import annotations

import pytest

from tests.processes.harness import Processes
from tests.strategy.workers import Workers


@pytest.fixture(scope="session", params=[(2, 1), (2, 2)], ids=["2x1", "2x2"])
def workers(request):
    """Worker processes of a strategy: the number of workers, and of replicas of each."""
    with Workers(*request.param) as started:
        yield started


@pytest.fixture
def processes():
    """A factory of processes, which end with the test."""
    with Processes() as started:
        yield started
