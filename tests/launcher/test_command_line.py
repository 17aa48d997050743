"""The command `ringlet`: its table, its help, and what it says to a wrong word."""

from __future__ import annotations

import importlib
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ringlet.config import __version__
from ringlet.launcher.command_line import _COMMANDS, main

ROOT = Path(__file__).resolve().parents[2]


def said_by(arguments, capsys):
    """Exit status, standard output and standard error of a command line."""
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code
    return status, *capsys.readouterr()


@pytest.mark.parametrize("name", _COMMANDS)
def test_every_command_has_its_functions_and_a_help(name, capsys):
    module = importlib.import_module(f"ringlet.launcher.commands.{_COMMANDS[name][0]}")
    assert callable(module.add_arguments)
    assert callable(module.execute)
    status, out, _ = said_by([name, "--help"], capsys)
    assert status == 0
    assert out.startswith("usage: ringlet " + name)


def test_the_help_lists_every_command(capsys):
    status, out, _ = said_by(["--help"], capsys)
    assert status == 0
    assert re.findall(r"^  (\w+)  ", out[out.index("commands:") :], re.MULTILINE) == list(_COMMANDS)


def test_the_version_is_printed(capsys):
    assert said_by(["--version"], capsys) == (0, f"ringlet {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        # arguments, part of the message
        ([], "no command given; the commands are run"),
        (["rnu"], "unknown command 'rnu'; did you mean 'run'?"),
        (["launch", "-n", "2", "step.py"], "unknown command 'launch'; did you mean 'run'?"),
        (["step.py", "3"], "a script is started by ringlet run -n 2 step.py 3 (see ringlet --help)"),
        (["juggle"], "unknown command 'juggle'; the commands are run"),
        (["--loud"], "no command given"),
        (["-n", "2", "my step.py"], "must be the first word; did you mean ringlet run -n 2 'my step.py'?"),
        (["--last", "2", "inspect", "7"], "must be the first word; did you mean ringlet inspect --last 2 7?"),
        (["run", "-np", "3", "step.py"], "-np is not an option: write -n, as in ringlet run -n 3 step.py\n"),
        (["run", "-np"], "-np is not an option: write -n, as in ringlet run -n 4 script.py\n"),
        (["run", "--np", "3", "step.py"], "unrecognized arguments: --np; did you mean -n? (see ringlet run --help)"),
        (
            ["run", "-n", "3", "--replica", "2", "step.py"],
            "unrecognized arguments: --replica; did you mean --replicas?",
        ),
        (["run", "--nproc_per_node", "2", "step.py"], "arguments: --nproc_per_node; did you mean -n?"),
        (["run", "--nproc-per-node=2", "step.py"], "arguments: --nproc-per-node=2; did you mean -n?"),
        (["run", "-N", "2", "step.py"], "arguments: -N; did you mean -n?"),
        (["run", "--verbose"], "unrecognized arguments: --verbose (see ringlet run --help)"),
    ],
)
def test_a_wrong_word_is_answered_in_one_line_with_status_2(arguments, said, capsys):
    status, out, err = said_by(arguments, capsys)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_ctrl_c_waits_until_a_command_is_loaded(monkeypatch):
    loaded = []

    def load(name):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        time.sleep(0)  # where Python would raise it
        loaded.append(name)

    monkeypatch.setattr("importlib.import_module", load)
    with pytest.raises(KeyboardInterrupt):
        main(["doctor"])
    assert loaded == ["ringlet.launcher.commands.doctor_command"]


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "ringlet", "--version"], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"ringlet {__version__}\n"


def test_the_installed_command_is_this_one():
    scripts = re.search(r"^\[project\.scripts\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text("utf-8"), re.M | re.S)
    assert scripts.group(1) == f'ringlet = "{main.__module__}:{main.__name__}"'
