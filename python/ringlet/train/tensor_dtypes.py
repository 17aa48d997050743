"""File layouts of arrays, by dtype."""

from __future__ import annotations

import dataclasses
import functools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.values.value_conversion import as_dtype

Array = NDArray[Any]

# The file format's names of dtypes, all little-endian.
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
    """The file layout of arrays of one dtype, in either byte order.

    `text` names the dtype in the metadata. `code` is the file format's name for the element type; arrays of dtypes
    without a name are stored as bytes, with one more dimension.
    """

    dtype: np.dtype[Any]
    text: str
    code: str

    @functools.cached_property
    def is_named(self) -> bool:
        """Whether the file format has a name for the dtype."""
        return self.dtype.name in _CODES

    def shape_in_file(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in the file of an array with this shape in memory."""
        return shape if self.is_named else (*shape, self.dtype.itemsize)

    def shape_in_memory(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Return the shape in memory of an array with this shape in the file; None if the shape is invalid."""
        if self.is_named:
            return shape
        return shape[:-1] if shape and shape[-1] == self.dtype.itemsize else None


@functools.lru_cache(maxsize=256)  # programs have few dtypes and many arrays
def form_of(dtype: np.dtype[Any]) -> Form:
    """Return the file layout of arrays of a dtype; raise a TypeError for objects, fields and untyped bytes."""
    if dtype.hasobject or dtype.names is not None or (dtype.kind == "V" and dtype.type is np.void):
        what = "Python objects" if dtype.hasobject else "fields" if dtype.names is not None else "bytes without a type"
        raise TypeError(
            f"an array of {dtype} cannot be saved, because it consists of {what}: save arrays of numbers, bools, text, "
            "bytes or times, each under its own name"
        )
    text = dtype.name if dtype.type.__module__ == "ml_dtypes" else dtype.str
    return Form(dtype, text, _CODES.get(dtype.name, "U8"))


@functools.lru_cache(maxsize=256)
def form_of_text(text: str) -> Form:
    """Parse the text of a :class:`Form`; raise ValueError or TypeError if this machine does not support the dtype."""
    if _ML_TEXT.fullmatch(text):
        form = form_of(as_dtype(text))
    elif _NUMPY_TEXT.fullmatch(text):
        form = form_of(np.dtype(text))
    else:
        raise ValueError(f"{text!r} is not a dtype")
    if form.text != text:
        raise ValueError(f"{text!r} is a dtype that this machine does not support")
    return form


def in_file_order(array: Array) -> Array:
    """Return an array in file layout: contiguous and little-endian; copied only if necessary."""
    plain = array if type(array) is np.ndarray else array.view(np.ndarray)
    if plain.dtype.str.startswith(">"):
        return plain.astype(plain.dtype.newbyteorder("<"), order="C")
    return plain if plain.flags.c_contiguous else plain.copy(order="C")


def bytes_of(array: Array) -> memoryview:
    """Return the memory of a contiguous array."""
    flat = array.reshape(-1)
    if not flat.nbytes:
        return memoryview(b"")
    return flat.view(np.uint8).data
