"""Tracebacks are kept back for a while, since they may be the last words of a worker."""

from __future__ import annotations

import pytest

from ringlet.launcher.traceback_buffer import TracebackBuffer, exception_line, first_exception_line

TRACEBACK = b'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 3\n'


def test_lines_before_a_traceback_pass_and_the_traceback_is_kept():
    words = TracebackBuffer()
    assert words.feed(b"step 1\n" + TRACEBACK, now=1.0) == b"step 1\n"
    assert words.text == TRACEBACK
    assert words.began == 1.0


def test_what_follows_a_traceback_is_kept_with_it():
    words = TracebackBuffer()
    words.feed(TRACEBACK, now=1.0)
    assert words.feed(b"Exception ignored in: ...\n", now=1.1) == b""
    assert words.text == TRACEBACK + b"Exception ignored in: ...\n"


def test_a_traceback_is_shown_once_its_worker_has_lived_on_long_enough():
    words = TracebackBuffer(hold_seconds=1.0)
    words.feed(TRACEBACK, now=1.0)
    assert words.due == 2.0
    assert words.overdue(now=1.9) == b""
    assert words.overdue(now=2.0) == TRACEBACK
    assert words.due is None
    assert words.text == b""


def test_lines_pass_again_after_a_traceback_was_shown():
    words = TracebackBuffer()
    words.feed(TRACEBACK, now=1.0)
    words.release()
    assert words.feed(b"step 2\n", now=3.0) == b"step 2\n"


def test_endless_lines_after_a_traceback_are_not_kept_in_memory():
    words = TracebackBuffer()
    words.feed(TRACEBACK, now=1.0)
    assert words.feed(b"x\n" * (1 << 20), now=1.0).startswith(TRACEBACK)


def test_the_last_line_that_says_something_is_remembered():
    words = TracebackBuffer()
    words.feed(b"first\nno data left\n\n", now=1.0)
    assert words.last_line == b"no data left"


@pytest.mark.parametrize(
    "lines",
    [
        b"  + Exception Group Traceback (most recent call last):\n",
        b'  File "a.py", line 3\n    x = (\nSyntaxError: never closed\n',
        b"Fatal Python error: Segmentation fault\n",
    ],
)
def test_other_ends_of_an_interpreter_are_last_words_too(lines):
    words = TracebackBuffer()
    assert words.feed(lines, now=1.0) == b""


def test_a_line_that_only_speaks_of_a_traceback_passes():
    words = TracebackBuffer()
    line = b"see the Traceback (most recent call last): above\n"
    assert words.feed(line, now=1.0) == line


@pytest.mark.parametrize(
    ("traceback", "line"),
    [
        # text, line that names the exception
        (TRACEBACK.decode(), "KeyError: 3"),
        (TRACEBACK.decode() + "Exception ignored in: x\n", "KeyError: 3"),
        (TRACEBACK.decode() + "\nDuring handling ...:\n\n" + TRACEBACK.decode().replace("3", "4"), "KeyError: 4"),
        ('  File "a.py", line 3\n    x = (\n        ^\nSyntaxError: never closed\n', "SyntaxError: never closed"),
        ("Fatal Python error: Segmentation fault\n\nThread\n", "Fatal Python error: Segmentation fault"),
        ("", ""),
    ],
)
def test_the_exception_of_a_traceback_is_found(traceback, line):
    assert exception_line(traceback) == line


DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
LATER = "\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("traceback", "line"),
    [
        # text, line that names the exception with which it began
        (TRACEBACK.decode(), "KeyError: 3"),
        (DIRECT.join(TRACEBACK.decode().replace("3", number) for number in "456"), "KeyError: 4"),
        (LATER.join(TRACEBACK.decode().replace("3", number) for number in "45"), "KeyError: 4"),
        # what was only logged before is no part of it, whatever came of that
        (TRACEBACK.decode() + TRACEBACK.decode().replace("3", "4"), "KeyError: 4"),
        (LATER.join([TRACEBACK.decode()] * 2) + TRACEBACK.decode().replace("3", "4"), "KeyError: 4"),
        ("KeyError: 5\n", "KeyError: 5"),
        ("", ""),
    ],
)
def test_the_exception_with_which_a_traceback_began_is_found(traceback, line):
    assert first_exception_line(traceback) == line


def test_the_prefix_of_torch_is_no_part_of_a_traceback():
    words = TracebackBuffer()
    given = b"".join(b"[rank12]: " + line for line in TRACEBACK.splitlines(keepends=True))
    assert words.feed(b"[rank12]:[W1127] a warning\n" + given, now=1.0) == b"[rank12]:[W1127] a warning\n"
    assert words.text == TRACEBACK
    assert exception_line(words.text.decode()) == "KeyError: 3"
