"""Differences are told as people say them."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.rank_zero.value_diff import differences_between, listed
from ringlet.rank_zero.value_digest import Snapshot


def alone(rows):
    return rows


@pytest.mark.parametrize(("items", "text"), [([1], "1"), ([1, 2], "1 and 2"), ([1, 2, 3], "1, 2 and 3")])
def test_lists_are_written_as_people_say_them(items, text):
    assert listed(items) == text


def test_only_the_leaves_that_differ_are_given():
    snapshots = [Snapshot({"a": 1, "b": np.zeros(3), "c": i}) for i in range(2)]
    (difference,) = differences_between(alone, snapshots, "worker")
    assert (difference.path, difference.index, difference.values) == ("['c']", (), {0: 0, 1: 1})


def test_long_texts_are_shown_in_part_and_never_alike():
    snapshots = [Snapshot("x" * 500 + str(i)) for i in range(2)]
    (difference,) = differences_between(alone, snapshots, "worker")
    assert difference.text.count("x") < 200
    assert difference.text.count("of 503 characters, digest ") == 2
    assert difference.ranks == (1,)


def test_of_very_many_leaves_only_some_are_looked_into():
    snapshots = [Snapshot([np.full(2, i)] * 40) for i in range(3)]
    found = differences_between(alone, snapshots, "worker")
    assert len(found) == 40
    assert [each.index for each in found].count((0,)) == 8


def test_the_majority_is_what_others_differ_from():
    snapshots = [Snapshot(value) for value in (5, 7, 5, 5)]
    (difference,) = differences_between(alone, snapshots, "rank")
    assert difference.ranks == (1,)
    assert difference.text == "int64: rank 1 has 7, and ranks 0, 2 and 3 have 5"


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (np.array(["c"]), np.array(["d"]), "<U1[1]: at [0] rank 0 has 'c', and rank 1 has 'd'"),
        (np.float32([0.1]), np.float32([0.2]), "float32[1]: at [0] rank 0 has 0.1, and rank 1 has 0.2"),
        ([0.0], [-0.0], "[0], float64: rank 0 has 0.0, and rank 1 has -0.0"),
        (None, 3, "rank 0 has None, and rank 1 has int64"),
        (np.zeros(2), np.zeros(2, "f4"), "rank 0 has float64[2], and rank 1 has float32[2]"),
    ],
    ids=["text", "single precision", "sign of zero", "nothing", "dtype"],
)
def test_values_are_shown_as_their_kind_writes_them(one, other, text):
    (difference,) = differences_between(alone, [Snapshot(one), Snapshot(other)], "rank")
    assert difference.text == text
