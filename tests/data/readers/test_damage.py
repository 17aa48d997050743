"""Whatever is done to the bytes of a file: readers raise Ringlet's errors, which name the file, and nothing else."""

from __future__ import annotations

import gzip
import io
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringlet.errors
from ringlet.data import Dataset, FixedLengthRecordDataset, TextLineDataset, TFRecordDataset, TFRecordWriter

MUTATIONS = 20_000 if os.environ.get("RINGLET_CI_NIGHTLY") else 400
DOCUMENTED = tuple(getattr(ringlet.errors, name) for name in ringlet.errors.__all__)


def records(folder: Path) -> bytes:
    with TFRecordWriter(folder / "records") as writer:
        for number in range(20):
            writer.write(f"record {number}" * number)
    return (folder / "records").read_bytes()


def npy(_: Path) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.arange(60, dtype=np.float32).reshape(20, 3))
    return stream.getvalue()


def parquet(_: Path) -> bytes:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    stream = io.BytesIO()
    table = arrow.table({"x": list(range(50)), "y": [i / 3 for i in range(50)], "name": [f"n{i}" for i in range(50)]})
    pyarrow.write_table(table, stream, row_group_size=20)
    return stream.getvalue()


def csv(_: Path) -> bytes:
    pytest.importorskip("pyarrow")
    return b"x,y,name\n" + b"".join(f"{i},{i / 3},é{i}\n".encode() for i in range(50))


# A whole file, and the dataset that reads it.
READERS: dict[str, tuple[Callable[[Path], bytes], Callable[[str], Any]]] = {
    "records": (records, TFRecordDataset),
    "records, GZIP": (lambda folder: gzip.compress(records(folder)), lambda name: TFRecordDataset(name, "GZIP")),
    "records, ZLIB": (lambda folder: zlib.compress(records(folder)), lambda name: TFRecordDataset(name, "ZLIB")),
    "lines": (lambda _: "zwölf\n\nBären\n".encode() * 9, TextLineDataset),
    "lines, GZIP": (lambda _: gzip.compress(b"line\n" * 99), lambda name: TextLineDataset(name, "GZIP")),
    "fixed": (lambda _: bytes(range(120)), lambda name: FixedLengthRecordDataset(name, 10, 3, 7)),
    "npy": (npy, Dataset.from_npy),
    "csv": (csv, Dataset.from_csv),
    "parquet": (parquet, Dataset.from_parquet),
}


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Flip bits, cut, repeat or insert bytes somewhere."""
    data = bytearray(whole)
    for _ in range(chance.choice([1, 1, 1, 4])):
        at = chance.randrange(len(data) + 1)
        kind = chance.randrange(5)
        if kind == 0:
            del data[at:]
        elif kind == 1:
            data[at:at] = chance.randbytes(chance.choice([1, 7]))
        elif kind == 2:
            del data[at : at + chance.choice([1, 7])]
        elif at < len(data):
            data[at] = chance.choice([data[at] ^ 1 << chance.randrange(8), 0, 255])
    return bytes(data)


def read(make: Callable[[], Any]) -> Exception | None:
    """Make a dataset, and go through it; return what that raises."""
    try:
        for _ in make():
            pass
    except Exception as error:
        return error
    return None


@pytest.mark.timeout(max(120, MUTATIONS // 20))
@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_read_or_refused_with_its_name(tmp_path, kind):
    make, dataset_of = READERS[kind]
    whole, chance = make(tmp_path), random.Random(kind)
    name = str(tmp_path / "damaged")
    for number in range(MUTATIONS):
        Path(name).write_bytes(damaged(whole, chance))
        problem = read(lambda: dataset_of(name))
        is_documented = problem is None or (isinstance(problem, DOCUMENTED) and name in str(problem))
        assert is_documented, f"mutation {number} raises {problem!r}"


def test_a_header_in_another_encoding_is_named_with_the_remedy(tmp_path):
    pytest.importorskip("pyarrow")
    name = tmp_path / "latin.csv"
    name.write_bytes("größe,x\n1,2\n".encode("latin-1"))
    with pytest.raises(ringlet.errors.InvalidArgumentError, match=r"latin\.csv, line 1: .* encoding='latin-1'"):
        list(Dataset.from_csv(name))
    assert list(Dataset.from_csv(name, encoding="latin-1")) == [{"größe": 1, "x": 2}]


def test_a_record_that_is_larger_than_memory_is_refused_with_the_argument(tmp_path):
    name = tmp_path / "file.gz"
    name.write_bytes(gzip.compress(b"abc"))
    with pytest.raises(ringlet.errors.InvalidArgumentError, match="record_bytes"):
        list(FixedLengthRecordDataset(name, 2**62, compression_type="GZIP"))
    name.write_bytes(b"abc")
    with pytest.raises(ringlet.errors.InvalidArgumentError, match="not an exact multiple"):
        list(FixedLengthRecordDataset(name, 2**62))
