"""Fixtures of this folder."""

from __future__ import annotations

import uuid

import pytest

from tests.processes.harness import Processes


@pytest.fixture
def processes():
    """A factory of processes, which end with the test."""
    with Processes() as started:
        yield started


@pytest.fixture
def name():
    """A job name that is not used elsewhere."""
    return f"test {uuid.uuid4()}"
