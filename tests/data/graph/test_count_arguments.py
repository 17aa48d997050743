"""How counts are read."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import AUTOTUNE, Dataset
from ringlet.data.graph.count_arguments import count_or_all, positive
from ringlet.errors import InvalidArgumentError


def test_integers_of_numpy_are_counts():
    assert positive(np.int32(3), "n") == 3
    assert count_or_all(np.int64(-1), "n") == -1


@pytest.mark.parametrize("count", [0, -1])
def test_a_count_that_must_be_positive_is_refused_below_one(count):
    with pytest.raises(InvalidArgumentError, match=f"size must be greater than zero, got {count}"):
        positive(count, "size")


def test_any_negative_count_of_elements_means_all_of_them():
    assert [int(x) for x in Dataset.range(3).take(-2)] == [0, 1, 2]
    assert [int(x) for x in Dataset.range(3).skip(-5)] == []
    assert [int(x) for x in Dataset.range(2).repeat(-2).take(5)] == [0, 1, 0, 1, 0]
    assert Dataset.range(3).repeat(-2).cardinality() == -1
    assert Dataset.range(3).take(-5).cardinality() == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda d: d.batch(0),
        lambda d: d.batch(-1),
        lambda d: d.shuffle(0),
        lambda d: d.shuffle(-1),
        lambda d: d.prefetch(-2),
    ],
)
def test_every_operation_refuses_negative_counts(call):
    with pytest.raises(InvalidArgumentError, match="got"):
        call(Dataset.range(3))


def test_a_buffer_size_may_be_left_to_the_library():
    assert [int(x) for x in Dataset.range(3).prefetch(None)] == [0, 1, 2]


@pytest.mark.parametrize("name", ["batch", "shuffle", "take", "repeat", "prefetch"])
@pytest.mark.parametrize("count", [1.5, "2", [1]])
def test_every_operation_refuses_what_is_no_integer(name, count):
    with pytest.raises(TypeError, match="must be an integer"):
        getattr(Dataset.range(3), name)(count)


PARALLEL = pytest.mark.parametrize("call", [lambda d, **k: d.map(lambda x: x, **k), lambda d, **k: d.batch(2, **k)])


@PARALLEL
@pytest.mark.parametrize("num_parallel_calls", [None, AUTOTUNE, 1, np.int64(4)])
@pytest.mark.parametrize("deterministic", [None, True, False])
def test_results_of_parallel_calls_keep_their_order_unless_that_is_given_up(call, num_parallel_calls, deterministic):
    dataset = call(Dataset.range(6), num_parallel_calls=num_parallel_calls, deterministic=deterministic, name="n")
    found = np.concatenate([np.atleast_1d(x) for x in dataset]).tolist()
    assert (sorted(found) if deterministic is False else found) == list(range(6))


@PARALLEL
@pytest.mark.parametrize(("number", "error"), [(0, InvalidArgumentError), (-2, InvalidArgumentError), (1.5, TypeError)])
def test_parallel_calls_that_cannot_be_are_refused(call, number, error):
    with pytest.raises(error, match=f"num_parallel_calls must be .*got {number}"):
        call(Dataset.range(6), num_parallel_calls=number)


def test_operations_take_a_name_where_those_of_tensorflow_do():
    dataset = Dataset.range(3, name="a").repeat(1, name="b").shuffle(1, name="c")
    dataset = dataset.take(2, name="d").prefetch(1, name="e")
    assert [int(x) for x in dataset] == [0, 1]
    assert len(Dataset.from_tensor_slices([1, 2], name="f")) == 2
