"""Fixtures of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.harness import Processes


@pytest.fixture
def processes() -> Iterator[Processes]:
    """A factory of processes, which end with the test."""
    with Processes() as started:
        yield started
