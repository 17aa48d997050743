"""Environments that resemble those of peers, for tests of the code that queries them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def make_environment(folder: Path, name: str, packages: Sequence[str]) -> None:
    """Create an environment folder that lists these packages and uses the running interpreter."""
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    made = {"packages": list(packages), "version": "a stand-in"}
    (folder / name / "ready.json").write_text(json.dumps(made), encoding="utf-8")
