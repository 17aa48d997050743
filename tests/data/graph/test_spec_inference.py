"""Specs of values, None among them."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.data import Dataset, DatasetSpec, NoneTensorSpec, PerReplicaSpec, TensorSpec
from ringlet.data.graph.spec_inference import (
    check_compatible,
    common_spec,
    doubled,
    known_spec,
    row_spec,
    spec_of,
    without_sizes,
)
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.api.mirrored_strategy import MirroredStrategy

INT = TensorSpec([], np.int64)


def with_none(count=4):
    return Dataset.range(count).map(lambda x: (x, None))


def test_every_leaf_has_a_spec():
    datasets = np.empty(2, object)
    datasets[:] = [Dataset.range(3)] * 2
    assert spec_of(None) == NoneTensorSpec()
    assert spec_of(datasets) == DatasetSpec(INT, [2])
    assert row_spec(spec_of(datasets)) == DatasetSpec(INT)
    assert spec_of(np.array(["text"], object)) == TensorSpec([1], object)


def test_none_has_nothing_in_common_with_an_array():
    assert common_spec([NoneTensorSpec()] * 2) == NoneTensorSpec()
    with pytest.raises(TypeError, match="incompatible"):
        common_spec([NoneTensorSpec(), INT])
    with pytest.raises(TypeError, match="incompatible"):
        Dataset.from_tensors((1, None)).concatenate(Dataset.from_tensors((1, 2)))
    assert not INT.is_compatible_with(None)
    assert not NoneTensorSpec().is_compatible_with(INT)


# What a chain of operations makes of (0, None), (1, None), ...: the structure with None in it, and the first leaves.
CHAINS = [
    (lambda d: d.batch(2), [[0, 1], [2, 3]]),
    (lambda d: d.batch(2, num_parallel_calls=2), [[0, 1], [2, 3]]),
    (lambda d: d.batch(2).unbatch(), [0, 1, 2, 3]),
    (lambda d: d.batch(3).rebatch(2), [[0, 1], [2, 3]]),
    (lambda d: d.filter(lambda x, nothing: nothing is None and x > 1), [2, 3]),
    (lambda d: d.cache().repeat(2), [0, 1, 2, 3] * 2),
    (lambda d: d.prefetch(2).shard(2, 1), [1, 3]),
    (lambda d: d.map(lambda x, nothing: (x + 1, nothing), num_parallel_calls=2), [1, 2, 3, 4]),
    (lambda d: d.flat_map(lambda x, nothing: Dataset.from_tensors((x, nothing))), [0, 1, 2, 3]),
    (lambda d: d.concatenate(Dataset.from_tensors((9, None))), [0, 1, 2, 3, 9]),
    (lambda d: Dataset.choose_from_datasets([d, d], Dataset.range(2).repeat(2)), [0, 0, 1, 1]),
    (lambda d: d.take_while(lambda x, _: x < 2), [0, 1]),
    (lambda d: d.window(2).map(lambda x, nothing: (x.batch(2).get_single_element(), nothing)), [[0, 1], [2, 3]]),
    (lambda d: d.scan(0, lambda total, element: (total + element[0], (total, element[1]))), [0, 0, 1, 3]),
    (lambda d: d.ignore_errors(), [0, 1, 2, 3]),
]


@pytest.mark.parametrize(("chain", "values"), CHAINS)
@pytest.mark.parametrize(
    "source", [with_none, lambda: Dataset.from_tensor_slices((np.arange(4), None))], ids=["map", "table"]
)
def test_none_stays_in_its_place(chain, values, source):
    dataset = chain(source())
    elements = list(dataset)
    assert [np.asarray(x).tolist() for x, _ in elements] == values
    assert all(nothing is None for _, nothing in elements)
    assert dataset.element_spec[1] == NoneTensorSpec()


@pytest.mark.parametrize(("chain", "values"), CHAINS)
def test_a_state_is_restored_where_elements_hold_none(chain, values):
    dataset = chain(with_none())
    iterator, later = iter(dataset), iter(dataset)
    next(iterator)
    later.set_state(iterator.get_state())
    assert [(np.asarray(x).tolist(), nothing) for x, nothing in later] == [(value, None) for value in values[1:]]


def test_zip_and_enumerate_carry_none():
    pairs = Dataset.zip(Dataset.range(2), Dataset.from_tensors((1, None)).repeat())
    assert list(pairs) == [(0, (1, None)), (1, (1, None))]
    assert pairs.element_spec == (INT, (INT, NoneTensorSpec()))
    assert list(pairs.enumerate())[1] == (1, (1, (1, None)))


def test_a_shuffle_with_none_restores_its_buffer():
    dataset = with_none(6).shuffle(4, seed=2)
    iterator, later = iter(dataset), iter(dataset)
    next(iterator)
    later.set_state(iterator.get_state())
    assert list(later) == list(iterator)


def test_an_element_that_has_none_where_others_have_an_array_is_not_batched():
    with pytest.raises(InvalidArgumentError, match=r"component 1 \(element\[1\]\).* is None"):
        list(Dataset.range(2).map(lambda x: (x, None if x == 0 else x)).batch(2))


def test_none_is_not_padded():
    with pytest.raises(TypeError, match=r"element\[1\] is not an array: NoneTensorSpec"):
        Dataset.from_tensors((1, None)).padded_batch(2)


def test_a_generator_yields_none_where_its_signature_says_so():
    dataset = Dataset.from_generator(lambda: iter([(1, None)]), output_signature=(INT, NoneTensorSpec()))
    assert list(dataset) == [(1, None)]
    wrong = Dataset.from_generator(lambda: iter([(1, 2)]), output_signature=(INT, NoneTensorSpec()))
    with pytest.raises(InvalidArgumentError, match=r"expected NoneTensorSpec\(\), got 2"):
        list(wrong)
    with pytest.raises(TypeError, match="NoneTensorSpec"):
        Dataset.from_generator(lambda: iter([(1, None)]), output_types=(np.int64, None))


def test_each_replica_gets_none():
    strategy = MirroredStrategy(["cpu:0", "cpu:1"])
    distributed = strategy.experimental_distribute_dataset(
        Dataset.from_tensor_slices({"a": np.arange(5), "b": None}).batch(4)
    )
    assert distributed.element_spec["b"] == PerReplicaSpec(NoneTensorSpec(), NoneTensorSpec())
    first, second = list(distributed)
    assert first["b"].values == second["b"].values == (None, None)
    assert [part.tolist() for part in second["a"].values] == [[4], []]
    assert strategy.run(lambda batch: batch["b"], args=(first,)) is None
    dealt = strategy.distribute_datasets_from_function(lambda _: with_none(3).batch(2))
    assert [step[1].values for step in dealt] == [(None, None)]


INT64 = np.int64


@pytest.mark.parametrize(
    ("shapes", "common"),
    [
        ([[2], [2]], [2]),
        ([[2], [3]], [None]),
        ([[2, 3], [None, 3]], [None, 3]),
        ([[2], [2, 3]], None),
        ([None, [2]], None),
        ([[2], [3], [2]], [None]),
    ],
)
def test_sizes_that_differ_are_unknown(shapes, common):
    assert common_spec([TensorSpec(shape, INT64) for shape in shapes]) == TensorSpec(common, INT64)


@pytest.mark.parametrize(
    "other", [TensorSpec([2], np.float64), (TensorSpec([2], INT64),), {"a": TensorSpec([2], INT64)}]
)
def test_structures_and_dtypes_must_be_the_same(other):
    with pytest.raises(TypeError, match="incompatible"):
        common_spec([TensorSpec([2], INT64), other])


def test_functions_of_users_are_not_called_to_compare():
    check_compatible([Dataset.range(3).node, Dataset.range(3).map(lambda x: 1 / 0).node])
    with pytest.raises(TypeError):
        check_compatible([Dataset.range(3).node, Dataset.from_tensors("a").node])


def test_an_example_is_doubled_where_sizes_are_unknown():
    specs = (TensorSpec([None, 2], INT64), TensorSpec([2], INT64))
    first, second = doubled((np.ones((3, 2)), np.ones(2)), specs)
    assert (first.shape, second.shape) == ((6, 2), (2,))
    assert without_sizes(specs) == (TensorSpec([None, None], INT64), TensorSpec([None], INT64))
    assert without_sizes(TensorSpec(None, INT64)) == TensorSpec(None, INT64)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x + 1, None),
        (np.sum, ()),
        (lambda x: x @ np.ones(len(x), int) * x, [None]),
        (lambda x: np.zeros(3), [3]),
    ],
)
def test_nothing_is_inferred_from_one_example_of_an_unknown_number_of_dimensions(function, shape):
    rows = Dataset.from_generator(lambda: [[1], [2, 3]], np.int64)
    spec = rows.map(function).element_spec
    assert spec.shape == (None if shape is None else tuple(shape))
    assert rows.flat_map(lambda x: Dataset.from_tensors(function(x))).element_spec == spec


def test_known_specs_are_those_of_the_dataset():
    assert known_spec(Dataset.range(3).node) == INT
