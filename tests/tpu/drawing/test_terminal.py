"""What is written to terminals and to files."""

from __future__ import annotations

import io
import re

import pytest

from ringlet.tpu import drawing
from ringlet.tpu.drawing.terminal import can_write, has_colours
from tests.tpu.drawing.slices import assignment

COLOUR = re.compile(r"\033\[[\d;]*m")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def four():
    return assignment("v4-32", (2, 2, 1, 1), 4, megacore=True)


def test_a_file_gets_no_colours():
    file = io.StringIO()
    drawing.draw(four(), file=file, width=80)
    assert file.getvalue() == drawing.text(four(), width=80) + "\n"


def test_a_terminal_gets_the_same_in_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    drawing.draw(four(), file=file, width=80)
    assert COLOUR.search(file.getvalue())
    assert COLOUR.sub("", file.getvalue()) == drawing.text(four(), width=80) + "\n"


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_colours_gets_none(environ):
    assert not has_colours(Terminal(), environ)
    assert has_colours(Terminal(), {})


def test_colours_can_be_asked_for_and_refused():
    file, terminal = io.StringIO(), Terminal()
    drawing.draw(four(), file=file, width=80, color=True)
    drawing.draw(four(), file=terminal, width=80, color=False)
    assert COLOUR.search(file.getvalue())
    assert not COLOUR.search(terminal.getvalue())


@pytest.mark.parametrize("columns", [30, 60, 132])
def test_lines_are_as_wide_as_the_terminal_allows(monkeypatch, capsys, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    four().draw()
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= columns
    assert printed == drawing.text(four(), width=columns) + "\n"


def test_an_encoding_without_boxes_gets_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert not can_write(file, "┌")
    drawing.draw(four(), file=file, width=80)
    file.seek(0)
    lines = file.read().splitlines()
    assert lines[2] == "+-----------+   +-----------+   +-----------+   +-----------+"
    assert lines[3].startswith("| 0.0===0.1 |")
