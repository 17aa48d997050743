"""What may become the value of a variable: TensorFlow's rules, with errors that say what to do."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.values.conversion import as_initial_value, as_value, fits, is_floating

F32, F64, I32, I8, BOOL, C64 = (np.dtype(name) for name in ("f4", "f8", "i4", "i1", "?", "c8"))


def value_of(value, dtype, shape=()):
    return as_value(value, dtype, shape, "v:0")


@pytest.mark.parametrize(
    ("value", "dtype"),  # Python number, dtype that takes it
    [(1, F32), (1.5, F32), (1, I32), (True, BOOL), (1, C64), (1.5, C64), (1j, C64)],
)
def test_python_numbers_are_taken_by_dtypes_that_can_hold_them(value, dtype):
    array = np.empty((), dtype)
    array[...] = value_of(value, dtype)
    assert array == value


@pytest.mark.parametrize(
    ("value", "dtype"),  # Python number, dtype that does not take it
    [(1.5, I32), (1.0, I32), (1j, F32), (True, F32), (True, I32), (1, BOOL), (0.0, BOOL)],
)
def test_python_numbers_that_would_lose_something_are_refused(value, dtype):
    with pytest.raises(TypeError, match=rf"Cannot convert .*{dtype}.*astype"):
        value_of(value, dtype)


@pytest.mark.parametrize("value", [np.ones(2), np.ones(2, np.int32), np.array(["a", "b"]), np.array([None, None])])
def test_an_array_of_another_dtype_is_refused_with_a_remedy(value):
    with pytest.raises(ValueError, match=r"variable 'v:0' holds float32.*array of .*astype\('float32'\)"):
        value_of(value, F32, (2,))


def test_a_numpy_scalar_is_an_array():
    with pytest.raises(ValueError, match="array of float64"):
        value_of(np.float64(1), F32)
    assert value_of(np.float32(1), F32).dtype == F32


def test_lists_are_converted_as_python_numbers_are():
    assert value_of([1, 2.5], F32, (2,)).dtype == F32
    assert value_of([], I32, (0,)).dtype == I32
    with pytest.raises(TypeError, match="Cannot convert"):
        value_of([1.5], I32, (1,))


@pytest.mark.parametrize(("given", "wanted"), [(np.ones(3), (2,)), (np.ones(()), (1,)), (1.0, (2,)), ([1.0], ())])
def test_another_shape_is_refused_with_both_shapes_and_a_remedy(given, wanted):
    with pytest.raises(ValueError, match=r"Cannot assign value to variable 'v:0': Shape mismatch.*broadcast_to"):
        value_of(given, F64, wanted)


def test_none_in_a_shape_stands_for_any_size():
    assert value_of(np.ones((5, 2)), F64, (None, 2)).shape == (5, 2)
    assert value_of(np.ones((5, 2)), F64, None).shape == (5, 2)
    assert not fits((5, 3), (None, 2))


def test_a_masked_array_is_refused_because_its_mask_would_be_lost():
    with pytest.raises(InvalidArgumentError, match="mask would be lost"):
        value_of(np.ma.masked_array([1.0], [True]), F64, (1,))


def test_an_array_that_fits_is_taken_as_it_is():
    array = np.ones(3)
    assert value_of(array, F64, (3,)) is array


@pytest.mark.parametrize(("value", "dtype"), [(300, I8), (-1, np.dtype("u1"))])
def test_integers_that_would_wrap_are_refused(value, dtype):
    for given in (value, [value], np.array(value)):
        with pytest.raises(TypeError, match=rf"Cannot convert .* to an array of dtype {dtype}"):
            as_initial_value(given, dtype, "v")
    with pytest.raises(TypeError, match="Cannot convert"):
        value_of([value], dtype, (1,))
    with pytest.raises(OverflowError):
        Variable(0, dtype=dtype).assign(value)


# --- initial values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),  # initial value, dtype asked for, dtype of the variable
    [(1.5, None, F64), (np.float32(1), None, F32), ([1, 2], F32, F32), (np.ones(2), F32, F32), (lambda: 1, None, None)],
)
def test_an_initial_value_takes_numpy_s_dtype_or_the_one_asked_for(value, dtype, expected):
    assert as_initial_value(value, dtype, "v").dtype == (expected or np.dtype(int))


@pytest.mark.parametrize(("value", "dtype"), [(1.5, I32), (np.ones(2), I32), (True, F32), (1j, F32), (1, BOOL)])
def test_an_initial_value_that_would_lose_something_is_refused(value, dtype):
    with pytest.raises(TypeError, match="Cannot convert"):
        as_initial_value(value, dtype, "v")


@pytest.mark.parametrize("value", [None, object(), ["a", None], {"a": 1}])
def test_python_objects_are_no_initial_value(value):
    with pytest.raises(TypeError, match="initial value of variable v is an array of Python objects"):
        as_initial_value(value, None, "v")


def test_the_byte_order_is_native_whatever_the_values_have():
    big_endian = np.array([1.0, 2.0], ">f4")
    v = Variable(big_endian)
    assert v.dtype == F32
    assert v.dtype.isnative
    assert v.assign_add(big_endian).numpy().tolist() == [2, 4]
    assert Variable([1, 2], dtype=">i2").dtype.isnative


def test_floats_of_other_packages_are_floats():
    bfloat16 = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    assert is_floating(bfloat16)
    assert as_initial_value([1.5], bfloat16, "v").dtype == bfloat16
    assert value_of(2, bfloat16) == 2
    with pytest.raises(ValueError, match=r"astype\('bfloat16'\)"):
        value_of(np.ones(()), bfloat16)
