"""Writes one checkpoint file: arrays from where they lie, and what says which of them is what.

The file is a safetensors file, which any program with that library can read. What is ours is in its metadata, texts all
of them: ``format``; ``saved``, when, in nanoseconds; ``tree``, JSON of :mod:`ringlet.train.encoding`; ``tensors``, JSON
of the dtype and the CRC32C of every tensor; ``checksum``, a CRC32C of all these and of the names, dtypes and shapes.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.train.safetensors_import import safetensors
from ringlet.train.tensor_dtypes import Array, Form, bytes_of, form_of, in_file_order

__all__ = ["FORMAT", "Tensor", "checksum_of", "write_file"]

FORMAT = "ringlet checkpoint 1"

# How the library spells an error of the system.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
# What the library calls an element of which the format has a name, and ours where they differ.
_SPEC_NAMES = {"U8": "uint8"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An array to be written.

    Attributes
    ----------
    name : str
        In the file.
    array : ndarray
        As it lies in files.
    form : Form
        What it is in memory.
    is_steady : bool
        Whether nobody can write to the array meanwhile.

    Examples
    --------
    >>> Tensor.of("w", np.array([1, 2], ">i4"), True)
    Tensor(name='w', array=array([1, 2], dtype=int32), form=Form(dtype=dtype('>i4'), text='>i4', code='I32'),
        is_steady=True)
    """

    name: str
    array: Array
    form: Form
    is_steady: bool

    @classmethod
    def of(cls, name: str, array: Array, is_steady: bool) -> Tensor:
        """Prepare an array; one that does not lie as in files is copied."""
        written = in_file_order(array)
        return cls(name, written, form_of(array.dtype), is_steady or not np.may_share_memory(written, array))

    def crc32c(self) -> int:
        """Give the CRC32C of its bytes."""
        return _core.crc32c(bytes_of(self.array))


def checksum_of(texts: Mapping[str, str], shapes: Mapping[str, tuple[str, Sequence[int]]]) -> str:
    """Give the checksum of everything in a file but the bytes of tensors, of which there are others.

    Parameters
    ----------
    texts : mapping of str to str
        The metadata; its own entry ``checksum`` does not count.
    shapes : mapping of str to (str, sequence of int)
        For each name of a tensor its dtype and shape in the file.

    Examples
    --------
    >>> checksum_of({"format": "1", "checksum": "?"}, {"w": ("F32", [2])})
    '87e47230'
    """
    covered = [
        sorted((name, text) for name, text in texts.items() if name != "checksum"),
        sorted((name, code, list(shape)) for name, (code, shape) in shapes.items()),
    ]
    return f"{_core.crc32c(json.dumps(covered).encode('ascii')):08x}"


def write_file(path: str, tree: Any, tensors: Sequence[Tensor], saved_ns: int) -> None:
    """Write a checkpoint to a file; neither safe from a crash nor at once there: see :mod:`ringlet.train.atomic_files`.

    Parameters
    ----------
    path : str
        Of a file that nobody reads yet.
    tree : object
        What JSON can hold.
    tensors : sequence of Tensor
        Their names differ.
    saved_ns : int
        What time it is, in nanoseconds.

    Raises
    ------
    ValueError
        If what is not in arrays is too much.
    OSError
        If the system refuses.
    RuntimeError
        If somebody wrote to an array meanwhile.
    ModuleNotFoundError
        If the library safetensors is not installed.
    """
    library = safetensors()
    sums = {tensor.name: tensor.crc32c() for tensor in tensors}
    metadata = {
        "format": FORMAT,
        "saved": str(saved_ns),
        "tree": json.dumps(tree),
        "tensors": json.dumps({tensor.name: [tensor.form.text, sums[tensor.name]] for tensor in tensors}),
    }
    shapes = {t.name: (t.form.code, t.form.shape_in_file(t.array.shape)) for t in tensors}
    metadata["checksum"] = checksum_of(metadata, shapes)
    try:
        library.serialize_file({tensor.name: _spec(library, tensor) for tensor in tensors}, path, metadata=metadata)
    except library.SafetensorError as error:
        raise _explained(error, path, metadata) from error
    for tensor in tensors:
        if not tensor.is_steady and tensor.crc32c() != sums[tensor.name]:
            raise RuntimeError(
                f"the array '{tensor.name}' was written to while it was saved, so that nothing was saved: wait for who "
                "writes to it, or hold it in a ringlet.Variable, which may be assigned at any time"
            )


def _spec(library: Any, tensor: Tensor) -> Any:
    form, array = tensor.form, tensor.array
    return library.TensorSpec(
        dtype=form.dtype.name if form.is_named else _SPEC_NAMES[form.code],
        shape=form.shape_in_file(array.shape),
        data_ptr=array.ctypes.data or 1,  # an empty array may have no memory
        data_len=array.nbytes,
    )


def _explained(error: Exception, path: str, metadata: Mapping[str, str]) -> Exception:
    found = _SYSTEM_ERROR.search(str(error))
    if "header too large" in str(error):
        return ValueError(
            f"numbers, text and bytes that are in no array take {len(metadata['tree'])} bytes, and the names of arrays "
            f"{len(metadata['tensors'])}: a file has room for about 100 MB of these. Save long lists as arrays"
        )
    if found is None:
        return RuntimeError(f"the library safetensors cannot write {path}: {error}")
    number = int(found[1])
    return OSError(number, os.strerror(number), path)
