"""Names of files that match patterns."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.operations.list_files import matching_files
from ringlet.errors import InvalidArgumentError

FILES = ["b.txt", "a.txt", "c.py", ".hidden.txt", "sub/d.txt", "sub/e.txt", "a[1].txt", "Z.txt", "a2.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    for name in FILES:
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(pattern, **keywords):
    return [str(x) for x in Dataset.list_files(pattern, shuffle=False, **keywords)]


TEXT = ["./.hidden.txt", "./Z.txt", "./a.txt", "./a2.txt", "./a[1].txt", "./b.txt"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        # as TensorFlow 2.21 answers
        ("*.txt", TEXT),
        ("./*.txt", TEXT),
        (["*.py", "*.txt"], [*TEXT, "./c.py"]),
        (np.array(["*.py", "a.txt"]), ["./c.py", "a.txt"]),
        (["*.py", "c.*"], ["./c.py", "./c.py"]),
        (["nothing*", "*.py"], ["./c.py"]),
        ("*/*.txt", ["./sub/d.txt", "./sub/e.txt"]),
        ("**/*.txt", ["./sub/d.txt", "./sub/e.txt"]),
        ("sub/*.txt", ["sub/d.txt", "sub/e.txt"]),
        ("s*", ["./sub"]),
        ("a.txt", ["a.txt"]),
        ("sub", ["sub"]),
        ("?.txt", ["./Z.txt", "./a.txt", "./b.txt"]),
        ("[ab].txt", ["./a.txt", "./b.txt"]),
        ("[a-b].txt", ["./a.txt", "./b.txt"]),
        ("[!ab].txt", ["./Z.txt"]),
        ("[^ab].txt", ["./Z.txt"]),
        ("a[[]1].txt", ["./a[1].txt"]),
        (r"a\[1\].txt", ["./a[1].txt"]),
        ("./sub/../*.py", ["./sub/../c.py"]),
    ],
)
def test_names_that_match_come_sorted(pattern, expected):
    assert names(pattern) == expected


def test_whole_paths_stay_whole_paths(folder):
    assert names(f"{folder}/*.py") == [f"{folder}/c.py"]
    assert names(folder / "c.py") == [f"{folder}/c.py"]


def test_bytes_match_bytes():
    assert list(Dataset.list_files(b"*.py")) == [b"./c.py"]
    assert list(Dataset.list_files("*.py")) == ["./c.py"]


@pytest.mark.parametrize("pattern", ["{a,b}.txt", "nothing*", ["n1*", "n2*"], [], "missing/x*.txt", "~", "missing"])
def test_a_pattern_without_files_is_an_error_that_names_it(pattern):
    with pytest.raises(InvalidArgumentError, match="no files matched pattern"):
        Dataset.list_files(pattern)


@pytest.mark.parametrize(("pattern", "error"), [(3, (TypeError, InvalidArgumentError)), ([3], TypeError)])
def test_a_pattern_is_text(pattern, error):
    with pytest.raises(error):
        Dataset.list_files(pattern)


def test_names_are_shuffled_anew_in_every_iteration_unless_told_otherwise(folder):
    for number in range(30):
        (folder / f"{number}.csv").touch()
    dataset = Dataset.list_files("*.csv", seed=1)
    first, second = list(dataset), list(dataset)
    assert first != second
    assert sorted(first) == sorted(second) == names("*.csv", seed=1)
    assert list(Dataset.list_files("*.csv", seed=1)) == first


def test_a_folder_that_may_not_be_read_matches_nothing():
    assert matching_files("a.txt/*") == []
