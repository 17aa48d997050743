"""Readers of TFRecord and text files answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_io.py. Files are given as hexadecimal text, good and damaged ones; the
answer is the records in order, and the error behind them, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ringlet import data
from ringlet.errors import DataLossError
from tests.conformance.common import assert_same_error, case_id, load

CASES = load("io")


def decode(value: Any) -> Any:
    """Bytes are written as latin-1 text."""
    if isinstance(value, dict) and "__bytes__" in value:
        return value["__bytes__"].encode("latin-1")
    if isinstance(value, dict):
        return {key: decode(child) for key, child in value.items()}
    return [decode(child) for child in value] if isinstance(value, list) else value


def put(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_bytes(bytes.fromhex(text))
    return str(path)


def read(dataset: data.Dataset) -> dict[str, Any]:
    """The elements up to the end, or up to an error."""
    found: dict[str, Any] = {"records": []}
    iterator = iter(dataset)
    try:
        while (element := iterator.get_next_as_optional()).has_value():
            found["records"].append(element.get_value())
    except Exception as error:
        found["error"] = error
    return found


def write_records(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = folder / "written"
    with data.TFRecordWriter(path) as writer:
        for record in given["records"]:
            writer.write(record)
    return {"hex": path.read_bytes().hex()}


def read_one(kind: type[data.Dataset]) -> Callable[[dict[str, Any], Path], dict[str, Any]]:
    return lambda given, folder: read(kind(put(folder, "read", given["hex"]), given["compression"]))


def read_many(kind: type[data.Dataset]) -> Callable[[dict[str, Any], Path], dict[str, Any]]:
    return lambda given, folder: read(
        kind([put(folder, f"part-{i}", text) for i, text in enumerate(given["files_hex"])])
    )


def read_missing(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    return read(getattr(data, given["dataset"])(given["file"].replace("TMPDIR", str(folder))))


def read_cut_short(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The records; behind them an error where TensorFlow ends as if the file were whole."""
    found = read(data.TFRecordDataset(put(folder, "read", given["hex"]), given["compression"]))
    assert isinstance(found.pop("error"), DataLossError)
    return found


RUNNERS: dict[str, Callable[[dict[str, Any], Path], dict[str, Any]]] = {
    "missing_file": read_missing,
    "text_files": read_many(data.TextLineDataset),
    "text_read": read_one(data.TextLineDataset),
    "tfrecord_corrupt": read_one(data.TFRecordDataset),
    "tfrecord_files": read_many(data.TFRecordDataset),
    "tfrecord_read": read_one(data.TFRecordDataset),
    "tfrecord_truncated": read_one(data.TFRecordDataset),
    "tfrecord_truncated_gzip": read_cut_short,
    "tfrecord_write": write_records,
    "tfrecord_wrong_compression": read_one(data.TFRecordDataset),
}


def assert_same(expected: dict[str, Any], found: dict[str, Any], folder: Path) -> None:
    error, recorded = found.pop("error", None), expected.pop("error", None)
    assert found == expected
    assert (error is None) == (recorded is None), error or recorded
    if error is not None:
        said = recorded["message"].replace("TMPDIR", str(folder)).partition("'")[0]
        assert said in str(error)
        assert_same_error({**recorded, "message": said}, error)


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case, tmp_path):
    expected, given = decode(case["expect"]), decode(case["input"])
    if "error" in expected:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - assert_same_error looks at the type
            RUNNERS[case["group"]](given, tmp_path)
        assert_same_error(expected["error"], caught.value)
    else:
        assert_same(expected["ok"], RUNNERS[case["group"]](given, tmp_path), tmp_path)


def test_all_recorded_cases_are_compared(capsys):
    with capsys.disabled():
        print(f"\nrecorded cases of files: {len(CASES)} of {len(CASES)} compared")
    assert {case["group"] for case in CASES} <= RUNNERS.keys()
