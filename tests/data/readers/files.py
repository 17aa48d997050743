"""Files that the tests of readers read, and states that they restore."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ringlet.data import Dataset, TFRecordWriter
from ringlet.data.graph.pipeline_handle import Opened

PACK: dict[str, Callable[[bytes], bytes]] = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


def put(path: Path, data: bytes, compression: str = "") -> str:
    """Write a file, and give its name."""
    path.write_bytes(PACK[compression](data))
    return str(path)


def put_records(path: Path, records: Iterable[bytes], compression: str = "") -> str:
    """Write a TFRecord file, and give its name."""
    with TFRecordWriter(path, compression) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def outcome(dataset: Dataset) -> list[Any]:
    """All elements, and in their places the names of the errors."""
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
    """A state taken behind any number of elements gives exactly the others, and the saved stream goes on."""
    expected = [str(element) for element in make()]
    for cut in cuts:
        saved, restored = Opened(make().node), Opened(make().node)
        for _ in range(cut):
            next(saved.stream)
        restored.set_state(saved.get_state())
        assert [str(element) for element in restored.stream] == expected[cut:]
        assert [str(element) for element in saved.stream] == expected[cut:]
        saved.close()
        restored.close()
