"""What TPUStrategy.run refuses because TensorFlow's compiled functions take no variable without a name."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ringlet
from tests.strategy.tpu_systems import strategy_of

STRATEGY = strategy_of([1, 1, 1, 1], 2)
with STRATEGY.scope():
    VARIABLE = ringlet.Variable(1.5)


class Model:
    """A step function that is a method."""

    def step(self, x, y=0):
        return float(np.sum(x)) + y

    def __call__(self, x):
        return float(np.sum(x))


@pytest.mark.parametrize(
    ("fn", "args", "kwargs"),
    [
        (lambda x, y: x, (VARIABLE, 2), None),
        (lambda x, y: x, (VARIABLE,), {"y": VARIABLE}),
        (lambda x, *rest: x, (1, 2, 3), None),
        (lambda x, *rest: x, (VARIABLE,), None),
        (lambda x, /: x, (1,), None),
        (lambda x, *, y: x, (1,), {"y": 2}),
        (Model().step, (1, 2), None),
        (Model(), (1,), None),
        (functools.partial(lambda x, y: y, 1), (VARIABLE,), None),
        (np.sum, ([1, 2],), None),
        (dict, (), {"x": 1}),
        (ringlet.function(lambda x: x), (VARIABLE,), None),
    ],
)
def test_arguments_with_names_are_passed_on(fn, args, kwargs):
    STRATEGY.run(fn, args, kwargs)


@pytest.mark.parametrize(
    ("fn", "args", "message"),
    [
        (lambda: None, (1,), r"Too many positional arguments passed to call to TPUStrategy.run\(\): 1 .* takes 0"),
        (lambda x: x, (1, 2), "Too many positional arguments"),
        (Model().step, (1, 2, 3), "Too many positional arguments"),
        (lambda x, *, y=0: x, (1, 2), "Too many positional arguments"),
        (lambda x, *rest: x, (1, VARIABLE), r"cannot handle Variables passed to \*args"),
        (lambda *rest: rest, ([VARIABLE],), r"cannot handle Variables passed to \*args"),
        (lambda x, *rest: x, (VARIABLE, 1), "cannot handle both Variables and a mix of positional args"),
        (lambda x, /: x, (VARIABLE,), "1 in \\*args, expected zero for both"),
    ],
)
def test_arguments_without_names_are_refused_where_tensorflow_refuses_them(fn, args, message):
    with pytest.raises(ValueError, match=message):
        STRATEGY.run(fn, args)


def test_what_are_no_arguments_is_refused_as_by_other_strategies():
    with pytest.raises(ValueError, match="positional args must be a list or tuple"):
        STRATEGY.run(lambda x: x, 5)
