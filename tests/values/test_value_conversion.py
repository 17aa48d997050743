"""What may become the value of a variable: TensorFlow's rules, with errors that say what to do."""

from __future__ import annotations

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from ringlet import Variable
from ringlet.errors import InvalidArgumentError
from ringlet.values import value_conversion
from ringlet.values.value_conversion import as_dtype, as_initial_value, as_value, fits, is_floating

F32, F64, I32, I8, BOOL, C64 = (np.dtype(name) for name in ("f4", "f8", "i4", "i1", "?", "c8"))


def value_of(value, dtype, shape=()):
    return as_value(value, dtype, shape, "v:0")


@pytest.mark.parametrize(
    ("value", "dtype"),  # Python number, dtype that takes it
    [(1, F32), (1.5, F32), (1, I32), (True, BOOL), (True, I32), (True, F32), (1, C64), (1.5, C64), (1j, C64)],
)
def test_python_numbers_are_taken_by_dtypes_that_can_hold_them(value, dtype):
    array = np.empty((), dtype)
    array[...] = value_of(value, dtype)
    assert array == value


@pytest.mark.parametrize(
    ("value", "dtype"),  # Python number, dtype that does not take it
    [(1.5, I32), (1.0, I32), (1j, F32), (True, C64), (1, BOOL), (0.0, BOOL)],
)
def test_python_numbers_that_would_lose_something_are_refused(value, dtype):
    with pytest.raises(TypeError, match=rf"Cannot convert .*{dtype}.*astype"):
        value_of(value, dtype)


@pytest.mark.parametrize("value", [np.ones(2), np.ones(2, np.int32), np.array(["a", "b"]), np.array([None, None])])
def test_an_array_of_another_dtype_is_refused_with_a_remedy(value):
    with pytest.raises(ValueError, match=r"variable 'v:0' holds float32.*array of .*astype\('float32'\)"):
        value_of(value, F32, (2,))


def test_the_remedy_for_text_is_a_dtype_that_numpy_reads():
    with pytest.raises(ValueError, match=r"holds <U1, but the value is an array of <U3: .*astype\('<U1'\)"):
        value_of(np.array(["bcd"]), np.dtype("U1"), (1,))


def test_a_numpy_scalar_is_a_number():
    assert value_of(np.float64(1.5), F32) == 1.5
    assert value_of(np.int64(2), F32) == 2
    assert value_of(np.float32(1), F32).dtype == F32
    with pytest.raises(TypeError, match=r"Cannot convert 1\.5"):
        value_of(np.float64(1.5), I32)
    v = Variable(np.float32(1))
    v.assign_add(np.float64(2))
    assert (v.dtype, v.numpy()) == (F32, 3)


def test_lists_are_converted_as_python_numbers_are():
    assert value_of([1, 2.5], F32, (2,)).dtype == F32
    assert value_of([], I32, (0,)).dtype == I32
    with pytest.raises(TypeError, match="Cannot convert"):
        value_of([1.5], I32, (1,))


def test_a_range_is_converted_as_the_list_of_its_numbers():
    assert value_of(range(4), F32, (4,)).tolist() == [0, 1, 2, 3]
    assert Variable(np.zeros(4)).assign(range(4)).numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (None, ValueError, "None values not supported: variable 'v:0' holds float32"),
        ("text", TypeError, "Cannot convert 'text' to an array of dtype float32: pass numbers"),
        (b"text", TypeError, "Cannot convert b'text'"),
        (["a"], TypeError, r"Cannot convert \['a'\] .*: pass numbers"),
        ([None], TypeError, r"Cannot convert \[None\] .*: pass numbers"),
        ((i for i in range(2)), ValueError, r"unsupported type \(<class 'generator'>\).*list of its elements"),
        ({1.0: 2.0}, ValueError, r"unsupported type \(<class 'dict'>\)"),
        (object(), ValueError, "unsupported type"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_array_of_numbers_is_refused_without_a_conversion_that_it_has_not(value, error, message):
    with pytest.raises(error, match=message) as caught:
        value_of(value, F32)
    assert "astype" not in str(caught.value)


def test_an_array_of_another_library_is_told_to_become_one_of_numpy_first():
    with pytest.raises(ValueError, match=r"Write np.asarray\(value\).astype\('float32'\)"):
        value_of(memoryview(np.ones(2)), F32, (2,))


def test_text_that_fits_is_taken_and_is_never_cut_off():
    v = Variable("abc")
    assert v.assign("de").numpy() == "de"
    for call in (lambda: v.assign("abcd"), lambda: Variable("abcd", dtype="U3")):
        with pytest.raises(TypeError, match="Cannot convert 'abcd' to an array of dtype <U3"):
            call()


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
    variable, limits = Variable(0, dtype=dtype), np.iinfo(dtype)
    told = f"to an array of dtype {dtype}: it holds {limits.min} to {limits.max}"
    for change, given in itertools.product((variable.assign, variable.assign_add), (value, 2**64)):
        with pytest.raises(TypeError, match=f"Cannot convert {given} {told}"):
            change(given)
    for limit in (limits.min, limits.max):
        variable.assign(int(limit))
        assert variable.numpy() == limit


# --- dtypes ----------------------------------------------------------------------------------------------------------


def test_dtypes_of_ml_dtypes_are_known_by_name():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    assert Variable([1.5], dtype="bfloat16").dtype == ml_dtypes.bfloat16
    assert as_dtype("float8_e5m2") == ml_dtypes.float8_e5m2


def test_without_ml_dtypes_its_names_are_refused_with_what_to_install(monkeypatch):
    # None in the table of modules is what "not installed" looks like; the name may be known to NumPy by now.
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.setattr(value_conversion, "np", SimpleNamespace(dtype=lambda name: [][name]))
    with pytest.raises(TypeError, match=r"'bfloat16' is defined by the package ml_dtypes.*pip install ml_dtypes"):
        as_dtype("bfloat16")


@pytest.mark.parametrize("name", ["bfloat61", "finfo", "__name__", [], 5])
def test_what_is_no_dtype_is_refused_as_numpy_does(name):
    with pytest.raises(TypeError, match=r"(?i)data ?type|dtype"):
        Variable(1.5, dtype=name)


# --- initial values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),  # initial value, dtype asked for, dtype of the variable
    [(1.5, None, F64), (np.float32(1), None, F32), ([1, 2], F32, F32), (np.ones(2), F32, F32), (lambda: 1, None, None)],
)
def test_an_initial_value_takes_numpy_s_dtype_or_the_one_asked_for(value, dtype, expected):
    assert as_initial_value(value, dtype, "v").dtype == (expected or np.dtype(int))


@pytest.mark.parametrize(("value", "dtype"), [(1.5, I32), (np.ones(2), I32), (True, C64), (1j, F32), (1, BOOL)])
def test_an_initial_value_that_would_lose_something_is_refused(value, dtype):
    with pytest.raises(TypeError, match="Cannot convert"):
        as_initial_value(value, dtype, "v")


@pytest.mark.parametrize("value", [None, object(), ["a", None], {"a": 1}])
def test_python_objects_are_no_initial_value(value):
    with pytest.raises(TypeError, match="initial value of variable 'v' is an array of Python objects"):
        as_initial_value(value, None, "v")
    with pytest.raises(TypeError, match="initial value of variable 'Variable' is"):
        as_initial_value(value, None, None)


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
