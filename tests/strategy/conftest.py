"""Worker processes that serve all tests of this folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.processes.harness import Processes
from tests.strategy.workers import Workers


@pytest.fixture(scope="session")
def two_workers() -> Iterator[Workers]:
    """Two workers with one replica each."""
    with Workers(2) as workers:
        yield workers


@pytest.fixture(scope="session")
def two_by_two() -> Iterator[Workers]:
    """Two workers with two replicas each."""
    with Workers(2, 2) as workers:
        yield workers


@pytest.fixture(scope="session", params=[1, 2], ids=["1 replica", "2 replicas"])
def workers(request: pytest.FixtureRequest) -> Workers:
    """Two workers, once with one replica each, and once with two."""
    found: Workers = request.getfixturevalue("two_workers" if request.param == 1 else "two_by_two")
    return found


@pytest.fixture
def processes() -> Iterator[Processes]:
    """A factory of processes, which end with the test."""
    with Processes() as started:
        yield started


@pytest.fixture
def name() -> str:
    """A job name that is not used elsewhere."""
    return f"test {uuid.uuid4()}"
