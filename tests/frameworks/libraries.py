"""Libraries that these tests need: a test is skipped where one is missing, and fails where it has to be there."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def library(name: str) -> Any:
    """The module of a library; TESTS_REQUIRE names those, with commas in between, that must not be missing."""
    if name in os.environ.get("TESTS_REQUIRE", "").split(","):
        return importlib.import_module(name)
    return pytest.importorskip(name)
