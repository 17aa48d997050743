"""The files and names that CONTRIBUTING.md sends a developer to exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Paths in the table are relative to one of these.
TOPS = [ROOT, ROOT / "python" / "ringlet"]


def test_names_in_the_table_of_changes_stand_in_the_files_it_names():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"`(\w+)` in `([\w/]+\.\w+)`", text)
    assert len(found) > 8
    missing = []
    for name, path in found:
        files = [top / path for top in TOPS if (top / path).exists()]
        if not files or not re.search(rf"\b{name}\b", files[0].read_text(encoding="utf-8")):
            missing.append(f"{name} in {path}")
    assert not missing
