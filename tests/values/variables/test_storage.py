"""What was read from a storage never changes, and memory that nobody reads is written to again."""

from __future__ import annotations

import copy
import gc
import resource

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet import _core
from ringlet.values.variables.storage import _COUNTS_ARE_EXACT, Storage, quietly, replace

MIB = 1 << 20


def add(old, value, new):
    np.add(old, value, out=new)


def address(array):
    return array.__array_interface__["data"][0]


def test_components_are_one_buffer_at_first():
    storage = Storage(np.arange(3), 4)
    assert storage.is_shared
    assert len({address(storage.read(i)) for i in range(4)}) == 1


def test_every_read_is_another_array_object():
    storage = Storage(np.arange(3), 1)
    assert storage.read(0) is not storage.read(0)


def test_reading_copies_nothing():
    storage = Storage(np.zeros(1000), 1)
    assert address(storage.read(0)) == address(storage.read(0))


def test_arrays_that_were_read_cannot_be_made_writeable():
    array = Storage(np.zeros(3), 1).read(0)
    for place in (array, array.base, array[1:], array.view(np.uint8)):
        assert not place.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            place.setflags(write=True)


@pytest.mark.parametrize("write", [lambda s, x: s.write_all(replace, x), lambda s, x: s.write_one(1, replace, x)])
def test_a_value_that_was_read_stays_as_it_is(write):
    storage = Storage(np.array([1.0, 2.0]), 2)
    held = [storage.read(0), storage.read(1)]
    write(storage, np.array([3.0, 4.0]))
    assert [array.tolist() for array in held] == [[1, 2], [1, 2]]
    assert storage.read(1).tolist() == [3, 4]


@pytest.mark.parametrize("derive", [lambda a: a[1:], lambda a: a.view(np.uint8), memoryview, lambda a: a.T[::-1], iter])
def test_whatever_was_derived_from_a_read_array_holds_its_value(derive):
    storage = Storage(np.array([1.0, 2.0, 3.0]), 1)
    held = derive(storage.read(0))
    expected = copy.deepcopy(list(held)) if not isinstance(held, type(iter(np.ones(1)))) else [1, 2, 3]
    storage.write_all(replace, np.zeros(3))
    assert [float(x) for x in held] == [float(x) for x in expected]


def test_memory_that_nobody_reads_is_written_to_again():
    storage = Storage(np.zeros(1000), 2)
    before = address(storage.read(0))
    for number in range(5):
        storage.write_all(replace, np.full(1000, number))
        storage.write_all(add, 1)
    assert address(storage.read(1)) == before


def test_a_replica_that_writes_has_memory_of_its_own_from_then_on():
    storage = Storage(np.zeros(3), 3)
    storage.write_one(1, replace, np.ones(3))
    assert not storage.is_shared
    assert [storage.read(i).tolist() for i in range(3)] == [[0] * 3, [1] * 3, [0] * 3]
    assert address(storage.read(0)) == address(storage.read(2)) != address(storage.read(1))
    mine = address(storage.read(1))
    storage.write_one(1, add, 1)
    assert not _COUNTS_ARE_EXACT or address(storage.read(1)) == mine


def test_components_that_all_get_one_value_are_one_buffer_again():
    storage = Storage(np.zeros(3), 3)
    storage.write_one(1, replace, np.ones(3))
    storage.write_all(add, 1)  # each on its own value
    assert [storage.read(i)[0] for i in range(3)] == [1, 2, 1]
    storage.write_all(replace, np.full(3, 7))
    assert storage.is_shared
    assert len({address(storage.read(i)) for i in range(3)}) == 1
    assert storage.read(2).tolist() == [7, 7, 7]


@given(
    writes=st.lists(
        st.tuples(st.sampled_from([None, 0, 1, 2]), st.sampled_from([replace, add]), st.integers(-9, 9), st.booleans()),
        max_size=20,
    )
)
def test_any_sequence_of_writes_gives_what_separate_arrays_give(writes):
    storage, model, held = Storage(np.zeros(2, np.int64), 3), [np.zeros(2, np.int64) for _ in range(3)], []
    for component, change, value, keeps in writes:
        places = range(3) if component is None else [component]
        for place in places:
            model[place] = np.full(2, value) if change is replace else model[place] + value
        if component is None:
            storage.write_all(change, value)
        else:
            storage.write_one(component, change, value)
        if keeps:
            held += [(storage.read(i), model[i].copy()) for i in range(3)]
    for i in range(3):
        np.testing.assert_array_equal(storage.read(i), model[i])
    for array, expected in held:
        np.testing.assert_array_equal(array, expected)


def test_a_change_that_raises_leaves_the_value_and_the_storage_usable():
    def fail(old, value, new):
        raise KeyError("no such thing")

    storage = Storage(np.arange(3.0), 2)
    for write in (lambda: storage.write_all(fail, 1), lambda: storage.write_one(1, fail, 1)):
        with pytest.raises(KeyError):
            write()
        assert storage.read(0).tolist() == storage.read(1).tolist() == [0, 1, 2]
    storage.write_all(add, 1)
    assert storage.read(1).tolist() == [1, 2, 3]


def test_a_read_in_the_middle_of_a_write_of_the_same_thread_neither_hangs_nor_changes():
    storage, inside = Storage(np.arange(3.0), 2), []

    def change(old, value, new):  # as if a signal handler came here
        inside.append(storage.read(1))
        new[...] = value

    storage.write_all(change, 7.0)
    assert inside[0].tolist() == [0, 1, 2]
    assert storage.read(1).tolist() == [7, 7, 7]


def test_a_value_may_be_the_storage_s_own():
    storage = Storage(np.arange(4.0), 2)
    storage.write_all(replace, storage.read(0)[::-1])
    assert storage.read(1).tolist() == [3, 2, 1, 0]
    storage.write_all(add, storage.read(0))
    assert storage.read(1).tolist() == [6, 4, 2, 0]


def test_a_value_of_another_shape_gets_memory_of_that_shape():
    storage = Storage(np.zeros(2), 2)
    storage.write_all(replace, np.ones((3, 1)), (3, 1))
    assert storage.read(1).shape == storage.shape(0) == (3, 1)
    storage.write_one(0, replace, np.ones(0), (0,))
    assert [storage.shape(i) for i in range(2)] == [(0,), (3, 1)]


def test_a_deep_copy_shares_nothing_but_its_pattern():
    storage = Storage(np.zeros(2), 3)
    assert copy.deepcopy(storage).is_shared
    storage.write_one(2, replace, np.ones(2))
    twin = copy.deepcopy(storage)
    storage.write_all(replace, np.full(2, 9))
    assert [twin.read(i)[0] for i in range(3)] == [0, 0, 1]


def test_a_write_gives_what_it_wrote_and_holds_it():
    storage = Storage(np.zeros(2), 2)
    first = storage.write_all(replace, np.ones(2))
    second = storage.write_one(1, add, 1)
    third = storage.write_each(replace, [np.full(2, 5), np.full(2, 6)], [None, None])
    storage.write_all(replace, np.full(2, 9))
    assert [array.tolist() for array in (*first, second, *third)] == [[1, 1], [1, 1], [2, 2], [5, 5], [6, 6]]
    assert not any(array.flags.writeable for array in (*first, second, *third))


def test_neighbours_that_get_one_object_share_memory():
    storage, same = Storage(np.zeros(2), 3), np.ones(2)
    storage.write_each(replace, [np.full(2, 7), same, same], [None] * 3)
    assert address(storage.read(0)) != address(storage.read(1)) == address(storage.read(2))
    assert [array[0] for array in storage.read_all()] == [7, 1, 1]


@pytest.mark.parametrize("is_diverged", [False, True])
def test_a_write_to_all_components_happens_to_all_or_to_none(is_diverged):
    def fail_at_second(old, value, new):
        np.add(old, value, out=new)
        if old[1] == 1:
            raise KeyError("the second component")

    storage = Storage(np.zeros(2), 3)
    storage.write_one(1, replace, np.array([0.0, 1.0]))
    if not is_diverged:
        storage.write_each(replace, [np.zeros(2), np.array([0.0, 1.0]), np.zeros(2)], [None] * 3)
    for write in (
        lambda: storage.write_all(fail_at_second, 1.0),
        lambda: storage.write_each(fail_at_second, [1.0, 2.0, 3.0], [None] * 3),
    ):
        with pytest.raises(KeyError):
            write()
        assert [array.tolist() for array in storage.read_all()] == [[0, 0], [0, 1], [0, 0]]


def test_a_number_that_overflows_raises_nothing_after_it_was_written():
    total, step = np.array([1e308, 1.0]), np.array([1e308, 1.0])
    with np.errstate(all="raise"):
        quietly(np.add, total, step, total)
        assert np.geterr()["over"] == "raise"
    assert total.tolist() == [np.inf, 2]


def test_a_write_in_the_middle_of_a_write_of_the_same_thread_leaves_the_storage_open():
    storage = Storage(np.arange(3.0), 2)

    def change(old, value, new):  # as if a signal handler came here
        storage.write_all(replace, np.zeros(3))
        new[...] = value

    storage.write_all(change, 7.0)
    for number in range(3):
        storage.write_all(replace, np.full(3, number))
        assert storage.read(1).tolist() == [number] * 3
    before = address(storage.read(0))
    assert not _COUNTS_ARE_EXACT or address(storage.write_all(add, 1)[0]) == before


# --- memory ----------------------------------------------------------------------------------------------------------


def page_faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.mark.parametrize("is_held", [False, True])
def test_large_writes_touch_no_fresh_pages(is_held):
    storage, value, held = Storage(np.zeros(MIB), 2), np.ones(MIB), []
    for _ in range(5):  # two blocks take turns where the last value is held
        held = [storage.read(0)] if is_held else []
        storage.write_all(replace, value)
    before = page_faults()
    for _ in range(20):
        held = [storage.read(0)] if is_held else []
        storage.write_all(replace, value)
    assert page_faults() - before < 200  # 20 fresh buffers of 8 MiB would be 40,960
    del held


def test_ten_thousand_writes_leave_no_memory_behind():
    storage, value = Storage(np.zeros(64), 2), np.ones(64)
    large, large_value = Storage(np.zeros(2 * 4096), 2), np.ones(2 * 4096)
    large.write_all(replace, large_value)
    gc.collect()
    live = _core.pool_statistics()["live_blocks"]
    for number in range(10_000):
        storage.write_one(number % 2, replace, value)
        storage.write_all(add, 1.0)
        large.write_all(replace, large_value)
        large.read(0)
    assert _core.pool_statistics()["live_blocks"] == live


def test_memory_goes_back_when_storage_and_readers_are_gone():
    gc.collect()
    live = _core.pool_statistics()["live_bytes"]
    storage = Storage(np.zeros(MIB), 2)
    held = storage.read(0)[5:]
    del storage
    assert _core.pool_statistics()["live_bytes"] >= live + 8 * MIB
    assert held.sum() == 0
    del held
    assert _core.pool_statistics()["live_bytes"] == live


class Marked(np.ndarray):
    """A class of arrays that a program may ask for."""


def test_reads_and_writes_give_arrays_of_the_class_that_was_asked_for():
    storage = Storage(np.zeros(1000), 2, Marked)
    held = storage.read(1)[:2]
    written = storage.write_all(replace, np.ones(1000))
    twin = copy.deepcopy(storage)
    assert [type(array) for array in (held, *written, twin.read(0), *storage.read_all())] == [Marked] * 6
    assert held.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="WRITEABLE"):
        held.setflags(write=True)


def test_memory_of_such_arrays_is_written_to_again_when_nobody_reads_it():
    storage = Storage(np.zeros(1000), 1, Marked)
    first = address(storage.read(0))
    storage.write_all(replace, np.ones(1000))
    assert not _COUNTS_ARE_EXACT or address(storage.read(0)) == first
    plain = np.asarray(storage.read(0))
    storage.write_all(replace, np.zeros(1000))
    assert plain[0] == 1
