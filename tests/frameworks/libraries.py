"""Libraries that these tests need: a test is skipped if one is missing, and fails if it is required."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest


def library(name: str) -> Any:
    """Return the module of a library; TESTS_REQUIRE lists the required ones, separated by commas."""
    if name in os.environ.get("TESTS_REQUIRE", "").split(","):
        return importlib.import_module(name)
    return pytest.importorskip(name)
