"""Files for tests of readers, and checks of restored states."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ringlet.data import Dataset, TFRecordWriter
from ringlet.data.graph.pipeline_handle import PipelineHandle

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


def put(path: Path, data: bytes, compression: str = "") -> str:
    """Write a file, and return its name."""
    path.write_bytes(PACK[compression](data))
    return str(path)


def put_records(path: Path, records: Iterable[bytes], compression: str = "") -> str:
    """Write a TFRecord file, and return its name."""
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def outcome(dataset: Dataset) -> list[Any]:
    """Return all elements, with the names of errors in their places."""
    found: list[Any] = []
    iterator = iter(dataset)
    for _ in range(100_000):
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:
            found.append(type(error).__name__)
    raise AssertionError("the dataset does not end")


def assert_restores(make: Callable[[], Dataset], cuts: Iterable[int]) -> None:
    """Assert that a state saved after any number of elements restores the others, and the saved stream continues."""
    expected = [str(element) for element in make()]
    for cut in cuts:
        saved, restored = PipelineHandle(make().node), PipelineHandle(make().node)
        for _ in range(cut):
            next(saved.stream)
        restored.set_state(saved.get_state())
        assert [str(element) for element in restored.stream] == expected[cut:]
        assert [str(element) for element in saved.stream] == expected[cut:]
        saved.close()
        restored.close()
