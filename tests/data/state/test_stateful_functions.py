"""Variables and generators of random numbers in the code of functions."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import ringlet
from ringlet.data.state.user_state import state_read_by

RNG = np.random.default_rng(0)


class Augment:
    def __init__(self):
        self.rng = random.Random(1)
        self.offset = 3

    def __call__(self, x):
        return self.shifted(x)

    def shifted(self, x):
        return x + self.rng.random()

    def moved(self, x):
        return x + self.offset

    @property
    def costly(self):
        raise AssertionError("code of properties does not run")

    def looked(self, x):
        return x + self.costly


def helper(x):
    return x + RNG.normal()


@functools.wraps(helper)
def wrapped(x):
    return helper(x)


def inner(x):
    return [RNG.normal() for _ in range(x)]


def default(x, rng=RNG):
    return rng.normal() + x


STATEFUL = [
    helper,
    wrapped,
    inner,
    default,
    Augment(),
    Augment().shifted,
    RNG.normal,
    functools.partial(lambda rng, x: rng.normal() + x, RNG),
    lambda x: helper(x) + 1,
    lambda x: random.random() + x,
]

STATELESS = [
    abs,
    np.sort,
    np.add,
    Augment().moved,
    Augment().looked,
    lambda x: np.random.default_rng(x).normal(),
    lambda x: random.Random(x).random(),
    lambda rng: rng + 1,
    lambda x: x.RNG,
    functools.partial(lambda y, x: x + y, 3),
]


@pytest.mark.parametrize("function", STATEFUL)
def test_generators_of_random_numbers_are_seen(function):
    assert "draws random numbers" in state_read_by(function)


@pytest.mark.parametrize("function", STATELESS)
def test_nothing_is_seen_where_there_is_nothing(function):
    assert state_read_by(function) is None


def test_variables_are_seen():
    variable = ringlet.Variable(1.0)
    assert state_read_by(lambda x: x + variable) == "it reads the variable variable"
