"""Objects as bytes, over a pipe."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.ipc.call_codec import ParcelReader, Unsendable, dumps, pack_call, pack_result, send, unpack


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
    function, args, kwargs = unpack(pack_call(double, (3,), {}))
    assert function(*args, **kwargs) == 6


def test_lambdas_and_inner_functions_are_sent_by_cloudpickle():
    pytest.importorskip("cloudpickle")
    factor = 3
    function, args, _ = unpack(pack_call(lambda x: factor * x, (2,), {}))
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


@pytest.fixture
def without_cloudpickle(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)


@pytest.mark.usefixtures("without_cloudpickle")
def test_without_cloudpickle_functions_of_modules_are_sent():
    assert unpack(pack_call(double, (3,), {}))[0] is double


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
    assert unpack(dumps([np.float32, OSError, int])) == [np.float32, OSError, int]
