"""What every test of this folder starts with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.processes.harness import Processes


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Starts processes, and ends them with the test."""
    with Processes() as started:
        yield started
