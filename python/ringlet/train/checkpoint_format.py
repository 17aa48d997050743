"""Checkpoint file format: its version, and the checksum of its metadata.

The file is a safetensors file, readable by any program with that library. Ringlet's metadata entries are strings:
``format``; ``saved``, the time in nanoseconds; ``tree``, JSON of :mod:`ringlet.train.encoding`; ``tensors``, JSON of
each tensor's dtype and CRC32C; ``checksum``, a CRC32C of these entries and of all names, dtypes and shapes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ringlet import _core

FORMAT = "ringlet checkpoint 1"


def checksum_of(texts: Mapping[str, str], shapes: Mapping[str, tuple[str, Sequence[int]]]) -> str:
    """Return the checksum of a file's metadata and of the names, dtypes and shapes of its tensors.

    The entry ``checksum`` of the metadata is ignored; `shapes` maps the name of each tensor to its dtype and shape in
    the file.
    """
    covered = [
        sorted((name, text) for name, text in texts.items() if name != "checksum"),
        sorted((name, code, list(shape)) for name, (code, shape) in shapes.items()),
    ]
    return f"{_core.crc32c(json.dumps(covered).encode('ascii')):08x}"
