"""Elements that are made once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ringlet.data import AUTOTUNE, Dataset, Options
from ringlet.errors import NotFoundError
from tests.data.state_cases import through_a_file


class Counted:
    """A function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x * 10


@pytest.fixture(params=["memory", "file"])
def filename(request, tmp_path):
    return "" if request.param == "memory" else str(tmp_path / "cache")


def test_elements_are_made_once_for_all_iterations_and_rounds(filename):
    function = Counted()
    dataset = Dataset.range(4).map(function).cache(filename)
    for _ in range(2):
        assert [int(x) for x in dataset.repeat(2)] == [0, 10, 20, 30] * 2
    assert function.calls == 4
    assert len(dataset) == 4


def test_what_is_random_in_front_of_it_stays_as_it_was(filename):
    dataset = Dataset.range(50).map(lambda x: x).shuffle(50).cache(filename)
    first = [int(x) for x in dataset]
    assert [int(x) for x in dataset] == first
    assert sorted(first) == list(range(50))


def test_rows_remember_their_order_and_are_batched_as_rows():
    dataset = Dataset.from_tensor_slices(np.arange(50)).shuffle(50).cache()
    assert dataset.node.table is not None
    first = dataset.batch(8).unbatch()
    assert list(first) == list(dataset)
    assert sorted(map(int, dataset)) == list(range(50))


def test_an_iteration_that_ends_early_leaves_no_cache(filename, tmp_path):
    function = Counted()
    dataset = Dataset.range(4).map(function).cache(filename)
    with iter(dataset) as iterator:
        next(iterator)
    assert len(list(dataset.take(2))) == 2
    assert list(tmp_path.iterdir()) == []
    assert [int(x) for x in dataset] == [0, 10, 20, 30]
    assert function.calls == 1 + 2 + 4


def test_an_iteration_with_an_exception_leaves_no_cache(filename, tmp_path):
    failures = [ZeroDivisionError("at first")]

    def fails_once(x):
        if x == 1 and failures:
            raise failures.pop()
        return x

    dataset = Dataset.range(3).map(fails_once).cache(filename)
    iterator = iter(dataset)
    assert next(iterator) == 0
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert [int(x) for x in iterator] == [2]
    assert list(tmp_path.iterdir()) == []
    assert [int(x) for x in dataset] == [int(x) for x in dataset] == [0, 1, 2]


def test_two_iterations_at_once_do_not_disturb_each_other(filename):
    dataset = Dataset.range(5).map(lambda x: x).cache(filename)
    pairs = list(zip(iter(dataset), iter(dataset), strict=True))
    assert pairs == [(x, x) for x in range(5)]
    assert [int(x) for x in dataset] == list(range(5))


def test_elements_cannot_be_written_to(filename):
    dataset = Dataset.range(2).map(lambda x: np.zeros(3)).cache(filename)
    for _ in range(2):
        assert not any(x.flags.writeable for x in dataset)


def test_a_cache_of_other_elements_in_front_is_another_cache():
    dataset = Dataset.range(4).map(lambda x: x).cache()
    assert len(list(dataset)) == 4
    node = dataset.node.with_inputs(Dataset.range(2).map(lambda x: x).node)
    assert [int(x) for x in Dataset(node)] == [0, 1]


def test_options_that_change_threads_only_leave_one_cache():
    function, options = Counted(), Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    dataset = Dataset.range(4).map(function, num_parallel_calls=AUTOTUNE).cache()
    assert len(list(dataset.with_options(options))) == 4
    assert sorted(map(int, dataset.with_options(options))) == [0, 10, 20, 30]
    assert function.calls == 4


@pytest.mark.parametrize("at", [0, 1, 5, 8, 12, 16])
@pytest.mark.parametrize("kind", [lambda d: d, lambda d: d.map(lambda x: x)])
def test_an_unseeded_shuffle_in_a_cache_goes_on_where_it_was_saved(at, kind):
    def open_it():
        return iter(kind(Dataset.range(8)).shuffle(8).cache().repeat(2))

    iterator = open_it()
    list(itertools.islice(iterator, at))
    state = through_a_file(iterator.get_state())
    restored = open_it()
    restored.set_state(state)
    assert through_a_file(restored.get_state()) is not None
    assert list(restored) == list(iterator)


@pytest.mark.parametrize("at", [0, 1, 5, 8, 12, 16])
def test_a_cache_in_a_file_goes_on_where_it_was_saved(at, tmp_path):
    def open_it():
        return iter(Dataset.range(8).shuffle(8).cache(tmp_path / "cache").repeat(2))

    iterator = open_it()
    list(itertools.islice(iterator, at))
    state = through_a_file(iterator.get_state())
    rest = list(iterator)
    if at in (0, 8, 16):
        restored = open_it()
        restored.set_state(state)
        assert list(restored) == rest
    if 0 < at < 8:  # the round that was saved goes on; the file was complete for the next one
        restored = open_it()
        restored.set_state(state)
        assert list(restored) == rest


def test_a_file_that_a_saved_iterator_read_must_be_there(tmp_path):
    def open_it():
        return iter(Dataset.range(4).cache(tmp_path / "cache"))

    list(open_it())
    iterator = open_it()
    next(iterator)
    state = iterator.get_state()
    (tmp_path / "cache.ringlet-cache").unlink()
    with pytest.raises(NotFoundError, match="does not exist"):
        open_it().set_state(state)


def test_a_restored_iterator_uses_what_this_process_has():
    function = Counted()
    dataset = Dataset.range(6).map(function).cache()
    list(dataset)
    iterator = iter(dataset)
    next(iterator), next(iterator)
    restored = iter(dataset)
    restored.set_state(iterator.get_state())
    assert [int(x) for x in restored] == [20, 30, 40, 50]
    assert function.calls == 6


def test_a_source_that_can_be_read_once_is_enough():
    dataset = Dataset.from_iterable(iter([1, 2, 3])).cache()
    assert [int(x) for x in dataset] == [int(x) for x in dataset] == [1, 2, 3]


def test_a_filename_is_text():
    with pytest.raises(TypeError, match="filename"):
        Dataset.range(3).cache(5)
