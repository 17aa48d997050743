"""Iterators that are saved go on exactly where they were, also in another process."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import Dataset
from ringlet.errors import OutOfRangeError
from tests.data.state_cases import CHAINS, Point, add_one, build, through_a_file, written


def after(iterator, count):
    for _ in range(count):
        next(iterator, None)
    return iterator


@given(names=CHAINS, cut=st.integers(0, 25))
def test_a_restored_iterator_gives_what_the_saved_one_would_have_given(names, cut):
    with after(iter(build(names)), cut) as first, iter(build(names)) as second:
        second.set_state(through_a_file(first.get_state()))
        assert written(second) == written(first)


@given(names=CHAINS, cut=st.integers(0, 12), more=st.integers(0, 12))
def test_a_restored_iterator_can_be_saved_again(names, cut, more):
    with after(iter(build(names)), cut) as first, iter(build(names)) as second, iter(build(names)) as third:
        second.set_state(first.get_state())
        third.set_state(after(second, more).get_state())
        assert written(third) == written(after(first, more))


@given(names=CHAINS, cut=st.integers(0, 25))
def test_saving_changes_nothing(names, cut):
    dataset = build(names)
    with iter(dataset) as first, iter(dataset) as second:
        second.set_state(first.get_state())  # the same seeds for both
        for _ in range(cut):
            first.get_state()
            next(first, None)
        assert written(first) == written(after(second, cut))


def test_a_snapshot_is_not_changed_by_what_the_iterator_does_later():
    dataset = Dataset.range(20).map(add_one).shuffle(5).prefetch(2)
    iterator = after(iter(dataset), 3)
    state = iterator.get_state()
    expected = written(iterator)
    for _ in range(2):
        later = iter(dataset)
        later.set_state(state)
        assert written(later) == expected


SCRIPT = """
import pickle, sys
from tests.data.state_cases import build, written
names, state = pickle.load(sys.stdin.buffer)
iterator = iter(build(names))
iterator.set_state(state)
sys.stdout.write("\\n".join(written(iterator)))
"""


def test_an_iterator_goes_on_in_a_new_process():
    names = ("threads", "shuffle(4)", "repeat(2)", "batch(2)", "prefetch(2)")
    with after(iter(build(names)), 4) as iterator:
        given = pickle.dumps((names, through_a_file(iterator.get_state())))
        done = subprocess.run([sys.executable, "-c", SCRIPT], input=given, capture_output=True, timeout=60, check=True)
        assert done.stdout.decode().split("\n") == written(iterator)


def test_an_unseeded_shuffle_goes_on_with_its_orders_in_later_rounds_too():
    def make():
        return Dataset.range(50).shuffle(50).repeat(3)

    first, second = after(iter(make()), 10), iter(make())
    second.set_state(first.get_state())
    assert list(second) == list(first)


def test_an_iterator_at_its_end_or_closed_stays_there():
    for dataset in (Dataset.range(3), Dataset.range(3).map(add_one).shuffle(2).prefetch(1).take(2)):
        for end in (list, lambda iterator: iterator.close()):
            first, second = iter(dataset), iter(dataset)
            end(first)
            second.set_state(first.get_state())
            with pytest.raises(OutOfRangeError):
                second.get_next()


def test_setting_a_state_in_the_middle_goes_back():
    iterator = iter(Dataset.range(9).map(add_one).prefetch(2))
    state = after(iterator, 2).get_state()
    after(iterator, 3)
    iterator.set_state(state)
    assert next(iterator) == 3
    iterator.close()


def test_every_kind_of_element_survives_in_a_buffer():
    def element(number):
        array = np.full((2, 2), number, np.float32)
        return {
            "array": array,
            "row": array[0],
            "tuple": (np.int8(number), [1, 2], 2.5, True),
            "text": "é" * int(number),
            "bytes": b"ends in zero \0",
            "texts": np.array(["a", "bc"]),
            "objects": [b"a\0", b""],
            "dates": np.array(["2024-01-01"], "datetime64[D]"),
            "date": np.datetime64("2024-01-01", "s"),
            "complex": 1j,
        }

    dataset = Dataset.range(6).map(element).shuffle(4).prefetch(2)
    with after(iter(dataset), 1) as first, iter(dataset) as second:
        second.set_state(through_a_file(first.get_state()))
        assert written(second) == written(first)


def test_named_tuples_get_their_class_back():
    dataset = Dataset.range(6).map(lambda x: Point(x, {"text": "a"})).shuffle(4)
    first, second = after(iter(dataset), 1), iter(dataset)
    second.set_state(through_a_file(first.get_state()))
    restored = list(second)
    assert written(restored) == written(first)
    assert {type(element) for element in restored} == {Point}


def test_elements_on_their_way_through_threads_are_neither_lost_nor_doubled():
    release = threading.Event()
    called = []

    def function(x):
        called.append(int(x))
        assert release.wait(30) or True
        return x

    dataset = Dataset.range(8).map(function, num_parallel_calls=3)
    iterator = iter(dataset)
    thread = threading.Thread(target=lambda: called.append(("first", int(next(iterator)))))
    thread.start()
    while len([c for c in called if isinstance(c, int)]) < 3:
        pass
    release.set()
    thread.join()
    later = iter(dataset)
    later.set_state(iterator.get_state())
    assert [int(x) for x in later] == [int(x) for x in iterator] == list(range(1, 8))


def test_an_error_that_was_on_its_way_comes_in_its_place():
    def function(x):
        if x == 2:
            raise ValueError("bad element")
        return x

    dataset = Dataset.range(5).map(function).prefetch(3)
    iterator = iter(dataset)
    next(iterator)
    channel = iterator._stream._channel
    with channel._changed:
        assert channel._changed.wait_for(lambda: len(channel._ready) == 2, 30)
    later = iter(dataset)
    later.set_state(through_a_file(iterator.get_state()))
    for found in (iterator, later):
        assert next(found) == 1
        with pytest.raises((ValueError, RuntimeError), match="bad element"):
            next(found)
        assert [int(x) for x in found] == [3, 4]


def test_a_stream_that_cannot_be_saved_says_so():
    from ringlet.data.graph.node import Stream

    class Odd(Stream):
        def __next__(self):
            raise StopIteration

        def close(self):
            pass

    with pytest.raises(NotImplementedError, match="state of a Odd cannot be saved"):
        Odd().get_state()
