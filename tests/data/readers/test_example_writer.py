from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import decode_example, serialize_example
from ringlet.errors import InvalidArgumentError

values = (
    st.lists(st.binary(max_size=200), min_size=1)
    | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1).map(lambda x: np.array(x, np.int64))
    | st.lists(st.floats(width=32), min_size=1).map(lambda x: np.array(x, np.float32))
)


@given(features=st.dictionaries(st.text(max_size=200), values, max_size=5))
def test_what_is_written_is_read(features):
    found = decode_example(serialize_example(features))
    assert list(found) == list(features)
    for name, value in features.items():
        np.testing.assert_array_equal(found[name], value)
        assert type(found[name]) is type(value)


# Written by the protocol buffers of tensorflow-cpu 2.21.0.
@pytest.mark.parametrize(
    ("value", "message"),
    [
        # value of feature x, hexadecimal text
        ([1, -1, 300], "0a180a160a017812111a0f0a0d01ffffffffffffffffff01ac02"),
        (1.5, "0a0f0a0d0a0178120812060a040000c03f"),
        ([b"a", b""], "0a0e0a0c0a017812070a050a01610a00"),
    ],
)
def test_the_bytes_are_those_that_tensorflow_writes(value, message):
    assert serialize_example({"x": value}).hex() == message


@pytest.mark.parametrize(
    ("value", "found"),
    [
        # given, read
        (True, [1]),
        (np.uint8([[1, 2]]), [1, 2]),
        (np.float64(0.5), [0.5]),
        ("é", ["é".encode()]),
        (["a", b"b"], [b"a", b"b"]),
        (np.array(["a"]), [b"a"]),
        (np.array([b"a\0", "b"], object), [b"a\0", b"b"]),
        ((1, 2), [1, 2]),
        (None, []),
        ([], []),
    ],
)
def test_values_become_the_kind_of_list_that_fits(value, found):
    assert list(decode_example(serialize_example({"x": value}))["x"]) == found


def test_an_array_without_values_keeps_its_kind():
    assert decode_example(serialize_example({"x": np.array([], np.float32)}))["x"].dtype == np.float32


def test_what_no_example_holds_is_refused():
    with pytest.raises(TypeError, match=r"features\['x'\] is \(1\+2j\)"):
        serialize_example({"x": 1 + 2j})
    for mixed in (["a", 1], [1, "a"], [["a"], [1]]):  # NumPy would convert the last two to text
        with pytest.raises(TypeError, match=r"features\['x'\] must not mix text with other values, got 1"):
            serialize_example({"x": mixed})
    with pytest.raises(InvalidArgumentError, match=f"holds {2**63}, but the maximum of int64 is"):
        serialize_example({"x": np.array([2**63], np.uint64)})
