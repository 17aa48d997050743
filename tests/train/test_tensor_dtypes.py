"""The text of a dtype in a file is that of one dtype, and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.train.tensor_dtypes import bytes_of, form_of, form_of_text, in_file_order

DTYPES = ["?", "i1", "<i8", ">u4", "<f2", ">f8", "<c8", "<c16", "<U7", "S3", "<M8[ms]", "<m8[25s]", "bfloat16", "int4"]


@pytest.mark.parametrize("name", DTYPES)
def test_the_text_of_a_form_makes_it_again(name):
    import ml_dtypes

    form = form_of(np.dtype(getattr(ml_dtypes, name, name)))
    assert form_of_text(form.text) == form
    assert form.shape_in_memory(form.shape_in_file((3, 2))) == (3, 2)


def test_every_dtype_of_ml_dtypes_comes_back():
    import ml_dtypes

    scalars = [each for each in vars(ml_dtypes).values() if isinstance(each, type) and issubclass(each, np.generic)]
    assert scalars
    for dtype in map(np.dtype, scalars):
        assert form_of_text(form_of(dtype).text).dtype == dtype


@pytest.mark.parametrize(
    "text", ["|O8", "O", "object", "f4", "<f3", "V8", "|V8", "i4,i4", "", "<U", "bfloat17", "float32"]
)
def test_other_texts_are_refused(text):
    with pytest.raises((ValueError, TypeError)):
        form_of_text(text)


def test_what_the_file_format_has_no_name_for_is_bytes_along_one_more_dimension():
    form = form_of(np.dtype("<c16"))
    assert (form.code, form.shape_in_file((2,))) == ("U8", (2, 16))
    assert form.shape_in_memory((2, 8)) is None
    assert form.shape_in_memory(()) is None


def test_an_array_that_lies_as_in_files_is_not_copied():
    array = np.arange(6.0).reshape(2, 3)
    assert in_file_order(array) is array
    assert np.shares_memory(in_file_order(array[:1]), array)
    assert in_file_order(array.T).flags.c_contiguous
    assert in_file_order(np.array(5, ">i2")).shape == ()


def test_the_bytes_of_an_array_are_its_memory():
    array = np.zeros((2, 2), "<i2")
    bytes_of(array)[0] = 7
    assert array[0, 0] == 7
    assert len(bytes_of(np.zeros((0, 3)))) == 0
