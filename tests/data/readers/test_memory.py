"""What a pipeline over a large file takes of memory: its buffers, however large the file."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringlet import _core

MIB = 2**20
# The size that counts is 1 GiB; half of it shows a file that is read whole as well.
SIZE_MIB = 1024 if os.environ.get("RINGLET_CI_NIGHTLY") else 256
LIMIT_MIB = 64

PROGRAM = """
import resource, sys
from ringlet.data import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

make = {{
    "TFRecordDataset": lambda: TFRecordDataset(sys.argv[1]),
    "TextLineDataset": lambda: TextLineDataset(sys.argv[1]),
    "FixedLengthRecordDataset": lambda: FixedLengthRecordDataset(sys.argv[1], 1000 * 1000),
}}["{kind}"]
list(make().batch(8).prefetch(2).take(1))
before = peak()
count = sum(len(batch) for batch in make().batch(8).prefetch(2))
print(count, peak() - before)
"""


def write(path: Path, block: bytes) -> int:
    """A file of the size above, of one block again and again; how many."""
    count = SIZE_MIB * MIB // len(block)
    with path.open("wb") as file:
        for _ in range(count):
            file.write(block)
    return count


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        # reader, what its file is made of: one element each
        ("TFRecordDataset", _core.frame_record(bytes(1000 * 1000))),
        ("TextLineDataset", b"x" * 1000 * 1000 + b"\n"),
        ("FixedLengthRecordDataset", bytes(1000 * 1000)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_memory_does_not_grow_with_the_file(tmp_path, kind, block):
    count = write(tmp_path / "file", block)
    command = [sys.executable, "-c", PROGRAM.format(kind=kind), str(tmp_path / "file")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    (tmp_path / "file").unlink()
    found, grown_mib = map(int, done.stdout.split())
    assert found == count
    buffers_mib = 4 * 8  # two batches wait, one is made and one is looked at
    assert grown_mib < buffers_mib + LIMIT_MIB
