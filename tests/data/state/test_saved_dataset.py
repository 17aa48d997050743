"""The folder of a saved dataset."""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pytest

from ringlet.data import TensorSpec
from ringlet.data.state.saved_dataset import SavedDatasetWriter, check_compression, read_manifest
from ringlet.errors import DataLossError, InvalidArgumentError, NotFoundError

SPEC = TensorSpec((), np.int64)


def begin(folder):
    return SavedDatasetWriter.begin(str(folder), SPEC, 0)


def saved(folder, count):
    writer = begin(folder)
    for number in range(count):
        writer.write(np.int64(number), number % 2)
    writer.finish()


def test_only_one_writer_is_at_work(tmp_path):
    first = begin(tmp_path)
    assert begin(tmp_path) is None
    first.abandon()
    second = begin(tmp_path)
    assert second is not None
    second.abandon()


def test_what_was_saved_counts_until_the_next_is_complete(tmp_path):
    saved(tmp_path, 3)
    writer = begin(tmp_path)
    writer.write(np.int64(9), 0)
    assert read_manifest(str(tmp_path)).shards == {0: 2, 1: 1}
    writer.finish()
    assert read_manifest(str(tmp_path)).shards == {0: 1}
    assert len(list(tmp_path.glob("run-*"))) == 1


def test_an_abandoned_run_leaves_nothing(tmp_path):
    writer = begin(tmp_path)
    writer.write(np.int64(9), 0)
    writer.abandon()
    writer.abandon()
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    with pytest.raises(NotFoundError, match=r"no dataset is saved in .*dataset\.json.*Dataset\.save"):
        read_manifest(str(tmp_path))


def _write_and_die(folder):
    writer = begin(folder)
    writer.write(np.int64(9), 0)
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_writer_leaves_what_was_there_and_the_next_cleans_up(tmp_path):
    saved(tmp_path, 3)
    process = multiprocessing.get_context("spawn").Process(target=_write_and_die, args=(str(tmp_path),))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert read_manifest(str(tmp_path)).shards == {0: 2, 1: 1}
    assert len(list(tmp_path.glob("run-*"))) == 2
    saved(tmp_path, 1)
    assert len(list(tmp_path.glob("run-*"))) == 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "Expecting value"),
        (b"{}", "it has no entry 'format'"),
        (b"[1]", "expected a JSON object, got a list"),
        (b'{"format": "x", "version": 1}', "the format is 'x', version 1; this version .* 'ringlet-dataset', version"),
        (b"\xff", "invalid start byte"),
        (b'{"format": "ringlet-dataset", "version": 2}', "version 2; this version of ringlet reads"),
    ],
)
def test_a_damaged_manifest_is_named(tmp_path, text, problem):
    (tmp_path / "dataset.json").write_bytes(text)
    with pytest.raises(DataLossError, match=rf"dataset\.json: .*{problem}.*Save the dataset again"):
        read_manifest(str(tmp_path))


def test_a_manifest_names_no_folder_elsewhere(tmp_path):
    saved(tmp_path, 1)
    path = tmp_path / "dataset.json"
    path.write_text(path.read_text().replace('"run-', '"../run-'))
    with pytest.raises(DataLossError, match=r"its entry 'run' must be a folder name, got '\.\./run-"):
        read_manifest(str(tmp_path))


@pytest.mark.parametrize("wrong", ["gzip", "LZ4", 3, ["GZIP"]])
def test_compressions_are_those_of_tensorflow(wrong):
    with pytest.raises(InvalidArgumentError, match=r"'GZIP', got"):
        check_compression(wrong)
