"""Values as messages."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.ipc.message_codec import Unsendable, pack, unpack


def through(value, refer=None, resolve=None):
    """What arrives, in memory of its own."""
    header, buffers = pack(value, refer)
    assert type(header) is bytes
    return unpack(header, [np.frombuffer(bytearray(bytes(buffer)), np.uint8) for buffer in buffers], resolve)


@given(st.recursive(st.none() | st.integers() | st.binary(), lambda x: st.lists(x) | st.tuples(x)))
def test_a_value_arrives_equal(value):
    assert through(value) == value


@given(hnp.arrays(hnp.scalar_dtypes() | hnp.nested_dtypes(), hnp.array_shapes(min_dims=0, min_side=0, max_side=4)))
def test_an_array_arrives_with_its_dtype_and_bits(array):
    received = through(array)
    assert (received.dtype, received.shape) == (array.dtype, array.shape)
    if not array.dtype.hasobject:
        assert received.tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "int4"])
def test_arrays_of_types_of_another_library_arrive(name):
    dtype = getattr(pytest.importorskip("ml_dtypes"), name)
    received = through(np.ones((2, 3), dtype))
    assert received.dtype == dtype
    assert received.astype(float).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    "view",
    [
        np.arange(12).reshape(3, 4).T,
        np.arange(12)[::-2],
        np.broadcast_to(np.float32(3), (2, 2)),
        np.arange(12).reshape(3, 4)[1:, ::2],
        np.array("2024-03-01", "M8[D]"),
        np.array(["a", "bcd"]),
        np.arange(3).astype(">i4"),
        np.zeros((2, 0)),
    ],
)
def test_views_of_any_layout_arrive_equal_with_their_order(view):
    received = through(view)
    assert received.dtype == view.dtype
    assert received.flags.f_contiguous == (view.flags.f_contiguous or (not view.flags.c_contiguous and view.ndim < 2))
    np.testing.assert_array_equal(received, view)


def test_the_memory_of_a_contiguous_array_is_neither_copied_nor_pickled():
    array = np.arange(1000.0)
    for value in (array, {"a": [array]}, array.reshape(10, 100).T):
        header, (buffer,) = pack(value)
        assert np.shares_memory(buffer, array)
        assert len(header) < 200


def test_arrays_in_closures_and_objects_are_buffers_too():
    pytest.importorskip("cloudpickle")
    weights = np.arange(1000.0)
    header, (buffer,) = pack(lambda x: x + weights)
    assert np.shares_memory(buffer, weights)
    assert unpack(header, [buffer])(1)[-1] == 1000


def test_an_array_that_occurs_twice_is_sent_once_and_is_one_afterwards():
    array = np.arange(3)
    assert len(pack([array, array])[1]) == 1
    one, other = through([array, array])
    assert one is other


def test_what_could_not_be_written_to_cannot_be_afterwards():
    fixed = np.arange(3)
    fixed.flags.writeable = False
    masked = np.ma.masked_array([1, 2, 3])
    received = through([fixed, np.arange(3), masked])
    assert [array.flags.writeable for array in received] == [False, True, True]


def test_arrays_of_objects_and_of_other_classes_arrive_by_pickle():
    received = through([np.array([None, "x"], object), np.ma.masked_array([1, 2], [True, False])])
    assert received[0].tolist() == [None, "x"]
    assert received[1].mask.tolist() == [True, False]


class Table:
    """Something that exists once."""


def test_what_is_referred_to_travels_as_its_token():
    table = Table()
    known = {"table 3": table}
    refer = lambda value: "table 3" if isinstance(value, Table) else None  # noqa: E731
    header, buffers = pack({"on": table, "off": [table, 5]}, refer)
    assert b"Table" not in header
    received = unpack(header, buffers, known.__getitem__)
    assert received["on"] is received["off"][0] is table


def test_a_reference_that_nobody_can_resolve_is_an_error():
    with pytest.raises(Exception, match="nobody knows what it stands for"):
        through(Table(), lambda value: "x" if isinstance(value, Table) else None)


def test_what_cannot_be_sent_is_named():
    lock = threading.Lock()
    for value, text in (
        ({"a": [lock]}, r"cannot send \['a'\]\[0\] \(an object of class lock\): cannot pickle"),
        (lambda: lock, r"cannot send variable 'lock' of .*<lambda> \(an object of class lock\)"),
    ):
        with pytest.raises(Unsendable, match=text):
            pack(value)


def test_what_a_reference_refuses_is_told_as_it_says_it():
    def refer(value):
        if isinstance(value, Table):
            raise Unsendable("tables stay where they are")

    with pytest.raises(Unsendable, match="tables stay where they are"):
        pack([Table()], refer)


def test_without_cloudpickle_a_function_of_a_script_is_refused_with_the_extra_that_helps(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)

    def step():
        pass

    step.__module__, step.__qualname__ = "__main__", "step"
    with pytest.raises(Unsendable, match=r"cannot send .*step.*: step is defined in __main__.*ringlet\[cluster\]"):
        pack({"step": step})
    assert through({"max": max, "x": np.arange(2)})["max"] is max


class _Made:
    """Something that makes an array of its state when it is pickled, and keeps nothing of that."""

    def __init__(self, number=0):
        self.number = number

    def __reduce__(self):
        return _Made, (), np.full((4, 2), self.number)[:, 0]

    def __setstate__(self, state):
        self.number = int(state[0])


def test_arrays_that_are_made_while_others_are_pickled_are_told_apart():
    assert [made.number for made in through([_Made(number) for number in range(100)])] == list(range(100))
