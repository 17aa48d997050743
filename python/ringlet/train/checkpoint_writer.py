"""Checkpoint file writer: writes tensors without copying them, and the tree that describes them."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.train.checkpoint_format import FORMAT, checksum_of
from ringlet.train.safetensors_import import safetensors
from ringlet.train.tensor_dtypes import Array, Form, bytes_of, form_of, in_file_order

# The format of operating system errors in the messages of safetensors.
_SYSTEM_ERROR = re.compile(r"\(os error (\d+)\)")
# Names of element types that safetensors expects instead of the names of the file format.
_SPEC_NAMES = {"U8": "uint8"}


@dataclasses.dataclass(frozen=True)
class Tensor:
    """An array to be written, in file layout; `is_steady` is true if the array cannot change during the write."""

    name: str
    array: Array
    form: Form
    is_steady: bool

    @classmethod
    def of(cls, name: str, array: Array, is_steady: bool) -> Tensor:
        """Return the tensor of an array, copied only if its layout differs from the file's."""
        written = in_file_order(array)
        return cls(name, written, form_of(array.dtype), is_steady or not np.may_share_memory(written, array))

    def steady(self) -> Tensor:
        """Return the tensor, with a copy of the array if the array may change."""
        return self if self.is_steady else dataclasses.replace(self, array=self.array.copy(), is_steady=True)

    def crc32c(self) -> int:
        """Return the CRC32C of the array's bytes."""
        return _core.crc32c(bytes_of(self.array))


def write_file(path: str, tree: Any, tensors: Sequence[Tensor], saved_ns: int) -> None:
    """Write a checkpoint to a file, neither durably nor atomically: see :mod:`ringlet.train.atomic_files`.

    `tree` must be serializable as JSON. Raises RuntimeError if an array was modified during the write.
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
        raise _with_remedy(error, path, metadata) from error
    for tensor in tensors:
        if not tensor.is_steady and tensor.crc32c() != sums[tensor.name]:
            raise RuntimeError(
                f"the array '{tensor.name}' was modified while it was being saved, so nothing was saved: wait for the "
                "thread that writes to it, or hold it in a ringlet.Variable, which may be assigned at any time"
            )


def _spec(library: Any, tensor: Tensor) -> Any:
    form, array = tensor.form, tensor.array
    return library.TensorSpec(
        dtype=form.dtype.name if form.is_named else _SPEC_NAMES[form.code],
        shape=form.shape_in_file(array.shape),
        data_ptr=array.ctypes.data or 1,  # an empty array may have no memory
        data_len=array.nbytes,
    )


def _with_remedy(error: Exception, path: str, metadata: Mapping[str, str]) -> Exception:
    found = _SYSTEM_ERROR.search(str(error))
    if "header too large" in str(error):
        return ValueError(
            f"numbers, text and bytes outside of arrays take {len(metadata['tree'])} bytes, and the names of arrays "
            f"{len(metadata['tensors'])}; a file holds about 100 MB of these: save long lists as arrays"
        )
    if found is None:
        return RuntimeError(f"the library safetensors cannot write {path}: {error}")
    number = int(found[1])
    return OSError(number, os.strerror(number), path)
