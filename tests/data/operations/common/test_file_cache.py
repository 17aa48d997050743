"""A cache in a file."""

from __future__ import annotations

import multiprocessing
from collections import namedtuple

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.errors import DataLossError, NotFoundError

Point = namedtuple("Point", "x y")


def never(x):
    raise AssertionError("made again")


def test_another_pipeline_of_that_name_reads_the_file(tmp_path):
    assert len(list(Dataset.range(3).cache(tmp_path / "c"))) == 3
    assert [int(x) for x in Dataset.range(3).map(never).cache(tmp_path / "c")] == [0, 1, 2]
    assert [path.name for path in tmp_path.iterdir()] == ["c.ringlet-cache"]


ELEMENTS = [
    (np.int64(1), {"a": np.arange(3.0), "b": "text"}, b"bytes\0"),
    np.array(["a", "long"]),
    np.array([b"a\0", "b"], object),
    np.float16(1.5),
    np.zeros((0, 3), np.complex64),
    np.array("2020-01-01", "datetime64[D]"),
    Point(np.int64(1), np.ones(2)),
]


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements_of_every_kind_come_back_as_they_were(element, tmp_path):
    dataset = Dataset.range(2).map(lambda x: element).cache(tmp_path / "c")
    made, read = [repr(x) for x in dataset], [repr(x) for x in dataset]
    assert made == read


def test_bfloat16_comes_back_as_it_was(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dataset = Dataset.range(2).map(lambda x: np.ones(2, ml_dtypes.bfloat16)).cache(tmp_path / "c")
    list(dataset)
    assert [x.dtype for x in dataset] == [ml_dtypes.bfloat16] * 2


def test_what_cannot_be_written_says_so(tmp_path):
    dataset = Dataset.range(2).map(lambda x: Dataset.range(3).map(abs)).cache(tmp_path / "c")
    with pytest.raises(TypeError, match="cannot save"):
        list(dataset)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="missing"):
        list(Dataset.range(3).cache(tmp_path / "missing" / "c"))


def test_a_damaged_file_is_named_with_the_place(tmp_path):
    dataset = Dataset.range(3).cache(tmp_path / "c")
    list(dataset)
    path = tmp_path / "c.ringlet-cache"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataLossError, match="Delete it") as caught:
        list(dataset)
    assert caught.value.file == str(path)
    assert caught.value.offset > 0


def test_while_one_iteration_writes_the_others_only_make(tmp_path):
    dataset = Dataset.range(4).cache(tmp_path / "c")
    first, second = iter(dataset), iter(dataset)
    next(first), next(second)
    assert len(list(second)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["c.ringlet-cache-partial"]
    assert len(list(first)) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["c.ringlet-cache"]
    assert [int(x) for x in dataset] == [0, 1, 2, 3]


def test_what_a_killed_program_left_behind_is_written_over(tmp_path):
    (tmp_path / "c.ringlet-cache-partial").write_bytes(b"half a record")
    dataset = Dataset.range(4).cache(tmp_path / "c")
    assert list(dataset) == list(dataset)
    assert [path.name for path in tmp_path.iterdir()] == ["c.ringlet-cache"]


def test_a_dropped_iterator_takes_its_file_along(tmp_path):
    iterator = iter(Dataset.range(4).cache(tmp_path / "c"))
    next(iterator)
    assert list(tmp_path.iterdir())
    del iterator
    assert list(tmp_path.iterdir()) == []


def _fill(path, queue):
    queue.put([int(x) for x in Dataset.range(300).map(lambda x: x).cache(path)])


def test_processes_that_write_at_once_leave_one_whole_file(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    workers = [context.Process(target=_fill, args=(str(tmp_path / "c"), queue)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [queue.get(timeout=100) for _ in workers]
    for worker in workers:
        worker.join(100)
    assert found == [list(range(300))] * 2
    assert [int(x) for x in Dataset.range(300).map(never).cache(tmp_path / "c")] == list(range(300))
