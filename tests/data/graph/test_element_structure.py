"""How users' values become elements."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

from ringlet.data.graph.element_structure import as_element, detached, paths, read_only
from ringlet.errors import InvalidArgumentError

Point = namedtuple("Point", "x y")


def test_a_writable_array_becomes_a_view_that_refuses_to_be_written_to():
    array = np.zeros(3)
    element = as_element(array)
    assert np.shares_memory(element, array)
    assert not element.flags.writeable
    assert array.flags.writeable


def test_a_read_only_array_stays_the_same_object():
    array = read_only(np.zeros(3))
    assert as_element(array) is array


@pytest.mark.parametrize(
    ("value", "kind"), [(3, np.int64), (2.5, np.float64), (True, np.bool_), (1j, np.complex128), (np.int8(1), np.int8)]
)
def test_a_number_becomes_the_scalar_that_numpy_makes_of_it(value, kind):
    assert type(as_element(value)) is kind


def test_a_list_is_one_array_and_not_a_structure():
    np.testing.assert_array_equal(as_element([[1, 2], [3, 4]]), np.array([[1, 2], [3, 4]]))
    np.testing.assert_array_equal(as_element({"a": [np.zeros(2), np.ones(2)]})["a"], [[0, 0], [1, 1]])


def test_tuples_dictionaries_and_named_tuples_keep_their_structure():
    element = as_element({"p": Point(1, (2.5, "t")), "q": ()})
    assert type(element["p"]) is Point
    assert element == {"p": Point(1, (2.5, "t")), "q": ()}


def test_bytes_that_end_in_zeros_are_kept_whole():
    assert as_element(b"a\0") == b"a\0"
    assert as_element([b"a\0", b""]).tolist() == [b"a\0", b""]


def test_an_array_of_another_library_is_viewed_and_not_copied():
    class Foreign:
        data = np.arange(3)

        def __array__(self, dtype=None, copy=None):
            return self.data

    assert np.shares_memory(as_element((Foreign(),))[0], Foreign.data)


def test_a_memory_map_stays_one(tmp_path):
    mapped = np.lib.format.open_memmap(tmp_path / "a.npy", mode="w+", dtype=np.int64, shape=(4,))
    assert np.shares_memory(as_element(mapped), mapped)


@pytest.mark.parametrize("value", [object(), {1, 2}, Path("x"), np.array([None]), (1, [{}])])
def test_what_numpy_can_make_no_numbers_or_text_of_is_refused(value):
    with pytest.raises(TypeError, match="numbers, text or bytes"):
        as_element(value)


def test_a_ragged_list_is_refused_with_the_way_out():
    with pytest.raises(InvalidArgumentError, match="Use a tuple"):
        as_element([[1], [2, 3]])


def test_an_array_that_somebody_can_write_to_is_detached_by_a_copy_and_no_other_is():
    writable, fixed = np.zeros((2, 3)), read_only(np.ones(3).copy())
    fixed.base.setflags(write=False)
    element = as_element((writable.T, fixed, fixed[1:], "text"))
    copy, *others = detached(element)
    assert not np.shares_memory(copy, writable)
    assert (copy.flags.writeable, copy.flags.f_contiguous) == (False, True)
    assert all(one is other for one, other in zip(others, element[1:], strict=True))
    assert detached(element, {"given": writable[1:]})[0] is element[0]


def test_a_masked_array_is_refused_because_its_mask_would_be_lost():
    with pytest.raises(TypeError, match=r"x\.mask"):
        as_element({"x": np.ma.array([1, 2], mask=[True, False])})


def test_paths_name_leaves_as_index_expressions():
    assert paths({"b": 1, "a": (2, [3])}) == ["['a'][0]", "['a'][1][0]", "['b']"]
    assert paths(1) == [""]
