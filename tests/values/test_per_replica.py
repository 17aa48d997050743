"""A PerReplica is opaque outside of replicas: no array, no operators."""

from __future__ import annotations

import operator

import numpy as np
import pytest

from ringlet.context import Mode, Scope
from ringlet.values import PerReplica

VALUE = PerReplica([np.ones(2), np.zeros(2)])


@pytest.mark.parametrize(
    "use", [np.asarray, np.sum, lambda value: np.ones(2) * value, lambda value: value + np.ones(2)]
)
@pytest.mark.parametrize("replica", [None, 2])
def test_using_it_as_an_array_outside_of_its_replicas_says_what_to_do(use, replica):
    with Scope(Mode("strategy", replica)), pytest.raises(ValueError, match="PerReplica object as an array") as caught:
        use(VALUE)
    for remedy in ("strategy.run(fn, args=(value,))", "strategy.reduce(", "value.values"):
        assert remedy in str(caught.value)


@pytest.mark.parametrize(
    "use",
    [
        lambda value: value + 1,
        lambda value: 1 - value,
        operator.neg,
        lambda value: value < 1,
        lambda value: value[0],
        lambda value: value @ value,
        float,
        int,
        len,
        iter,
    ],
)
def test_it_has_no_operators(use):
    with pytest.raises(TypeError):
        use(VALUE)


def test_two_of_them_are_equal_only_if_identical():
    assert VALUE == VALUE  # noqa: PLR0124
    assert PerReplica([1]) != PerReplica([1])
