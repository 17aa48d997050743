"""Datasets several times over."""

from __future__ import annotations

import itertools

import pytest

from ringlet.data import Dataset
from ringlet.data.graph.iterable import iterable_source


def elements(dataset):
    return [int(x) for x in dataset]


@pytest.mark.parametrize("operation", [lambda d: d, lambda d: d.map(lambda x: x)])
@pytest.mark.parametrize(("count", "expected"), [(0, []), (1, [0, 1]), (3, [0, 1, 0, 1, 0, 1])])
def test_elements_come_as_many_times_as_counted(operation, count, expected):
    assert elements(operation(Dataset.range(2)).repeat(count)) == expected


@pytest.mark.parametrize("count", [None, -1])
@pytest.mark.parametrize("operation", [lambda d: d, lambda d: d.map(lambda x: x)])
def test_no_count_and_minus_one_repeat_without_end(operation, count):
    assert elements(itertools.islice(operation(Dataset.range(2)).repeat(count), 7)) == [0, 1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("empty", [Dataset.range(0), Dataset.range(0).map(lambda x: x), Dataset(iterable_source([]))])
def test_repeating_nothing_without_end_ends(empty):
    assert list(empty.repeat()) == []
    assert list(empty.repeat(10**12).take(3).batch(2)) == []


def test_repeating_what_turns_out_to_be_nothing_ends():
    class Nothing:
        def __iter__(self):
            return (x for x in ())

    assert list(Dataset(iterable_source(Nothing())).repeat()) == []


def test_a_batch_may_hold_many_rounds():
    assert [x.tolist() for x in Dataset.range(2).repeat(4).batch(5)] == [[0, 1, 0, 1, 0], [1, 0, 1]]


def test_a_round_begins_only_when_its_elements_are_asked_for():
    begun = []

    class Source:
        def __iter__(self):
            begun.append(len(begun))
            return iter([1, 2])

    iterator = iter(Dataset(iterable_source(Source())).repeat())
    next(iterator), next(iterator)
    assert begun == [0]
    next(iterator)
    assert begun == [0, 1]


def test_each_round_is_closed_when_it_has_ended():
    closed = []

    class Source:
        def __iter__(self):
            try:
                yield 1
            finally:
                closed.append(True)

    assert len(list(Dataset(iterable_source(Source())).repeat(2))) == 2
    assert closed == [True, True]
