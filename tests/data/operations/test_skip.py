"""All but the first elements."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ringlet.data.graph.iterable import iterable_source

KINDS = [lambda d: d, lambda d: d.map(lambda x: x)]


@pytest.mark.parametrize(("count", "expected"), [(0, [0, 1, 2]), (2, [2]), (3, []), (9, []), (-1, [])])
@pytest.mark.parametrize("operation", KINDS)
def test_the_first_elements_are_left_out(operation, count, expected):
    dataset = operation(Dataset.range(3)).skip(count)
    assert [int(x) for x in dataset] == expected
    assert dataset.cardinality() == len(expected)


def test_cardinality_is_that_of_the_rest():
    assert Dataset.range(3).repeat().skip(5).cardinality() == INFINITE_CARDINALITY
    assert Dataset.range(3).filter(bool).skip(5).cardinality() == UNKNOWN_CARDINALITY


def test_batches_behind_a_skip_are_views():
    rows = np.arange(10)
    assert all(np.shares_memory(x, rows) for x in Dataset.from_tensor_slices(rows).skip(3).batch(2))


def test_many_rows_are_left_out_without_making_them():
    assert next(iter(Dataset.range(10**12).skip(10**12 - 1))) == 10**12 - 1


def test_an_element_at_fault_may_be_one_of_those_left_out():
    class Source:
        def __iter__(self):
            return iter([0, 0, 5])

    iterator = iter(Dataset(iterable_source(Source())).map(lambda x: 10 // int(x)).skip(2))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            next(iterator)
    assert next(iterator) == 2


@pytest.mark.parametrize(("count", "error"), [(1.5, TypeError), (None, TypeError)])
def test_a_count_is_an_integer(count, error):
    with pytest.raises(error, match="count"):
        Dataset.range(3).skip(count)


def _fails_at_three(x):
    if x == 3:
        raise ZeroDivisionError
    return x


@pytest.mark.parametrize(
    ("after", "found"),
    [
        (lambda dataset: dataset.skip(5), ["error", 5, 6, 7]),
        (lambda dataset: dataset.shard(2, 1), [1, "error", 5, 7]),
        (
            lambda dataset: dataset.window(3, drop_remainder=True).flat_map(lambda w: w.batch(3)).map(np.sum),
            [3, "error", 15],
        ),
    ],
)
def test_an_exception_in_front_of_it_loses_no_other_element(after, found):
    iterator, elements = iter(after(Dataset.range(8).map(_fails_at_three))), []
    while elements[-1:] != [None]:
        try:
            elements.append(next(iterator, None))
        except ZeroDivisionError:
            elements.append("error")
    assert elements[:-1] == found


@pytest.mark.parametrize("kind", ["rows", "elements"])
@pytest.mark.parametrize("operation", ["skip", "take"])
@pytest.mark.parametrize("taken", [0, 1, 3])
def test_what_is_left_to_count_is_saved(kind, operation, taken):
    source = Dataset.range(9) if kind == "rows" else Dataset.range(9).map(lambda x: x)
    dataset = getattr(source, operation)(5)
    iterator, later = iter(dataset), iter(dataset)
    for _ in range(taken):
        next(iterator)
    later.set_state(iterator.get_state())
    assert list(later) == list(iterator) == list(range(9))[slice(5, 9) if operation == "skip" else slice(0, 5)][taken:]
