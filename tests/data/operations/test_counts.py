"""How counts are read."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset
from ringlet.data.operations.counts import count_or_all, positive
from ringlet.errors import InvalidArgumentError


def test_integers_of_numpy_are_counts():
    assert positive(np.int32(3), "n") == 3
    assert count_or_all(np.int64(-1), "n", "all") == -1


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_that_must_be_positive_is_refused_below_one(count):
    with pytest.raises(InvalidArgumentError, match=f"size must be greater than zero, got {count}"):
        positive(count, "size")


def test_a_count_is_refused_below_minus_one_with_what_that_stands_for():
    with pytest.raises(InvalidArgumentError, match=r"-1 for everything, got -2"):
        count_or_all(-2, "n", "everything")


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.batch(0),
        lambda d: d.batch(-1),
        lambda d: d.shuffle(0),
        lambda d: d.shuffle(-1),
        lambda d: d.take(-2),
        lambda d: d.repeat(-2),
        lambda d: d.prefetch(-2),
    ],
)
def test_every_operation_refuses_negative_counts(call):
    with pytest.raises(InvalidArgumentError, match="got"):
        call(Dataset.range(3))


@pytest.mark.parametrize("name", ["batch", "shuffle", "take", "repeat", "prefetch"])
@pytest.mark.parametrize("count", [1.5, "2", [1]])
def test_every_operation_refuses_what_is_no_integer(name, count):
    with pytest.raises(TypeError, match="must be an integer"):
        getattr(Dataset.range(3), name)(count)
