"""The file of a cache."""

from __future__ import annotations

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data.state.cache_file import SUFFIX, CacheReader, CacheWriter
from ringlet.errors import DataLossError


@pytest.fixture
def name(tmp_path):
    return str(tmp_path / "cache")


def write(name, states):
    writer = CacheWriter.begin(name)
    for state in states:
        writer.write(state)
    writer.finish()


STATES = [{"x": 1}, [b"ab", None], "text", {"count": 0}, {"count": 3}]


def test_states_come_back_in_their_order(name):
    write(name, STATES)
    assert list(CacheReader(name)) == STATES


def test_reading_goes_on_at_any_record(name):
    write(name, STATES)
    reader = CacheReader(name)
    next(reader), next(reader)
    assert list(CacheReader(name, reader.offset, reader.count)) == STATES[2:]


def test_a_file_has_its_name_only_when_it_is_complete(name, tmp_path):
    writer = CacheWriter.begin(name)
    writer.write(1)
    with pytest.raises(FileNotFoundError):
        CacheReader(name)
    writer.finish()
    assert list(CacheReader(name)) == [1]
    assert len(list(tmp_path.iterdir())) == 1


def test_only_one_writer_is_at_work(name, tmp_path):
    writer = CacheWriter.begin(name)
    assert CacheWriter.begin(name) is None
    writer.abandon()
    writer.abandon()
    assert list(tmp_path.iterdir()) == []
    assert CacheWriter.begin(name) is not None


def test_a_forked_child_does_not_take_the_file_away(name, tmp_path):
    writer = CacheWriter.begin(name)
    child = os.fork()
    if child == 0:
        writer.abandon()
        os._exit(0)
    os.waitpid(child, 0)
    writer.write(1)
    writer.finish()
    assert list(CacheReader(name)) == [1]


def test_many_writers_one_after_another_leave_a_whole_file(name):
    def run():
        writer = CacheWriter.begin(name)
        if writer is not None:
            writer.write("whole")
            writer.finish()

    for _ in range(20):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert list(CacheReader(name)) == ["whole"]


@given(st.data())
def test_a_file_that_was_cut_or_changed_anywhere_is_never_taken_for_another(tmp_path_factory, data):
    name = str(tmp_path_factory.mktemp("cache") / "c")
    write(name, STATES)
    path = name + SUFFIX
    with open(path, "rb") as file:  # noqa: PTH123
        content = bytearray(file.read())
    at = data.draw(st.integers(0, len(content) - 1), "place")
    if data.draw(st.booleans(), "cut"):
        del content[at:]
    else:
        content[at] ^= data.draw(st.integers(1, 255), "bits")
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(content)
    with pytest.raises(DataLossError) as caught:
        list(CacheReader(name))
    assert caught.value.file == path
