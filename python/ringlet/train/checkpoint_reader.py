"""Checkpoint file reader: verifies the metadata, and each tensor that is read, against the file's checksums."""

from __future__ import annotations

import dataclasses
import io
import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from ringlet import _core
from ringlet.errors import CheckpointCorruptError, InvalidArgumentError, NotFoundError
from ringlet.train.atomic_files import open_to_read
from ringlet.train.checkpoint_format import FORMAT, checksum_of
from ringlet.train.safetensors_import import safetensors
from ringlet.train.tensor_dtypes import Array, Form, bytes_of, form_of_text

# Size of the chunks in which a file is read: each is checksummed while it is in the CPU cache.
_PIECE_BYTES = 1 << 20
_HEADER_AT = 8


@dataclasses.dataclass(frozen=True)
class Entry:
    """One tensor of a file: its shape in memory, and the offset, size and checksum of its bytes in the file."""

    name: str
    form: Form
    shape: tuple[int, ...]
    offset: int
    size_bytes: int
    crc32c: int


class CheckpointFile:
    """A checkpoint file that is open for reading. Created by :func:`open_file`."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._raw = io.FileIO(descriptor, closefd=False)
        self._size_bytes = os.fstat(descriptor).st_size
        texts, tensors = self._header()
        self.saved_ns, self.tree, self.entries = self._understood(texts, tensors)

    # --- header -------------------------------------------------------------------------------------------------------

    def _header(self) -> tuple[dict[str, str], list[tuple[str, str, list[int]]]]:
        """Return the metadata, and (name, dtype, shape) of each tensor in file order, as safetensors parses them."""
        library = safetensors()
        first = os.pread(self._descriptor, _HEADER_AT, 0)
        self._data_at = _HEADER_AT + int.from_bytes(first, "little")
        if len(first) < _HEADER_AT or self._data_at > self._size_bytes:
            self._refuse(self._size_bytes, "the file ends inside the header")
        try:
            with library.safe_open(self.path, framework="numpy") as opened:
                if os.stat(self.path).st_ino != os.fstat(self._descriptor).st_ino:
                    raise _ReplacedMeanwhile
                slices = [(name, opened.get_slice(name)) for name in opened.offset_keys()]
                tensors = [(name, found.get_dtype(), found.get_shape()) for name, found in slices]
                return opened.metadata() or {}, tensors
        except library.SafetensorError as error:
            # safetensors does not report a position; a truncated file is damaged at its end.
            is_cut = "not fully covered" in str(error) or "IncompleteBuffer" in str(error)
            self._refuse(self._size_bytes if is_cut else _HEADER_AT, f"the library safetensors reports: {error}")

    def _understood(
        self, texts: dict[str, str], tensors: list[tuple[str, str, list[int]]]
    ) -> tuple[int, Any, dict[str, Entry]]:
        version = texts.get("format", "")
        if "checksum" not in texts or not version.startswith("ringlet checkpoint "):
            raise CheckpointCorruptError(
                f"the file {self.path} is not a checkpoint of ringlet, or its header was changed: if another program "
                "wrote it, read its arrays with safetensors.numpy.load_file and assign them to the variables",
                self.path,
                _HEADER_AT,
            )
        other = f"its format is {version!r}, and this version of ringlet reads {FORMAT!r}"
        shapes = {name: (code, shape) for name, code, shape in tensors}
        if checksum_of(texts, shapes) != texts["checksum"]:
            changed = "the header does not match its checksum"
            self._refuse(_HEADER_AT, changed if version == FORMAT else f"{changed}, or {other}")
        if version != FORMAT:
            raise InvalidArgumentError(
                f"the checkpoint {self.path} cannot be read: {other}. Install the version that wrote it"
            )
        try:
            described = json.loads(texts["tensors"])
            entries, offset = {}, self._data_at
            for name, code, shape in tensors:
                text, crc32c = described[name]
                entry = _entry(name, _form(name, text, code), tuple(shape), offset, crc32c)
                entries[name] = entry
                offset += entry.size_bytes
            return int(texts["saved"]), json.loads(texts["tree"]), entries
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            self._refuse(_HEADER_AT, f"the header is invalid: {error!r}")

    def _refuse(self, offset: int, reason: str) -> NoReturn:
        raise CheckpointCorruptError(
            f"the checkpoint {self.path} is damaged at byte {offset} of {self._size_bytes}: {reason}", self.path, offset
        )

    # --- tensors ------------------------------------------------------------------------------------------------------

    def read_into(self, entry: Entry, array: Array) -> None:
        """Read a tensor into a contiguous little-endian array of its shape and dtype, and verify its checksum.

        After a CheckpointCorruptError the contents of the array are undefined.
        """
        memory = bytes_of(array)
        if len(memory) != entry.size_bytes:
            self._refuse(
                _HEADER_AT, f"'{entry.name}' has {entry.size_bytes} bytes, but its shape requires {len(memory)}"
            )
        crc = 0
        for begin in range(0, entry.size_bytes, _PIECE_BYTES):
            piece = memory[begin : begin + _PIECE_BYTES]
            self._read_piece(piece, entry.offset + begin)
            crc = _core.crc32c(piece, crc)
        if crc != entry.crc32c:
            self._refuse(
                entry.offset,
                f"the {entry.size_bytes} bytes of '{entry.name}' there do not match their checksum (CRC32C {crc:08x}, "
                f"expected {entry.crc32c:08x})",
            )

    def _read_piece(self, piece: memoryview, offset: int) -> None:
        done = 0
        self._raw.seek(offset)
        while done < len(piece):
            count = self._raw.readinto(piece[done:])
            if not count:
                self._refuse(offset + done, "the file ends there")
            done += count

    def read(self, entry: Entry) -> Array:
        """Read a tensor into a new array, in the byte order of the saved array."""
        array = np.empty(entry.shape, entry.form.dtype.newbyteorder("<"))
        self.read_into(entry, array)
        return array.astype(entry.form.dtype, copy=False)

    def verify(self) -> None:
        """Read the whole file without keeping it in memory; raise CheckpointCorruptError if a checksum fails."""
        for entry in self.entries.values():
            self.read(entry)


class _ReplacedMeanwhile(Exception): ...


def _form(name: str, text: str, code: str) -> Form:
    form = form_of_text(text)
    if form.code != code:
        raise ValueError(f"'{name}' has dtype {text} in the metadata, but is stored as {code}")
    return form


def _entry(name: str, form: Form, shape: tuple[int, ...], offset: int, crc32c: int) -> Entry:
    in_memory = form.shape_in_memory(shape)
    if in_memory is None or not isinstance(crc32c, int):
        raise ValueError(f"'{name}' of dtype {form.text} has an invalid shape {shape} or checksum {crc32c!r}")
    return Entry(name, form, in_memory, offset, math.prod(in_memory) * form.dtype.itemsize, crc32c)


@contextmanager
def open_file(path: str) -> Iterator[CheckpointFile]:
    """Open a checkpoint file.

    Raises
    ------
    NotFoundError
        If the file does not exist.
    CheckpointCorruptError
        If it is not a regular file, not a checkpoint of ringlet, or its header is damaged.
    InvalidArgumentError
        If another version of ringlet wrote it in a different format.
    """
    while True:
        descriptor = _opened(path)
        try:
            file = CheckpointFile(path, descriptor)
        except _ReplacedMeanwhile:
            os.close(descriptor)
            continue
        except BaseException:
            os.close(descriptor)
            raise
        break
    try:
        yield file
    finally:
        os.close(descriptor)


def _opened(path: str) -> int:
    try:
        descriptor = open_to_read(path)
    except FileNotFoundError:
        raise NotFoundError(
            f"there is no checkpoint at {path.removesuffix('.safetensors')}: no file {path}. Please double-check that "
            "the path is correct; you may be missing the number at its end (e.g. the '-1' in 'path/to/ckpt-1'). "
            "ringlet.train.latest_checkpoint(folder) returns the newest checkpoint of a folder"
        ) from None
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    return descriptor
