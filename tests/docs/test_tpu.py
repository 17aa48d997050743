"""Commands of docs/tpu.md: each prints the text that is shown. Its programs run in tests/test_documents.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ringlet.launcher import command_line

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "tpu.md"
COMMANDS = re.findall(
    r"^```sh\nringlet (.*?)\n```\n\n```text\n(.*?)\n```$",
    DOCUMENT.read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)


def test_there_is_a_command():
    assert len(COMMANDS) >= 1


@pytest.mark.parametrize(("arguments", "output"), COMMANDS)
def test_a_command_prints_what_is_shown(arguments, output, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command_line.main(arguments.split()) == 0
    assert capsys.readouterr().out.strip() == output.strip()
