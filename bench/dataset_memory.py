"""Memory of a pipeline over a file that is larger than its buffers, in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.dataset_questions import write_records

__all__ = ["MemoryUse", "memory_over"]

_RECORD_BYTES = 4096
_SHUFFLED, _BATCH, _READY = 1000, 64, 2
_LIMIT_SECONDS = 600.0

# Memory before anything is read holds the interpreter and what it imported. The peak is set back to it.
_PROGRAM = """
import json, sys
from ringlet.data import TFRecordDataset

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))

path, shuffled, batch, ready = sys.argv[1], *map(int, sys.argv[2:])
def pipeline(shuffled):
    return TFRecordDataset(path).shuffle(shuffled, seed=0).batch(batch).prefetch(ready)

with iter(pipeline(2)) as iterator:
    next(iterator)
before = status("VmRSS")
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
records = sum(len(records) for records in pipeline(shuffled))
print(json.dumps({"records": records, "grown": max(0, status("VmHWM") - before)}))
"""


@dataclass(frozen=True)
class MemoryUse:
    """Memory use of a pipeline over a file.

    Attributes
    ----------
    file_bytes : int
    buffer_bytes : int
        Total buffer size of the operations of the pipeline.
    grown_bytes : int
        Peak resident memory minus the resident memory before.
    """

    file_bytes: int
    buffer_bytes: int
    grown_bytes: int


def memory_over(folder: Path, file_bytes: int) -> MemoryUse:
    """Read a file of records through a shuffle, batches and a prefetch, and return the memory use.

    Raises
    ------
    RuntimeError
        If records were lost.
    """
    path, records = folder / "large.tfrecord", max(1, file_bytes // _RECORD_BYTES)
    write_records(path, records, _RECORD_BYTES)
    try:
        command = [sys.executable, "-c", _PROGRAM, str(path), *map(str, (_SHUFFLED, _BATCH, _READY))]
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_LIMIT_SECONDS)
    finally:
        path.unlink()
    said = json.loads(finished.stdout)
    if said["records"] != records:
        raise RuntimeError(f"{said['records']} of {records} records came. No memory is reported.")
    # One batch more is being made, and one is with the reader.
    held = (_SHUFFLED + _BATCH * (_READY + 2)) * _RECORD_BYTES
    return MemoryUse(records * _RECORD_BYTES, held, said["grown"])
