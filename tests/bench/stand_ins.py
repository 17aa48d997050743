"""Environments that look like those of peers, for tests of what asks them."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def make_environment(folder: Path, name: str, packages: Sequence[str]) -> None:
    """Make a folder which says that it has these packages, and whose interpreter is the one that runs."""
    python = folder / name / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    made = {"packages": list(packages), "version": "a stand-in"}
    (folder / name / "ready.json").write_text(json.dumps(made), encoding="utf-8")
