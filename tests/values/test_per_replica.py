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
    for remedy in ("strategy.run(fn, args=(value,))", "strategy.reduce(", "strategy.local_results(value)"):
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


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda value: value + 1, r"for \+: 'PerReplica' and 'int'"),
        (lambda value: 1 - value, "for -: 'int' and 'PerReplica'"),
        (lambda value: sum([value, value]), r"for \+: 'int' and 'PerReplica'"),
        (lambda value: value <= 0.5, "for <=: 'PerReplica' and 'float'"),
        (lambda value: value[0], "'PerReplica' object is not subscriptable"),
        (lambda value: f"{value:.3f}", "format string '.3f'"),
        (lambda value: value.mean(), "no attribute 'mean'"),
        (lambda value: value.numpy(), "no attribute 'numpy'"),
        (float, r"float\(\) does not take 'PerReplica'"),
        (len, r"len\(\) does not take 'PerReplica'"),
        (list, "'PerReplica' object is not iterable"),
    ],
)
def test_using_it_as_a_number_says_what_to_do(use, words):
    with pytest.raises((TypeError, AttributeError), match=words) as caught:
        use(VALUE)
    for remedy in (
        "strategy.run(fn, args=(value,))",
        "strategy.reduce('MEAN', value, axis=None)",
        "strategy.gather(value",
        "strategy.local_results(value) returns them as a tuple",
    ):
        assert remedy in str(caught.value)


def test_a_replica_computes_with_its_component():
    value = PerReplica([np.ones(2), np.zeros(2)])
    with Scope(Mode("strategy", 1)):
        for total in (value + np.ones(2), np.ones(2) + value, value + np.float64(1)):
            np.testing.assert_array_equal(total, [1, 1])


def test_it_is_true_has_no_foreign_attributes_and_is_not_iterable():
    assert VALUE
    assert f"{VALUE}" == str(VALUE)
    with pytest.raises(AttributeError, match=r"no attribute 'foo'$"):
        VALUE.foo  # noqa: B018
    assert not hasattr(VALUE, "shape")
    assert not np.iterable(VALUE)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="copy=False has another meaning")
def test_a_component_is_copied_if_and_only_if_this_is_asked_for():
    memory = np.ones(2)
    with Scope(Mode("strategy", 0)):
        assert not np.shares_memory(np.array(PerReplica([memoryview(memory)])), memory)
        assert np.shares_memory(np.array(PerReplica([memory]), copy=False), memory)
        with pytest.raises(ValueError, match="without a copy"):
            np.array(PerReplica([memory]), np.float32, copy=False)
