"""``strategy.gather`` and ``all_gather``: concatenation of the arrays of all replicas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ringlet
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.values import Mirrored, PerReplica
from tests.strategy.replicas import assert_usable, mirrored, replica, replica_id

STRATEGIES = {n: mirrored(n) for n in (1, 2, 3, 8)}
TWO = STRATEGIES[2]


def both_ways(strategy: ringlet.Strategy, value: Any, axis: int) -> list[Any]:
    """Return the result of gather, and that of all_gather on every replica."""
    everywhere = strategy.run(lambda x: replica().all_gather(x, axis), args=(value,))
    return [strategy.gather(value, axis), *strategy.experimental_local_results(everywhere)]


@pytest.mark.parametrize("num_replicas", STRATEGIES)
@given(data=st.data())
def test_arrays_are_joined_in_replica_order(num_replicas, data):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=3))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    place = axis % len(shape)
    arrays = []
    for number in range(num_replicas):
        size = data.draw(st.integers(0, 3))
        arrays.append(np.full((*shape[:place], size, *shape[place + 1 :]), number))
    for result in both_ways(STRATEGIES[num_replicas], PerReplica(arrays), axis):
        np.testing.assert_array_equal(result, np.concatenate(arrays, axis))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "complex64", "U3", "O", "M8[s]"])
def test_every_dtype_is_gathered(dtype):
    arrays = [np.array([0, 1], "i8").astype(dtype), np.array([1], "i8").astype(dtype)]
    for result in both_ways(TWO, PerReplica(arrays), 0):
        assert result.dtype == arrays[0].dtype
        assert result.tolist() == [*arrays[0].tolist(), *arrays[1].tolist()]
        assert not result.flags.writeable


def test_structures_are_gathered_leaf_by_leaf():
    value = {"p": PerReplica([np.array([0]), np.array([1])]), "q": [PerReplica([np.zeros((1, 2)), np.ones((0, 2))])]}
    for result in both_ways(TWO, value, 0):
        assert result["p"].tolist() == [0, 1]
        assert result["q"][0].tolist() == [[0, 0]]
    inside = PerReplica([{"p": np.array([0])}, {"p": np.array([1])}])
    assert TWO.gather(inside, -1)["p"].tolist() == [0, 1]


@pytest.mark.parametrize("structure", [{}, [], ()])
def test_an_empty_structure_is_gathered_by_all_together(structure):
    assert TWO.run(lambda: replica().all_gather(structure, 0)) == structure


def test_plain_values_are_gathered_as_they_are():
    array = np.ones((1, 2))
    assert TWO.gather(array, axis=0) is array
    assert STRATEGIES[1].gather(PerReplica([array]), axis=7) is array
    assert ringlet.get_strategy().gather(array, axis=0) is array


def test_one_replica_gathers_its_own_values():
    result = STRATEGIES[1].run(lambda: replica().all_gather({"x": 2.5}, axis=3))
    assert (result["x"].shape, float(result["x"]), result["x"].flags.writeable) == ((), 2.5, False)
    assert replica().all_gather(np.array(["text"]), 0).tolist() == ["text"]


@pytest.mark.parametrize(
    ("components", "axis"),
    [
        ([np.zeros(()), np.zeros(())], 0),
        ([np.zeros(2), np.zeros((2, 2))], 0),
        ([np.zeros((1, 2)), np.zeros((1, 3))], 0),
        ([np.zeros((1, 2)), np.zeros((2, 2))], 1),
        ([np.zeros(2), np.zeros(2)], 1),
        ([np.zeros(2), np.zeros(2)], -2),
        ([np.zeros(2), np.zeros(2)], "0"),
    ],
)
def test_arrays_that_cannot_be_joined_are_refused(components, axis):
    with pytest.raises(InvalidArgumentError, match="axis"):
        TWO.gather(PerReplica(components), axis)
    with pytest.raises((InvalidArgumentError, CollectiveMismatchError), match=r"axis|shape|float64"):
        TWO.run(lambda x: replica().all_gather(x, axis), args=(PerReplica(components),))
    assert_usable(TWO)


def test_dtypes_that_differ_are_refused_and_shown():
    value = PerReplica([np.zeros(2, "f4"), np.zeros(3, "f8")])
    with pytest.raises(InvalidArgumentError, match=r"replica 0 has float32\[2\], but replica 1 has float64\[3\]"):
        TWO.gather(value, 0)
    with pytest.raises(CollectiveMismatchError):
        TWO.run(lambda x: replica().all_gather(x, 0), args=(value,))
    assert_usable(TWO)


def test_gathering_different_structures_is_an_error():
    with pytest.raises(CollectiveMismatchError, match="all_gather with different structures"):
        TWO.run(lambda: replica().all_gather({f"k{replica_id()}": np.ones(1)}, 0))
    with pytest.raises(CollectiveMismatchError):
        TWO.run(lambda: replica().all_gather([np.ones(1)] * (replica_id() + 1), 0))
    assert_usable(TWO)


def test_a_replica_that_does_not_gather_releases_the_others():
    with pytest.raises(CollectiveMismatchError):
        TWO.run(lambda: replica().all_gather(np.ones(1), 0) if replica_id() == 0 else None)
    assert_usable(TWO)


def test_gather_belongs_outside_of_replicas():
    with pytest.raises(RuntimeError, match=r"gather of .* requires cross-replica context.*all_gather\(\)"):
        TWO.run(lambda: TWO.gather(np.ones(1), axis=0))
    with STRATEGIES[3].scope(), pytest.raises(RuntimeError, match="Mixing"):
        TWO.gather(PerReplica([1, 2]), axis=0)


def test_all_gather_belongs_inside_of_its_replica():
    saved: list[ringlet.ReplicaContext] = []
    TWO.run(lambda: saved.append(replica()))
    with pytest.raises(RuntimeError, match="Mismatch"):
        saved[0].all_gather(np.ones(1), 0)


def test_a_value_of_another_number_of_replicas_is_refused():
    with pytest.raises(ValueError, match="3 components cannot be reduced over 2"):
        TWO.gather(PerReplica([1, 2, 3]), axis=0)


def test_slices_are_refused():
    class Slices:
        values = np.ones((1, 2))
        indices = np.array([0])

    for value in (Slices(), {"x": Slices()}, PerReplica([Slices(), Slices()])):
        with pytest.raises(NotImplementedError, match=r"^gather does not support IndexedSlices"):
            TWO.gather(value, axis=0)
    with pytest.raises(NotImplementedError, match=r"^all_gather does not support IndexedSlices"):
        TWO.run(lambda: replica().all_gather(Slices(), axis=0))


def test_mirrored_values_are_gathered_like_any_other():
    assert TWO.gather(Mirrored([np.array([1]), np.array([1])]), axis=0).tolist() == [1, 1]


def test_structures_inside_of_components_are_gathered_leaf_by_leaf():
    value = PerReplica([{"a": np.array([1, 2]), "b": (np.ones(1),)}, {"a": np.array([3]), "b": (np.ones(2),)}])
    for result in both_ways(TWO, value, 0):
        assert (result["a"].tolist(), result["b"][0].tolist()) == ([1, 2, 3], [1, 1, 1])


def test_components_that_are_different_structures_are_refused_and_shown():
    with pytest.raises(
        ValueError, match=r"gather got different structures: replica 0 has \{'a': \*\}, replica 1 has \[\*\]"
    ):
        TWO.gather(PerReplica([{"a": np.ones(1)}, [np.ones(1)]]), axis=0)


def test_slices_inside_of_components_are_refused():
    slices = {"s": ringlet.IndexedSlices(np.ones((1, 2)), np.array([0]))}
    with pytest.raises(NotImplementedError, match="gather does not support IndexedSlices"):
        TWO.gather(PerReplica([slices, slices]), axis=0)
