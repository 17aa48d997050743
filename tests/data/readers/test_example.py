from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.data import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    TFRecordDataset,
    VarLenFeature,
    decode_example,
    parse_example,
    parse_single_example,
    serialize_example,
)
from ringlet.errors import InvalidArgumentError
from tests.data.readers.files import put_records

BATCH = [serialize_example({"x": [1.0, 2.0], "l": i, "t": ["a"] * i, "s": [1, 2] * i}) for i in range(3)]
EMPTY = serialize_example({})
VECTOR = FixedLenFeature([2], np.float32)
LABEL = FixedLenFeature([], np.int64)
PAIRS = FixedLenSequenceFeature([2], np.int64, allow_missing=True, default_value=-1)


def test_a_batch_has_one_row_for_each_example():
    found = parse_example(BATCH, {"x": FixedLenFeature([1, 2], np.float32), "l": LABEL})
    assert found["x"].tolist() == [[[1.0, 2.0]]] * 3
    assert found["l"].tolist() == [0, 1, 2]
    assert not found["x"].flags.writeable


def test_lists_of_any_length_come_with_their_lengths():
    values, lengths = parse_example([*BATCH, EMPTY], {"t": VarLenFeature(bytes)})["t"]
    assert values.tolist() == [[b"", b""], [b"a", b""], [b"a", b"a"], [b"", b""]]
    assert lengths.tolist() == [0, 1, 2, 0]


def test_sequences_are_padded_to_the_longest():
    found = parse_example([*BATCH, EMPTY], {"s": PAIRS})["s"]
    assert found.tolist() == [[[-1, -1]] * 2, [[1, 2], [-1, -1]], [[1, 2]] * 2, [[-1, -1]] * 2]


def test_a_single_example_has_no_padding():
    found = parse_single_example(BATCH[2], {"x": VECTOR, "l": LABEL, "t": VarLenFeature(bytes), "s": PAIRS})
    assert found["x"].tolist() == [1.0, 2.0]
    assert found["l"] == 2
    assert found["t"].tolist() == [b"a", b"a"]
    assert found["s"].tolist() == [[1, 2], [1, 2]]
    assert parse_example(BATCH[1], {"l": LABEL}) == {"l": 1}


def test_a_missing_feature_has_its_default_value():
    features = {"x": FixedLenFeature([2], np.float32, [7, 8]), "l": FixedLenFeature([], np.int64, -1)}
    found = parse_example([EMPTY, BATCH[1]], features)
    assert found["x"].tolist() == [[7.0, 8.0], [1.0, 2.0]]
    assert found["l"].tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("examples", "features", "words"),
    [
        # messages, features, words of the error
        (
            [*BATCH, EMPTY],
            {"x": VECTOR},
            r"Feature: x \(data type: float\) is required but could not be found in example 3",
        ),
        (
            BATCH,
            {"x": FixedLenFeature([2], np.int64)},
            "Data types don't match. Data type: float but expected type: int64",
        ),
        (BATCH, {"x": VarLenFeature(bytes)}, "Key: x, Index: 0.  Data types don't match"),
        (
            BATCH,
            {"x": FixedLenFeature([3], np.float32)},
            r"values != expected.  Values size: 2 but output shape: \[3\]",
        ),
        (BATCH, {"t": FixedLenFeature([1], bytes, [b""])}, "Index: 2.  Number of string values != expected"),
        (BATCH, {"s": FixedLenSequenceFeature([], np.int64)}, "requires allow_missing to be True"),
        (
            BATCH,
            {"s": FixedLenSequenceFeature([3], np.int64, True)},
            "Index: 1.  Number of values 2 is not a multiple of 3",
        ),
        ([EMPTY, b"\xff"], {"x": VECTOR}, "Could not parse example input: example 1, at byte 0: a number is truncated"),
    ],
)
def test_what_does_not_fit_is_named_with_feature_and_example(examples, features, words):
    with pytest.raises(InvalidArgumentError, match=words):
        parse_example(examples, features)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        # hexadecimal text, words of the error
        ("0a", "a number is truncated"),
        ("0a05", "a field has 5 bytes, but only 0 are left"),
        ("0affffffffffffffffffff01", "a number has more than 10 bytes"),
        ("0affffffffffffffffff01", "but only 0 are left"),
        ("18", "a number is truncated"),
        ("0801", "the features of an example have another wire type"),
        ("0b", "wire type 3 is not supported"),
        ("02", "the field number is invalid"),
        ("0a020801", "an entry of the features has another wire type"),
        ("0a040a021001", "a name or a feature has another wire type"),
        ("0a0a0a0812061a040a02ff", "are left"),
        ("0a0a0a0812061a040a02ffff", "a number is truncated"),
        ("0a0a0a08120612040a020102", "are not a multiple of 4"),
        ("0a080a06120412020801", "a value of a list of floats has another wire type"),
        ("0a080a0612040a020801", "a value of a list of bytes has another wire type"),
    ],
)
def test_damaged_messages_are_refused_with_the_byte(message, words):
    with pytest.raises(InvalidArgumentError, match=f"Could not parse example input: .*at byte [0-9]+: .*{words}"):
        decode_example(bytes.fromhex(message))


def test_values_may_be_packed_or_not_and_lists_in_parts():
    unpacked = bytes.fromhex("0a0d0a0b0a016112061a0408010802")
    assert decode_example(unpacked)["a"].tolist() == [1, 2]
    parts = bytes.fromhex("0a110a0f0a0161120a1a030a01011a030a0102")
    assert decode_example(parts)["a"].tolist() == [1, 2]
    other_kind = bytes.fromhex("0a110a0f0a0161120a1a030a01010a030a0162")
    assert decode_example(other_kind)["a"] == [b"b"]


def test_of_two_features_of_one_name_the_last_counts():
    assert decode_example(serialize_example({"a": 1}) + serialize_example({"a": 2}))["a"].tolist() == [2]
    assert parse_single_example(serialize_example({"a": 1}) + serialize_example({"a": 2}), {"a": LABEL}) == {"a": 2}


@given(
    changes=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 255)), max_size=4),
    keep=st.integers(0, 100),
    number=st.integers(0, 2),
)
def test_whatever_a_message_holds_it_is_parsed_or_refused(changes, keep, number):
    message = bytearray(BATCH[number])
    for at, value in changes:
        message[at % len(message)] = value
    features = {"x": FixedLenFeature([2], np.float32, [0, 0]), "s": PAIRS, "t": VarLenFeature(bytes)}
    for read in (decode_example, lambda data: parse_single_example(data, features)):
        with contextlib.suppress(InvalidArgumentError):
            assert isinstance(read(bytes(message[:keep])), dict)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data):
    with contextlib.suppress(InvalidArgumentError):
        assert isinstance(decode_example(data), dict)


def test_what_is_no_message_or_no_feature_is_refused():
    with pytest.raises(TypeError, match="serialized examples must be bytes"):
        parse_example(["text"], {"x": VECTOR})
    with pytest.raises(TypeError, match=r"features\['x'\] must be a FixedLenFeature"):
        parse_example(BATCH, {"x": np.float32})
    with pytest.raises(InvalidArgumentError, match=r"the name .* is not UTF-8"):
        decode_example(bytes.fromhex("0a050a030a01ff"))


def test_records_are_parsed_in_a_map_whose_elements_are_known(tmp_path):
    name = put_records(tmp_path / "file", BATCH)
    dataset = TFRecordDataset(name).batch(2).map(lambda batch: parse_example(batch, {"x": VECTOR, "l": LABEL}))
    assert {key: spec.shape for key, spec in dataset.element_spec.items()} == {"x": (None, 2), "l": (None,)}
    assert [batch["l"].tolist() for batch in dataset] == [[0, 1], [2]]
    single = TFRecordDataset(name).map(lambda record: parse_single_example(record, {"l": LABEL}))
    assert [int(element["l"]) for element in single] == [0, 1, 2]
