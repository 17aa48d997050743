from __future__ import annotations

from ringlet.data import Dataset, TextLineDataset
from tests.data.readers.files import put


def test_a_dataset_of_files_is_of_its_class_and_what_is_made_of_it_is_a_dataset(tmp_path):
    lines = TextLineDataset(put(tmp_path / "file", b"a\nb\n"))
    assert type(lines) is TextLineDataset
    assert type(lines.take(1)) is Dataset
    assert list(lines.take(1)) == [b"a"]


def test_a_dataset_of_files_is_shown_with_its_graph():
    assert repr(TextLineDataset("x").batch(2)).startswith("<Dataset TableSource -> TextLineReader -> Batch")
