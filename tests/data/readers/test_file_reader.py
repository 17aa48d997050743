from __future__ import annotations

import threading

import numpy as np
import pytest

from ringlet.data import AUTOTUNE, Dataset, TextLineDataset
from ringlet.errors import InvalidArgumentError, NotFoundError
from tests.data.readers.files import assert_restores, outcome, put


def put_lines(folder, counts):
    """Files of lines "file-line", as many as `counts` says."""
    lines = ["".join(f"{file}-{line}\n" for line in range(count)) for file, count in enumerate(counts)]
    return [put(folder / f"part-{file}", text.encode()) for file, text in enumerate(lines)]


# Recorded from TextLineDataset of tensorflow-cpu 2.21.0.
@pytest.mark.parametrize(
    ("counts", "reads", "order"),
    [
        # lines of each file, num_parallel_reads, order
        ((3, 1, 0, 4, 2), 1, "0-0 0-1 0-2 1-0 3-0 3-1 3-2 3-3 4-0 4-1"),
        ((3, 1, 0, 4, 2), 2, "0-0 1-0 0-1 0-2 3-0 4-0 3-1 4-1 3-2 3-3"),
        ((3, 1, 0, 4, 2), 3, "0-0 1-0 0-1 3-0 0-2 4-0 3-1 4-1 3-2 3-3"),
        ((1, 5, 1, 1), 2, "0-0 1-0 1-1 2-0 1-2 1-3 3-0 1-4"),
        ((1, 5, 1, 1), 3, "0-0 1-0 2-0 1-1 3-0 1-2 1-3 1-4"),
        ((2, 2, 2, 2, 2, 2), 3, "0-0 1-0 2-0 0-1 1-1 2-1 3-0 4-0 5-0 3-1 4-1 5-1"),
        ((0, 0, 2), 2, "2-0 2-1"),
    ],
)
def test_files_that_are_read_at_the_same_time_take_turns_as_in_tensorflow(tmp_path, counts, reads, order):
    dataset = TextLineDataset(put_lines(tmp_path, counts), num_parallel_reads=reads)
    assert b" ".join(dataset).decode() == order
    batches = list(dataset.batch(3))
    assert b" ".join(np.concatenate(batches).tolist()).decode() == order
    assert [len(batch) for batch in batches[:-1]] == [3] * (len(batches) - 1)


@pytest.mark.parametrize("reads", [None, 2, 3, AUTOTUNE])
def test_a_state_is_restored_exactly(tmp_path, reads):
    names = put_lines(tmp_path, (700, 0, 3, 2000, 1))

    def make():
        return TextLineDataset(names, num_parallel_reads=reads, buffer_size=0)

    assert_restores(make, [0, 1, 3, 699, 700, 1500, 2703, 2704])
    assert_restores(lambda: make().batch(7), [0, 1, 100])
    assert_restores(lambda: make().shuffle(50, seed=3).batch(7).repeat(2).prefetch(2), [0, 1, 400])


def test_a_missing_file_is_an_error_in_its_place_and_the_next_file_follows(tmp_path):
    names = put_lines(tmp_path, (1, 1))
    assert outcome(TextLineDataset([names[0], str(tmp_path / "no"), names[1]])) == [b"0-0", "NotFoundError", b"1-0"]
    turns = TextLineDataset([names[0], str(tmp_path / "no"), names[1]], num_parallel_reads=2)
    assert outcome(turns) == [b"0-0", "NotFoundError", b"1-0"]


def test_no_files_have_no_elements():
    assert list(TextLineDataset([])) == []


def test_no_thread_is_left_when_an_iterator_is_closed_early_or_dropped(tmp_path):
    names = put_lines(tmp_path, (50_000, 50_000))
    before = set(threading.enumerate())
    iterator = iter(TextLineDataset(names, num_parallel_reads=2, buffer_size=0))
    next(iterator)
    assert set(threading.enumerate()) > before
    iterator.close()
    assert set(threading.enumerate()) == before
    assert list(iterator) == []
    iterator = iter(TextLineDataset(names, num_parallel_reads=2, buffer_size=0))
    next(iterator)
    del iterator
    assert set(threading.enumerate()) == before


def test_functions_of_map_are_given_the_first_line_there_is_as_their_example(tmp_path):
    names = put_lines(tmp_path, (0, 2))
    dataset = TextLineDataset([*names, str(tmp_path / "no")]).map(lambda line: np.array(line.split(b"-")).astype(int))
    assert dataset.element_spec.shape == (2,)
    assert TextLineDataset([]).map(len).element_spec.dtype == np.int64


def test_names_may_come_from_a_dataset_with_functions(tmp_path):
    put_lines(tmp_path, (1, 1))
    names = Dataset.range(2).map(lambda i: str(tmp_path / f"part-{i}"))
    assert list(TextLineDataset(names)) == [b"0-0", b"1-0"]
    with pytest.raises(NotFoundError):
        next(iter(TextLineDataset(Dataset.range(1).map(lambda i: "nowhere"))))


def test_a_number_of_files_that_is_none_is_refused():
    with pytest.raises(InvalidArgumentError, match="`cycle_length` must be > 0"):
        TextLineDataset("x", num_parallel_reads=0)
    with pytest.raises(TypeError, match="num_parallel_reads must be an integer or None, got 'two'"):
        TextLineDataset("x", num_parallel_reads="two")
