"""A file has the arrays as they lie in memory, and checksums of everything."""

from __future__ import annotations

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from ringlet.train.checkpoint_reader import open_file
from ringlet.train.checkpoint_writer import Tensor, write_file


def test_what_is_written_is_read_by_us_and_by_the_library(tmp_path):
    path, array = str(tmp_path / "it"), np.arange(6, dtype=">i2").reshape(2, 3).T
    write_file(path, ["list", [1]], [Tensor.of("a", array, True)], 7)
    assert safetensors.numpy.load_file(path)["a"].tolist() == array.tolist()
    with open_file(path) as file:
        assert (file.saved_ns, file.tree) == (7, ["list", [1]])
        found = file.read(file.entries["a"])
        assert (found.dtype.str, found.tolist()) == (">i2", array.tolist())


def test_an_array_that_lies_as_in_files_is_written_from_where_it_lies():
    plain, turned = np.zeros((2, 3)), np.zeros((2, 3)).T
    assert Tensor.of("a", plain, False).array is plain
    assert not Tensor.of("a", plain, False).is_steady
    assert Tensor.of("a", turned, False).is_steady, "nobody else has the copy"


WORDS = [
    # what the library says, class, what the user reads
    ("I/O error: No space left on device (os error 28)", OSError, "No space left on device"),
    ("Error while serializing: header too large", ValueError, "numbers, text and bytes .* save long lists as arrays"),
    ("something new", RuntimeError, "the library safetensors cannot write .*: something new"),
]


@pytest.mark.parametrize(("said", "kind", "words"), WORDS)
def test_an_error_of_the_library_becomes_one_that_says_what_to_do(tmp_path, monkeypatch, said, kind, words):
    def fail(*_, **__):
        raise safetensors.SafetensorError(said)

    monkeypatch.setattr(safetensors, "serialize_file", fail)
    with pytest.raises(kind, match=words):
        write_file(str(tmp_path / "it"), None, [], 0)
