"""How arrays of every dtype are written to a file, and what they are when they come back."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.values.value_conversion import as_dtype

__all__ = ["Form", "bytes_of", "form_of", "form_of_text", "in_file_order"]

Array = NDArray[Any]

# What the file format calls the dtypes that it knows, all of them with the lowest byte first.
_CODES = {
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "float16": "F16", "float32": "F32", "float64": "F64", "complex64": "C64",
    "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0",
}  # fmt: skip
_NUMPY_TEXT = re.compile(r"[<>|][biufcSUmM]\d{1,9}(\[\d*\w{1,2}\])?")
_ML_TEXT = re.compile(r"(b?float|u?int|b?complex)\d+(_[a-z0-9]+)?")


@dataclasses.dataclass(frozen=True)
class Form:
    """How arrays of one dtype lie in a file.

    Attributes
    ----------
    dtype : dtype
        In memory, in whatever order of bytes.
    text : str
        From which :func:`form_of_text` makes this again.
    code : str
        What the file format calls the elements. Those that it has no name for are bytes, along one more dimension.

    Examples
    --------
    >>> form_of(np.dtype("float32")), form_of(np.dtype("<U2")).shape_in_file((3,))
    (Form(dtype=dtype('float32'), text='<f4', code='F32'), (3, 8))
    """

    dtype: np.dtype[Any]
    text: str
    code: str

    @functools.cached_property
    def is_named(self) -> bool:
        """Whether the file format has a name for the dtype."""
        return self.dtype.name in _CODES

    def shape_in_file(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Give what the shape of an array becomes."""
        return shape if self.is_named else (*shape, self.dtype.itemsize)

    def shape_in_memory(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Give the shape of the array that has this shape in the file; None if there is none."""
        if self.is_named:
            return shape
        return shape[:-1] if shape and shape[-1] == self.dtype.itemsize else None


@functools.lru_cache(maxsize=256)  # programs have few dtypes and many arrays
def form_of(dtype: np.dtype[Any]) -> Form:
    """Give how arrays of a dtype lie in a file.

    Raises
    ------
    TypeError
        If the dtype holds Python objects or fields.

    Examples
    --------
    >>> form_of(np.dtype(">i2")).text
    '>i2'
    """
    if dtype.hasobject or dtype.names is not None or (dtype.kind == "V" and dtype.type is np.void):
        what = "Python objects" if dtype.hasobject else "fields"
        raise TypeError(
            f"an array of {dtype} cannot be saved, because it consists of {what}: save arrays of numbers, bools, text, "
            "bytes or times of day, each under a name of its own"
        )
    text = dtype.name if dtype.type.__module__ == "ml_dtypes" else dtype.str
    return Form(dtype, text, _CODES.get(dtype.name, "U8"))


@functools.lru_cache(maxsize=256)
def form_of_text(text: str) -> Form:
    """Read the text of a :class:`Form`.

    Raises
    ------
    ValueError
        If it is none.
    TypeError
        If it is one of ml_dtypes, which is not installed.

    Examples
    --------
    >>> form_of_text("<i4").dtype
    dtype('int32')
    """
    if _ML_TEXT.fullmatch(text):
        form = form_of(as_dtype(text))
    elif _NUMPY_TEXT.fullmatch(text):
        form = form_of(np.dtype(text))
    else:
        raise ValueError(f"{text!r} is no dtype")
    if form.text != text:
        raise ValueError(f"{text!r} is no dtype of this machine")
    return form


def in_file_order(array: Array) -> Array:
    """Give an array as it lies in files: contiguous, the lowest byte first; without a copy if it lies so already.

    Examples
    --------
    >>> in_file_order(np.arange(4, dtype=">i2").reshape(2, 2).T).dtype.str
    '<i2'
    """
    plain = array if type(array) is np.ndarray else array.view(np.ndarray)
    if plain.dtype.str.startswith(">"):
        return plain.astype(plain.dtype.newbyteorder("<"), order="C")
    return plain if plain.flags.c_contiguous else plain.copy(order="C")


def bytes_of(array: Array) -> memoryview:
    """Give the memory of a contiguous array.

    Examples
    --------
    >>> list(bytes_of(np.array(258, dtype="<i2")))
    [2, 1]
    """
    flat = array.reshape(-1)
    if not flat.nbytes:
        return memoryview(b"")
    return flat.view(np.uint8).data
