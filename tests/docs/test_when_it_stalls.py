"""docs/when-it-stalls.md: each program stalls as shown, and the terminal shows these lines."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "when-it-stalls.md").read_text(encoding="utf-8")
PROGRAMS = {name: program for program, name in re.findall(r"```py\n(# (\S+)\n.*?)```", TEXT, re.DOTALL)}
SESSIONS = {
    script: (variables, size, lines)
    for variables, size, script, lines in re.findall(
        r"```console\n\$ ((?:\w+=\d+ )*)ringlet run -n (\d) (\S+)\n(.*?)```", TEXT, re.DOTALL
    )
}


def normalised(text):
    """The lines of a terminal without what differs between runs: pids, and which rank reports."""
    text = re.sub(r"(?m)^\[w\d\] ", "", text)
    text = re.sub(r"pid \d+", "pid N", text)
    text = re.sub(r"(call \d+ of rank) \d", r"\1 N", text)
    return set(text.splitlines())


@pytest.fixture(scope="module")
def terminals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stalls")
    for name, program in PROGRAMS.items():
        (folder / name).write_text(program, encoding="utf-8")

    def run(script):
        variables, size, _ = SESSIONS[script]
        environment = {**os.environ, **dict(pair.split("=") for pair in variables.split())}
        command = [sys.executable, "-m", "ringlet", "run", "-n", size, script]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=100, check=False
        ).stderr

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(PROGRAMS, pool.map(run, PROGRAMS), strict=True))


def test_every_program_has_a_session():
    assert len(PROGRAMS) == 6
    assert PROGRAMS.keys() == SESSIONS.keys()


@pytest.mark.parametrize("script", PROGRAMS)
def test_the_terminal_shows_what_the_page_shows(terminals, script):
    lines = SESSIONS[script][2]
    if script == "deadlock.py":  # either rank may be the one that the page shows
        terminals[script] = re.sub("rank [01]", "rank N", terminals[script])
        lines = re.sub("rank [01]", "rank N", lines)
    missing = normalised(lines) - normalised(terminals[script])
    assert not missing, f"{missing}\nnot in\n{terminals[script]}"
