"""Values as messages, and calls and results as bytes over a pipe."""

from __future__ import annotations

import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ringlet.ipc.pickle_codec import ParcelReader, Unsendable, dumps, pack, pack_call, pack_result, send, unpack


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
    with pytest.raises(Exception, match="no resolve= was given"):
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


# --- calls and results ------------------------------------------------------------------------------------------------


def through_a_pipe(parcel):
    """What comes out of a pipe that a thread fills."""
    reader, writer = os.pipe()
    thread = threading.Thread(target=send, args=(writer, parcel))
    thread.start()
    received = ParcelReader()
    try:
        while not received.is_complete:
            received.read(reader)
    finally:
        thread.join()
        os.close(reader)
        os.close(writer)
    return received.value()


def double(x):
    return 2 * x


@given(st.recursive(st.none() | st.integers() | st.binary(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_a_result_comes_back_equal(value):
    assert through_a_pipe(pack_result(True, value)) == (True, value)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (300, 500)])
def test_arrays_come_back_with_dtype_order_and_bits(shape):
    arrays = [
        np.arange(np.prod(shape, dtype=int)).astype(dtype).reshape(shape, order=order)
        for dtype in ("f4", "i8", "c16", "?", ">i2", "S3")
        for order in "CF"
    ]
    _, received = through_a_pipe(pack_result(True, arrays))
    for array, other in zip(arrays, received, strict=True):
        assert (other.dtype, other.flags.f_contiguous) == (array.dtype, array.flags.f_contiguous)
        np.testing.assert_array_equal(other, array)


def test_the_memory_of_an_array_is_not_copied_before_it_is_sent():
    array = np.arange(1000)
    _, raw = pack_result(True, array)
    assert np.shares_memory(np.frombuffer(raw, np.uint8), array)


def test_an_array_that_could_not_be_written_to_cannot_be_afterwards():
    array = np.arange(3)
    array.flags.writeable = False
    _, (fixed, free) = through_a_pipe(pack_result(True, (array, np.arange(3))))
    assert (fixed.flags.writeable, free.flags.writeable) == (False, True)


def test_a_pipe_that_ends_too_early_leaves_the_parcel_incomplete():
    reader, writer = os.pipe()
    os.write(writer, bytes(pack_result(True, "all")[0])[:-1])
    os.close(writer)
    parcel = ParcelReader()
    while parcel.read(reader):
        pass
    os.close(reader)
    assert not parcel.is_complete


def test_a_call_arrives_whole():
    function, args, kwargs = pickle.loads(pack_call(double, (3,), {}))
    assert function(*args, **kwargs) == 6


def test_lambdas_and_inner_functions_are_sent_by_cloudpickle():
    pytest.importorskip("cloudpickle")
    factor = 3
    function, args, _ = pickle.loads(pack_call(lambda x: factor * x, (2,), {}))
    assert function(*args) == 6


def test_what_cannot_be_sent_is_named_among_the_arguments():
    with pytest.raises(
        Unsendable, match=r"cannot send args\[1\] \(an object of class lock\) to workers: cannot pickle"
    ):
        pack_call(double, (1, threading.Lock()), {})
    with pytest.raises(TypeError, match=r"cannot send x= \(an object of class lock\) to workers"):
        pack_call(double, (), {"x": threading.Lock()})


def test_a_result_that_cannot_be_sent_is_named():
    with pytest.raises(Unsendable, match=r"cannot send the result \(an object of class lock\) back: cannot pickle"):
        pack_result(True, threading.Lock())


def test_functions_keep_their_files_and_lines():
    pytest.importorskip("cloudpickle")

    def step():
        return lambda: None

    for sent in (pickle.loads(dumps(step)), unpack(*pack(step))):
        for code, original in ((sent.__code__, step.__code__), (sent().__code__, step().__code__)):
            assert (code.co_filename, code.co_firstlineno) == (__file__, original.co_firstlineno)


@pytest.fixture
def without_cloudpickle(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)


@pytest.mark.usefixtures("without_cloudpickle")
def test_without_cloudpickle_functions_of_modules_are_sent():
    assert pickle.loads(pack_call(double, (3,), {}))[0] is double


@pytest.mark.usefixtures("without_cloudpickle")
def test_without_cloudpickle_a_function_of_a_notebook_is_refused_with_the_extra_that_helps():
    def in_a_notebook():
        pass

    in_a_notebook.__module__, in_a_notebook.__qualname__ = "__main__", "train"
    for call in ((in_a_notebook, (), {}), (double, (in_a_notebook,), {})):
        with pytest.raises(Unsendable, match=r"train is defined in __main__.*pip install 'ringlet\[cluster\]'"):
            pack_call(*call)
    with pytest.raises(Unsendable, match=r"cannot send .*<lambda> to workers: .*'ringlet\[cluster\]'"):
        pack_call(lambda: None, (), {})


@pytest.mark.usefixtures("without_cloudpickle")
def test_without_cloudpickle_classes_of_libraries_are_sent():
    assert pickle.loads(dumps([np.float32, OSError, int])) == [np.float32, OSError, int]
