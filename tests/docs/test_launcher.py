"""Commands of docs/launcher.md: each is run, and prints the text that is shown."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from ringlet.launcher import supervisor
from ringlet.launcher.commands import run_command
from ringlet.launcher.traceback_buffer import HOLD_SECONDS

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "launcher.md").read_text(encoding="utf-8")
SESSIONS = [
    session
    for block in re.findall(r"^```console\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    for session in re.findall(r"^\$ ((?:ringlet|python) .*)\n((?:[^$\n].*\n)+)", block, re.MULTILINE)
]


def pattern_of(printed):
    """Return a pattern for a shown text, in which three dots match anything within a line."""
    return ".*".join(map(re.escape, printed.split("...")))


def run_shown(command, folder):
    """Run a command of `ringlet` or `python` in a folder, with its errors in its output."""
    program, *words = shlex.split(command)
    return subprocess.run(
        [sys.executable, *(["-m", "ringlet"] if program == "ringlet" else []), *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith("RINGLET_")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("command", "printed"), SESSIONS, ids=[command for command, _ in SESSIONS])
def test_a_command_prints_what_is_shown(command, printed, tmp_path):
    program = re.search(r"^```py\n(# train\.py\n.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    done = run_shown(command, tmp_path)
    assert re.fullmatch(pattern_of(printed), done.stdout), done.stdout


def test_every_option_is_listed():
    parser = argparse.ArgumentParser()
    run_command.add_arguments(parser)
    options = {action.option_strings[0] for action in parser._actions if action.option_strings} - {"-h"}
    assert set(re.findall(r"^\| `(-[-\w]+)", DOCUMENT, re.MULTILINE)) == options


def test_the_times_are_those_of_the_code():
    assert f"The others have {supervisor._FOLLOW_SECONDS:g} s" in DOCUMENT
    assert (run_command._GRACE_SECONDS, HOLD_SECONDS) == (1.0, 2.0)
    assert "killed one second later" in DOCUMENT
    assert "for two seconds at most" in DOCUMENT
