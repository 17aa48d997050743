"""Datasets of what generators yield. Behaviour at the corners as TensorFlow 2.21 has it."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

from ringlet.data import UNKNOWN_CARDINALITY, Dataset, TensorSpec
from ringlet.errors import InvalidArgumentError

Point = namedtuple("Point", "x y")
INT = TensorSpec((), np.int32)
ANY = TensorSpec(None, np.int32)


def yielding(*values):
    def generate():
        yield from values

    return generate


def read(values, signature):
    return list(Dataset.from_generator(yielding(*values), output_signature=signature))


# value, signature, what comes
CONVERTED = [
    (2.7, INT, np.int32(2)),
    (True, INT, np.int32(1)),
    ("3", INT, np.int32(3)),
    (300, TensorSpec((), np.int8), np.int8(44)),
    (float("nan"), INT, np.int32(-(2**31))),
    (1j, TensorSpec((), np.float32), np.float32(0)),
    (2, TensorSpec((), np.bool_), np.bool_(True)),
    ((1, 2), TensorSpec((2,), np.int32), np.array([1, 2], np.int32)),
    ([[1, 2], [3, 4]], ANY, np.array([[1, 2], [3, 4]], np.int32)),
    ("é", TensorSpec((), str), "é"),
    (b"x\0", TensorSpec((), object), b"x\0"),
    ([], TensorSpec((None,), object), np.array([], object)),
    ([[], []], TensorSpec((2, None), str), np.empty((2, 0), str)),
    ({"b": 2, "a": 1}, {"a": INT, "b": INT}, {"a": np.int32(1), "b": np.int32(2)}),
    ((1, (2, 3)), (INT, TensorSpec((2,), np.int32)), (np.int32(1), np.array([2, 3], np.int32))),
    (Point(1, 2), (INT, INT), (np.int32(1), np.int32(2))),
    (Point(1, 2), Point(INT, INT), Point(np.int32(1), np.int32(2))),
]


@pytest.mark.parametrize(("value", "signature", "expected"), CONVERTED)
def test_what_is_yielded_is_converted_to_the_signature(value, signature, expected):
    (element,) = read([value], signature)
    assert repr(element) == repr(expected)
    assert type(element) is type(expected)


# value, signature, what the message says
REFUSED = [
    ("a", INT, "cannot be converted to the expected dtype int32"),
    (None, INT, "cannot be converted to the expected dtype int32"),
    ([[1, 2], [3]], ANY, "cannot be converted"),
    (3, TensorSpec((), str), "neither text nor bytes"),
    ([1, 2, 3], TensorSpec((2,), np.int32), r"shape \(3,\), expected shape \(2,\)"),
    ([1, 2, 3], INT, r"shape \(3,\), expected shape \(\)"),
    ([1, 2], (INT, INT), "expected structure"),
    ((1,), (INT, INT), "expected structure"),
    (1, (INT, INT), "expected structure"),
    ({"a": 1}, {"a": INT, "b": INT}, "expected structure"),
    ({"a": 1, "b": 2, "c": 3}, {"a": INT, "b": INT}, "expected structure"),
    ((1, 2), Point(INT, INT), "expected structure"),
]


@pytest.mark.parametrize(("value", "signature", "words"), REFUSED)
def test_an_element_that_does_not_follow_the_signature_is_named_and_the_next_one_comes(value, signature, words):
    iterator = iter(Dataset.from_generator(yielding(value, value), output_signature=signature))
    for number in range(2):
        with pytest.raises(InvalidArgumentError, match=f"(?s)element {number} of the generator .*{words}"):
            next(iterator)
    assert list(iterator) == []


def test_a_generator_that_changes_its_structure_is_named_with_the_element():
    iterator = iter(Dataset.from_generator(yielding((1, 2), 3), output_signature=(INT, INT)))
    next(iterator)
    with pytest.raises(InvalidArgumentError, match="element 1 of the generator yielding"):
        next(iterator)


@pytest.mark.parametrize("error", [ValueError("v"), KeyError("k"), RuntimeError("r")])
def test_an_exception_of_the_generator_surfaces_and_ends_the_iteration(error):
    def generate():
        yield 1
        raise error

    iterator = iter(Dataset.from_generator(generate, output_signature=INT))
    next(iterator)
    with pytest.raises(type(error)) as caught:
        next(iterator)
    assert "raised this for element 1" in caught.value.__notes__[0]
    assert list(iterator) == []


def test_a_generator_may_fill_one_buffer_for_all_of_its_elements():
    def generate():
        buffer = np.zeros(2)
        for number in range(3):
            buffer[:] = number
            yield buffer

    elements = list(Dataset.from_generator(generate, output_signature=TensorSpec((2,), np.float64)))
    assert [e.tolist() for e in elements] == [[0, 0], [1, 1], [2, 2]]
    assert not elements[0].flags.writeable


def test_types_and_shapes_make_the_signature():
    def spec(types, shapes=None):
        return Dataset.from_generator(yielding(1), types, shapes).element_spec

    assert spec(np.int32) == TensorSpec(None, np.int32)
    assert spec("int32", [2, None]) == TensorSpec((2, None), np.int32)
    assert spec((np.int32, {"a": str})) == (TensorSpec(None, np.int32), {"a": TensorSpec(None, str)})
    assert spec((np.int32, np.float32), ([], [None])) == (INT, TensorSpec((None,), np.float32))
    assert Dataset.from_generator(yielding(1), np.int32).cardinality() == UNKNOWN_CARDINALITY


WRONG = [
    (lambda: Dataset.from_generator([1], output_signature=INT), TypeError, "must be a Python callable"),
    (lambda: Dataset.from_generator(yielding()), TypeError, "Pass output_signature or output_types"),
    (lambda: Dataset.from_generator(yielding(), output_shapes=[]), TypeError, "Pass output_signature or output_types"),
    (lambda: Dataset.from_generator(yielding(), np.int32, output_signature=INT), TypeError, "cannot be combined"),
    (
        lambda: Dataset.from_generator(yielding(), output_shapes=(), output_signature=INT),
        TypeError,
        "cannot be combined",
    ),
    (lambda: Dataset.from_generator(yielding(), output_signature=np.int32), TypeError, "must consist of TensorSpec"),
    (lambda: Dataset.from_generator(yielding(), output_signature=[INT]), TypeError, "must consist of TensorSpec"),
    (lambda: Dataset.from_generator(yielding(), [np.int32]), TypeError, "must consist of dtypes"),
    (lambda: Dataset.from_generator(yielding(), (np.int32, np.int32), ([],)), ValueError, "arity"),
    (lambda: Dataset.from_generator(yielding(), np.int32, args=5), TypeError, "args must be a sequence"),
    (lambda: Dataset.from_generator(yielding(), np.int32, args={"a": 5}), TypeError, "args must be a sequence"),
]


@pytest.mark.parametrize(("call", "error", "words"), WRONG)
def test_wrong_arguments_are_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_arguments_come_as_arrays_scalars_and_text():
    given = []

    def generate(*arguments):
        given.extend(arguments)
        yield 1

    list(Dataset.from_generator(generate, np.int32, args=([1, 2], 5, "s", (3, 4))))
    assert [type(argument) for argument in given] == [np.ndarray, np.int64, str, np.ndarray]


def test_each_iteration_calls_the_generator_anew():
    dataset = Dataset.from_generator(yielding(1, 2), np.int32)
    assert list(dataset) == list(dataset) == [1, 2]
    assert [int(x) for x in dataset.repeat(2)] == [1, 2, 1, 2]


def test_whatever_can_be_iterated_will_do():
    assert list(Dataset.from_generator(lambda: [5, 6], np.int32)) == [5, 6]


def test_functions_behind_it_see_an_element_of_an_iteration_of_its_own():
    dataset = Dataset.from_generator(yielding([1, 2, 3]), output_signature=TensorSpec((None,), np.int32))
    assert dataset.map(lambda x: x[2:].sum()).element_spec == TensorSpec((), np.int64)
    empty = Dataset.from_generator(yielding(), output_signature=TensorSpec((None,), np.int32))
    assert empty.map(lambda x: x.astype(np.int8)).element_spec == TensorSpec((None,), np.int8)


def test_closing_early_closes_the_generator():
    closed = []

    def generate():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    iterator = iter(Dataset.from_generator(generate, np.int32).prefetch(2))
    next(iterator)
    iterator.close()
    assert closed == [True]
