"""Drawing of progress bars, with and without the library rich."""

from __future__ import annotations

import builtins
import io
import re
import sys
import types

import pytest

import ringlet
from ringlet.rank_zero import progress_backends
from ringlet.rank_zero.progress_backends import Style, open_bar, progress_text


@pytest.fixture
def without_rich(monkeypatch):
    real = builtins.__import__

    def refusing(name, *args, **kwargs):
        if name.startswith("rich"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refusing)


def lines_on_screen(text):
    """Return what a terminal shows of rewritten lines: the last text of each line."""
    return [re.split(r"\r\x1b\[2K", line)[-1] for line in text.split("\n")]


@pytest.mark.parametrize(
    ("total", "count", "seconds", "expected"),
    [
        # total, count, seconds, text
        (None, 0, 0.0, "a: 0"),
        (10, 0, 0.0, "a: 0/10 (0 %)"),
        (10, 5, 2.0, "a: 5/10 (50 %), 2.5/s, 2 s left"),
        (1000, 10, 1000.0, "a: 10/1000 (1 %), 0.01/s, 27 h 30 min left"),
        (1000, 10, 10.0, "a: 10/1000 (1 %), 1.0/s, 16 min left"),
        (10, 10, 2.0, "a: 10/10, 5.0/s"),
        (10, 12, 2.0, "a: 12/10, 6.0/s"),
        (0, 0, 1.0, "a: 0/0"),
    ],
)
def test_a_line_shows_progress_and_rate(total, count, seconds, expected):
    assert progress_text("a", total, count, seconds) == expected


def test_without_rich_one_line_is_written_anew(without_rich):
    file = io.StringIO()
    bar = open_bar(file, "steps", 4, Style.REDRAW)
    bar.show(2, 1.0)
    bar.end(4, 2.0)
    assert lines_on_screen(file.getvalue()) == ["steps: 4/4, 2.0/s", ""]


def test_without_rich_the_innermost_loop_has_the_line(without_rich):
    file = io.StringIO()
    outer = open_bar(file, "epochs", 2, Style.REDRAW)
    inner = open_bar(file, "steps", 4, Style.REDRAW)
    outer.show(1, 1.0)
    inner.show(3, 1.0)
    assert lines_on_screen(file.getvalue())[-1].startswith("steps: 3/4")
    inner.end(4, 2.0)
    assert lines_on_screen(file.getvalue()) == [""]
    outer.show(2, 3.0)
    outer.end(2, 3.0)
    assert lines_on_screen(file.getvalue()) == ["epochs: 2/2, 0.667/s", ""]


def test_without_rich_print0_takes_the_line_and_the_bar_comes_back(without_rich):
    file = io.StringIO()
    bar = open_bar(file, "steps", 4, Style.REDRAW)
    ringlet.print0("between", file=file)
    bar.show(2, 1.0)
    bar.end(4, 2.0)
    assert lines_on_screen(file.getvalue()) == ["between", "steps: 4/4, 2.0/s", ""]


def test_rich_shows_a_bar_for_each_loop_in_one_display():
    pytest.importorskip("rich")
    file = io.StringIO()
    outer = open_bar(file, "epochs", 2, Style.REDRAW)
    inner = open_bar(file, "steps", 4, Style.REDRAW)
    assert len(progress_backends._RichBar._displays) == 1
    inner.show(2, 1.0)
    inner.end(4, 2.0)
    outer.end(2, 2.0)
    assert progress_backends._RichBar._displays == {}
    assert "epochs" in file.getvalue()
    assert "2/2" in file.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_notebook_without_ipywidgets_a_line_is_written_anew(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    monkeypatch.setattr(progress_backends, "find_spec", lambda name: None)
    file = io.StringIO()
    open_bar(file, "epochs", 2, Style.REDRAW).end(2, 1.0)
    assert lines_on_screen(file.getvalue()) == ["epochs: 2/2, 2.0/s", ""]


def test_rich_does_not_redirect_output_to_a_file(monkeypatch):
    pytest.importorskip("rich")
    printed, terminal = io.StringIO(), Terminal()
    monkeypatch.setattr("sys.stdout", printed)
    bar = open_bar(terminal, "steps", 4, Style.REDRAW)
    print("a result")
    bar.end(4, 1.0)
    assert printed.getvalue() == "a result\n"
    assert "a result" not in terminal.getvalue()


def test_without_rich_a_bar_that_fails_to_draw_releases_the_line(without_rich):
    class Broken(io.StringIO):
        def write(self, text):
            raise OSError(5, "terminal has gone")

    with pytest.raises(OSError, match="terminal has gone"):
        open_bar(Broken(), "steps", 4, Style.REDRAW)
    assert progress_backends._LineBar._open == []


def test_rich_needs_no_thread_of_its_own():
    pytest.importorskip("rich")
    import threading

    before = threading.active_count()
    bar = open_bar(io.StringIO(), "steps", 4, Style.REDRAW)
    assert threading.active_count() == before
    bar.end(4, 1.0)
