"""The text of ``ringlet tpu`` fits its terminal."""

from __future__ import annotations

import sys

import pytest

from ringlet.launcher.command_line import main

LONG = [
    "tpu",
    "v4-512",
    "--computation-shape",
    "2,2,2,2",
    "--no-megacore",
    "--all-reduce",
    "1GiB",
    "--all-to-all",
    "1GB",
    "--flops",
    "1e12",
]


def lines(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    found = lines(capsys, *LONG)
    assert max(map(len, found)) <= width


def test_nothing_gets_lost_on_a_narrow_terminal(capsys, monkeypatch):
    words = []
    for width in ("30", "300"):
        monkeypatch.setenv("COLUMNS", width)
        words.append(" ".join(lines(capsys, *LONG)).split())
    assert words[0] == words[1]


def test_there_is_no_colour_off_a_terminal(capsys):
    assert not any("\x1b" in line for line in lines(capsys, *LONG))


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb"), ("TERM", "xterm")])
def test_headings_are_bold_on_a_terminal_that_wants_it(capsys, monkeypatch, variable, value):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    bold = [line for line in lines(capsys, *LONG) if line.startswith("\x1b[1m")]
    assert len(bold) == (5 if value == "xterm" else 0)


def test_long_assignments_are_cut_in_the_middle_and_say_so(capsys):
    found = lines(capsys, "tpu", "v5e-64")
    assert "  ... 55 more ..." in found
    assert any(line.startswith("  replica 63") for line in found)
    assert not any("more" in line for line in lines(capsys, "tpu", "v5e-8"))


def test_a_replica_says_which_hosts_chips_and_cores_it_has(capsys):
    found = lines(capsys, "tpu", "v4-16", "--computation-shape", "1,1,2,2", "--no-megacore")
    assert "  replica 0  hosts 0-1: 0,0,0 cores 0+1; 0,0,1 cores 0+1" in found


def test_an_assignment_that_leaves_chips_empty_says_so(capsys):
    (heading,) = (line for line in lines(capsys, "tpu", "v5e-16", "--replicas", "4") if "Assignment" in line)
    assert heading.endswith("; 4 of 16 chips used")
    assert not any("used" in line for line in lines(capsys, "tpu", "v5e-16"))


def test_a_collective_of_one_device_has_nothing_to_do(capsys):
    assert "  nothing to do" in lines(capsys, "tpu", "v5e-4", "--all-reduce", "1GB", "--axis", "core")


def test_a_step_says_its_bound(capsys):
    found = lines(capsys, "tpu", "v5e-4", "--all-reduce", "1MB", "--flops", "1e13")
    assert "Step of 50.76 ms, overlapped: bound by compute" in found
