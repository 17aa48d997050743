"""What every test of this folder starts with."""

from __future__ import annotations

import uuid

import pytest

from tests.processes.harness import Processes


@pytest.fixture
def processes():
    """Starts processes, and ends them with the test."""
    with Processes() as started:
        yield started


@pytest.fixture
def name():
    """A name that no other job has."""
    return f"test {uuid.uuid4()}"
