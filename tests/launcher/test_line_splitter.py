"""Bytes become whole lines, however they arrive."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringlet.launcher.output_relay import LineSplitter, prefixed

pieces = st.lists(st.binary(max_size=40).map(lambda data: data.replace(b"\r", b"")), max_size=8)
with_returns = st.lists(st.sampled_from([b"a", b"b", b"\r", b"\n", b"\xff"]), max_size=12)


def all_lines(parts: list[bytes], longest: int = 1 << 20) -> bytes:
    splitter = LineSplitter(longest)
    return b"".join([*(splitter.feed(part) for part in parts), splitter.end()])


@given(pieces)
def test_nothing_is_lost_and_an_incomplete_line_at_the_end_is_completed(parts):
    whole = b"".join(parts)
    assert all_lines(parts) == whole + (b"\n" if whole and not whole.endswith(b"\n") else b"")


@given(pieces)
def test_what_is_given_ends_with_a_line(parts):
    splitter = LineSplitter()
    assert all(not given or given.endswith(b"\n") for given in map(splitter.feed, parts))


@given(with_returns)
def test_how_a_line_is_cut_into_pieces_does_not_matter(parts):
    assert all_lines(parts) == all_lines([b"".join(parts)])


def test_a_line_that_is_started_anew_has_its_last_text():
    assert all_lines([b"\r 10 %", b"\r 20 %\r 30 %", b"\n", b"done\n"]) == b" 30 %\ndone\n"


def test_the_line_ends_of_windows_are_line_ends():
    assert all_lines([b"one\r\ntwo\r", b"\n"]) == b"one\ntwo\n"


def test_the_state_is_what_a_terminal_would_show():
    splitter = LineSplitter()
    splitter.feed(b"plain")
    assert splitter.state == b""
    splitter.feed(b"\r 50 %\r")
    assert splitter.state == b" 50 %"
    splitter.feed(b"\n")
    assert splitter.state == b""


def test_a_progress_bar_takes_memory_for_one_state_only():
    splitter = LineSplitter(longest=100)
    assert all(splitter.feed(b"\r%50d" % step) == b"" for step in range(1000))


def test_a_line_without_end_is_cut_after_so_many_bytes():
    assert all_lines([b"x" * 60] * 4, longest=100) == (b"x" * 120 + b"\n") * 2


@given(pieces)
def test_every_line_gets_the_prefix_and_nothing_else_changes(parts):
    lines = all_lines(parts)
    with_prefix = prefixed(lines, b"[w2] ").split(b"\n")[:-1]
    assert all(line.startswith(b"[w2] ") for line in with_prefix)
    assert [line[5:] for line in with_prefix] == lines.split(b"\n")[:-1]
