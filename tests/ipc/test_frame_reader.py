"""Messages out of a stream that comes in pieces, and that may be none (reliability E4)."""

from __future__ import annotations

import itertools
import os
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.ipc.frames import BadFrame, frame_start
from ringlet.ipc.unix_channel import FrameReader

# Damaged streams; a nightly run reads more.
ROUNDS = 1_000_000 if os.environ.get("RINGLET_CI_NIGHTLY") else 10_000
MOST_BYTES = 1 << 20

messages = st.lists(
    st.tuples(st.binary(max_size=200), st.lists(st.binary(max_size=300), max_size=4), st.integers(0, 3)), max_size=6
)


def stream_of(sent):
    parts = []
    for number, (header, buffers, count) in enumerate(sent):
        parts += [frame_start(number, header, [len(buffer) for buffer in buffers], count), *buffers]
    return b"".join(parts)


def read(stream, cuts=(1 << 20,)):
    """The messages of a stream that is delivered in pieces of these sizes, again and again."""
    sizes = itertools.cycle(cuts)
    reader, found, at = FrameReader(MOST_BYTES), [], 0
    while at < len(stream):
        room = reader.room()
        count = min(len(room), next(sizes), len(stream) - at)
        room[:count] = stream[at : at + count]
        reader.add(count)
        at += count
        while (frame := reader.take()) is not None:
            header, buffers, descriptors = frame
            found.append((header, [bytes(buffer) for buffer in buffers], descriptors))
    return found


@given(messages, st.lists(st.integers(1, 500), min_size=1))
def test_messages_come_out_as_they_were_sent_however_they_are_cut(sent, cuts):
    assert read(stream_of(sent), cuts) == sent


def test_a_large_buffer_is_received_in_place():
    reader = FrameReader(MOST_BYTES)
    start = frame_start(0, b"", [100_000], 0)
    reader.room()[: len(start)] = start
    reader.add(len(start))
    assert reader.take() is None
    room = reader.room()
    room[:] = b"x" * 100_000
    reader.add(100_000)
    _, (buffer,), _ = reader.take()
    assert np.shares_memory(buffer, np.frombuffer(room, np.uint8))
    assert buffer.flags.writeable


def test_memory_that_is_not_there_is_a_fault_of_the_message(monkeypatch):
    empty = np.empty
    for missing in (8, 5):  # of the sizes, and of the buffer
        monkeypatch.setattr(
            "ringlet.ipc.unix_channel.np.empty",
            lambda size, dtype, missing=missing: exec("raise MemoryError") if size == missing else empty(size, dtype),
        )
        with pytest.raises(BadFrame, match=f"{missing} bytes, but this process has no memory left"):
            read(frame_start(0, b"", [5], 0))
    monkeypatch.undo()
    monkeypatch.setattr("ringlet.ipc.unix_channel.read_sizes", lambda *_: exec("raise MemoryError"))
    with pytest.raises(BadFrame, match="6 bytes, but this process has no memory left"):
        read(frame_start(0, b"header", [], 0))


def test_a_damaged_stream_gives_messages_that_were_sent_and_then_none():
    chance = random.Random(4)
    sent = [(b"first", [b"abc"], 0), (b"second" * 5, [], 2), (b"third", [b"x" * 70, b""], 0), (b"", [], 0)]
    stream = stream_of(sent)
    contents = {stream.index(buffer) + i for _, buffers, _ in sent for buffer in buffers for i in range(len(buffer))}
    of_messages = [i for i in range(len(stream)) if i not in contents]  # buffers are not checked
    for _ in range(ROUNDS):
        damaged = bytearray(stream)
        for _ in range(chance.choice((1, 1, 2, 8))):
            damaged[chance.choice(of_messages)] = chance.randrange(256)
        if chance.random() < 0.2:
            cut = chance.randrange(len(stream))
            damaged[cut : cut + chance.randrange(1, 9)] = chance.randbytes(chance.randrange(9))
        try:
            found = read(bytes(damaged))
        except BadFrame:
            continue
        headers = [header for header, _, _ in found]
        assert headers == [header for header, _, _ in sent][: len(headers)]


@given(st.binary(max_size=2000))
def test_any_other_bytes_are_refused_or_waited_for(data):
    try:
        assert read(data) == []
    except BadFrame:
        assert len(data) >= 28
