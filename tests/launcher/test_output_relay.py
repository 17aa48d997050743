"""One stream of a worker: its lines, its states, its last words."""

from __future__ import annotations

import os

import pytest

from ringlet.launcher.output_relay import OutputChannel, colored_prefix, prefix_of
from ringlet.launcher.traceback_buffer import LastWords


class Stream:
    """A channel, and the end of its pipe to which a worker would write."""

    def __init__(self, **options):
        reader, self.writer = os.pipe()
        self.written = b""
        self.channel = OutputChannel(2, reader, prefix_of(2), self.write, **options)

    def write(self, lines):
        self.written += lines

    def say(self, data, now=0.0):
        os.write(self.writer, data)
        self.channel.read(now)


@pytest.fixture
def stream():
    stream = Stream(words=LastWords(hold_seconds=1.0), state_seconds=5.0)
    yield stream
    stream.channel.close()
    os.close(stream.writer)


def test_whole_lines_are_written_with_the_prefix(stream):
    stream.say(b"one\ntw")
    assert stream.written == b"[w2] one\n"
    stream.say(b"o\n")
    assert stream.written == b"[w2] one\n[w2] two\n"


def test_bytes_that_are_no_text_pass(stream):
    stream.say(bytes(range(11, 256)) + b"\0\n")
    assert stream.written == b"[w2] " + bytes(range(14, 256)) + b"\0\n"


def test_an_incomplete_line_is_written_when_the_worker_has_ended(stream):
    stream.say(b"almost done")
    assert stream.written == b""
    stream.channel.worker_ended(1.0)
    assert stream.written == b"[w2] almost done\n"


def test_a_progress_bar_is_shown_now_and_then(stream):
    stream.say(b"\r10 %", now=0.0)
    assert stream.channel.tick(4.9) == 5.0
    assert stream.written == b""
    stream.say(b"\r20 %", now=4.9)
    assert stream.channel.tick(5.0) == 10.0
    assert stream.written == b"[w2] 20 %\n"


def test_the_last_state_of_a_progress_bar_is_not_shown_twice(stream):
    stream.say(b"\r100 %", now=0.0)
    stream.channel.tick(5.0)
    stream.say(b"\ndone\n", now=6.0)
    assert stream.written == b"[w2] 100 %\n[w2] done\n"


def test_a_traceback_waits_until_it_is_known_whether_the_worker_lives(stream):
    stream.say(b"Traceback (most recent call last):\nKeyError: 1\n", now=1.0)
    assert stream.channel.tick(1.5) == 2.0
    assert stream.written == b""
    stream.channel.tick(2.0)
    assert stream.written == b"[w2] Traceback (most recent call last):\n[w2] KeyError: 1\n"


def test_last_words_stay_until_they_are_asked_for(stream):
    stream.say(b"Traceback (most recent call last):\nKeyError: 1\n", now=1.0)
    stream.channel.worker_ended(1.1)
    assert stream.channel.tick(9.0) is None
    assert stream.written == b""
    stream.channel.show_last_words()
    assert stream.written.endswith(b"[w2] KeyError: 1\n")


def test_the_end_of_the_stream_is_told(stream):
    reader, writer = os.pipe()
    channel = OutputChannel(0, reader, prefix_of(0), stream.write)
    os.write(writer, b"last")
    os.close(writer)
    assert channel.read(0.0)
    assert not channel.read(0.0)
    channel.close()
    channel.close()
    assert stream.written == b"[w0] last\n"


def test_neighbours_have_different_colours():
    assert len({colored_prefix(worker)[:5] for worker in range(6)}) == 6
