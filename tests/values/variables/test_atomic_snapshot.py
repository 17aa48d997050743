"""Several variables are read and written at one moment."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ringlet
from ringlet.values.variables.atomic_snapshot import NewValue, read_at_one_moment, write_at_one_moment


def pair() -> ringlet.MirroredStrategy:
    return ringlet.MirroredStrategy(["CPU:0", "CPU:1"])


def new_value(variable, *parts):
    value = NewValue.of(variable, [np.shape(part) for part in parts])
    for array, part in zip(value.arrays, parts, strict=True):
        array[...] = part
    return value


def test_components_that_share_memory_are_one_object():
    with pair().scope():
        shared = ringlet.Variable([1.0, 2.0])
        apart = ringlet.Variable([1.0, 2.0])
    apart.values[1].assign([3.0, 4.0])
    (first, second), (third, fourth) = read_at_one_moment([shared, apart])
    assert first is second
    assert [third.tolist(), fourth.tolist()] == [[1.0, 2.0], [3.0, 4.0]]


def test_what_was_read_does_not_change():
    v = ringlet.Variable([1.0])
    ((read,),) = read_at_one_moment([v])
    earlier = v.read_value()
    write_at_one_moment([new_value(v, [2.0])])
    v.assign_add([5.0])
    assert (read.tolist(), earlier.tolist(), v.numpy().tolist()) == ([1.0], [1.0], [7.0])


def test_one_component_is_written_by_itself():
    with pair().scope():
        v = ringlet.Variable(1.0)
    write_at_one_moment([new_value(v.values[1], 5.0)])
    assert [float(component) for component in v.values] == [1.0, 5.0]


def test_two_components_given_apart_are_both_written():
    with pair().scope():
        v = ringlet.Variable(1.0)
    write_at_one_moment([new_value(v.values[1], 5.0), new_value(v.values[0], 4.0)])
    assert [float(component) for component in v.values] == [4.0, 5.0]


def test_readers_of_all_never_see_half_of_the_variables_written():
    variables = [ringlet.Variable(np.zeros(500)) for _ in range(8)]
    stop = threading.Event()

    def write():
        number = 0.0
        while not stop.is_set():
            number += 1
            write_at_one_moment([new_value(v, np.full(500, number)) for v in variables])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            seen = read_at_one_moment(variables)
            assert len({float(x) for (array,) in seen for x in (array[0], array[-1])}) == 1
    finally:
        stop.set()
        writer.join(30)


def test_an_addition_is_never_lost_between_reading_and_writing():
    v = ringlet.Variable(np.zeros(2000))

    def add():
        for _ in range(300):
            v.assign_add(np.ones(2000))

    adder = threading.Thread(target=add)
    adder.start()
    for _ in range(100):
        write_at_one_moment([new_value(v, np.full(2000, 1000.0))])
    adder.join(30)
    assert len(set(v.numpy().tolist())) == 1


def test_an_interrupt_leaves_no_lock_taken():
    variables = [ringlet.Variable(float(i)) for i in range(3)]
    taken = variables[2]._storage._lock

    class Interrupted(Exception):
        pass

    class Lock:
        def acquire(self):
            raise Interrupted

        def release(self):
            taken.release()

    variables[2]._storage._lock = Lock()
    with pytest.raises(Interrupted):
        read_at_one_moment(variables)
    variables[2]._storage._lock = taken
    done = []
    thread = threading.Thread(target=lambda: done.extend(read_at_one_moment(variables)))
    thread.start()
    thread.join(10)
    assert len(done) == 3
