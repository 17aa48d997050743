"""strategy.reduce: operations, axes, and values that are not distributed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ringlet
from ringlet.errors import InvalidArgumentError
from ringlet.strategy.calls.reduce_semantics import parse_reduce_op
from ringlet.values import Mirrored, PerReplica
from tests.strategy.replicas import replica_id

STRATEGIES = {n: ringlet.MirroredStrategy([f"CPU:{i}" for i in range(n)]) for n in (1, 2, 3)}
TWO = STRATEGIES[2]

# Integers as floats: sums are exact whatever their order.
exact = st.integers(-(2**20), 2**20)
sizes = st.lists(st.integers(0, 5), min_size=1, max_size=3)


@pytest.mark.parametrize("op", [ringlet.ReduceOp.SUM, "SUM", "sum", "Sum"])
def test_operations_are_named_in_any_case(op):
    assert parse_reduce_op(op) is ringlet.ReduceOp.SUM


@pytest.mark.parametrize("op", ["MIN", "", "PROD"])
@pytest.mark.parametrize("axis", [None, 0])
def test_an_unknown_name_is_refused(op, axis):
    with pytest.raises(ValueError, match=f"'{op}' is not a valid ReduceOp"):
        TWO.reduce(op, PerReplica([1.0, 2.0]), axis=axis)


@pytest.mark.parametrize("op", [None, 3, ringlet.collectives.Op.SUM])
@pytest.mark.parametrize("axis", [None, 0])
def test_an_invalid_operation_is_refused(op, axis):
    with pytest.raises(TypeError, match="Expected `reduce_op` to be a ReduceOp"):
        TWO.reduce(op, PerReplica([1.0, 2.0]), axis=axis)


@given(rows=hnp.arrays(np.int64, st.tuples(st.sampled_from(list(STRATEGIES)), st.integers(0, 9)), elements=exact))
def test_without_an_axis_components_are_combined_element_by_element(rows):
    strategy = STRATEGIES[len(rows)]
    value = PerReplica(list(rows.astype(np.float64)))
    np.testing.assert_array_equal(strategy.reduce("SUM", value, axis=None), rows.sum(axis=0))
    np.testing.assert_allclose(strategy.reduce("MEAN", value, axis=None), rows.mean(axis=0), rtol=1e-15)


@given(sizes=sizes, data=st.data())
def test_over_an_axis_every_element_weighs_the_same(sizes, data):
    parts = [data.draw(hnp.arrays(np.int64, (size, 2), elements=exact)).astype(np.float64) for size in sizes]
    strategy, value, together = STRATEGIES[len(sizes)], PerReplica(parts), np.concatenate(parts)
    np.testing.assert_array_equal(strategy.reduce("SUM", value, axis=0), together.sum(axis=0))
    with np.errstate(invalid="ignore"):
        expected = together.sum(axis=0) / np.float64(len(together))
    np.testing.assert_allclose(strategy.reduce("MEAN", value, axis=0), expected, rtol=1e-15)


def test_no_elements_at_all_have_no_mean_and_give_no_warning():
    assert np.isnan(TWO.reduce("MEAN", PerReplica([np.zeros(0), np.zeros(0)]), axis=0))
    assert np.isnan(TWO.reduce("MEAN", PerReplica([np.zeros(0, int), np.zeros(0, int)]), axis=0))


@pytest.mark.parametrize(
    ("axis", "result"), [(0, [4, 6]), (-1, [3, 7]), ((0, 1), 10), ((1,), [3, 7]), (0.0, [4, 6]), (np.int64(1), [3, 7])]
)
def test_axes_count_from_either_end_and_may_be_several(axis, result):
    value = PerReplica([np.array([[1, 2], [3, 4]]), np.zeros((2, 2), int)])
    assert TWO.reduce("SUM", value, axis=axis).tolist() == result


@pytest.mark.parametrize("axis", ["0", [0, 1], 0.5, (0, "1"), {0}, True, (False,)])
def test_an_axis_of_another_type_is_refused(axis):
    with pytest.raises(TypeError, match=r"axis must be None, an int or a tuple of ints, got .* such as \(0, 1\)"):
        TWO.reduce("SUM", PerReplica([np.ones((2, 2))] * 2), axis=axis)


@pytest.mark.parametrize("axis", [2, -3, (0, 2)])
def test_an_axis_that_is_not_there_is_refused(axis):
    with pytest.raises(InvalidArgumentError, match=r"axis is -?\d, but the array has ndim 2: expected -2"):
        TWO.reduce("SUM", PerReplica([np.ones((2, 2))] * 2), axis=axis)


def test_an_axis_that_is_named_twice_is_refused():
    with pytest.raises(InvalidArgumentError, match=r"axis is \(0, -2\), .* of shape \(2, 2\) twice"):
        TWO.reduce("SUM", PerReplica([np.ones((2, 2))] * 2), axis=(0, -2))


@pytest.mark.parametrize(("dtype", "mean_dtype"), [("int32", "float64"), ("int64", "float64"), ("float32", "float32")])
def test_means_have_a_dtype_that_can_hold_them(dtype, mean_dtype):
    value = PerReplica([np.array([1, 2], dtype), np.array([2], dtype)])
    assert TWO.reduce("MEAN", value, axis=0).dtype == mean_dtype
    assert TWO.reduce("SUM", value, axis=0).dtype == dtype


def test_results_refuse_to_be_written_to():
    value = PerReplica([np.ones(2), np.ones(2)])
    for op, axis in (("SUM", None), ("MEAN", None), ("SUM", 0), ("MEAN", 0)):
        assert not TWO.reduce(op, value, axis=axis).flags.writeable


def test_one_replica_without_an_axis_gives_the_value_itself():
    value = np.ones(2, np.int8)
    assert STRATEGIES[1].reduce("MEAN", PerReplica([value]), axis=None) is value
    assert STRATEGIES[1].reduce("SUM", "text", axis=None) == "text"


def test_structures_are_reduced_leaf_by_leaf():
    value = {"a": PerReplica([np.ones(2), np.ones(2)]), "b": [PerReplica([1.5, 2.5])]}
    result = TWO.reduce("SUM", value, axis=None)
    assert (result["a"].tolist(), float(result["b"][0])) == ([2, 2], 4)


def test_a_mirrored_value_is_its_own_mean_and_has_no_sum():
    value = Mirrored([np.array([1.0, 2.0])] * 2)
    assert TWO.reduce("MEAN", value, axis=None) is value.values[0]
    with pytest.raises(ValueError, match=r"a Mirrored cannot be reduced .* ReduceOp.SUM: it is the same on all 2"):
        TWO.reduce("SUM", value, axis=None)
    assert STRATEGIES[1].reduce("SUM", Mirrored([2.5]), axis=None) == 2.5


@pytest.mark.parametrize(("op", "expected"), [("SUM", 3), ("MEAN", 1.5)])
def test_in_a_structure_the_components_of_mirrored_values_are_combined(op, expected):
    with TWO.scope():
        v = ringlet.Variable(0.0)
    TWO.run(lambda: v.assign(float(replica_id() + 1)))
    for mirrored_value in (v, Mirrored([1.0, 2.0])):
        assert float(TWO.reduce(op, {"b": mirrored_value}, axis=None)["b"]) == expected
        (moved,) = TWO.extended.reduce_to(op, [mirrored_value], "CPU:0")
        assert float(moved) == expected


def test_components_that_are_structures_are_reduced_leaf_by_leaf():
    result = TWO.reduce("SUM", PerReplica([{"x": 1.0, "y": (2,)}, {"x": 3.0, "y": (4,)}]), axis=None)
    assert (float(result["x"]), int(result["y"][0])) == (4, 6)


# --- plain values ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [5, 2.5, "text", None, np.array([1.0, 2.0])], ids=repr)
def test_the_mean_of_a_plain_value_is_itself(value):
    assert TWO.reduce("MEAN", value, axis=None) is value


@pytest.mark.parametrize("value", [0, 0.0, np.zeros(2), np.float32(0)], ids=repr)
def test_the_sum_of_plain_zeros_is_zero(value):
    assert TWO.reduce("SUM", value, axis=None) is value


@pytest.mark.parametrize("value", [5, 2.5, "text", None, np.array([1.0, 2.0])], ids=repr)
def test_the_sum_of_another_plain_value_is_refused(value):
    with pytest.raises(ValueError, match=r"A non-DistributedValues value .* ReduceOp\.SUM.*num_replicas_in_sync"):
        TWO.reduce("SUM", value, axis=None)


@pytest.mark.parametrize("count", [10, 2.5])
def test_the_remedy_for_equal_numbers_of_a_step_is_named(count):
    with pytest.raises(ValueError, match=r"one object in Python: return np\.asarray\(count\) from the step"):
        TWO.reduce("SUM", TWO.run(lambda: count), axis=None)
    assert TWO.reduce("SUM", TWO.run(lambda: np.asarray(count)), axis=None) == 2 * count


def test_over_an_axis_a_plain_value_counts_once_for_each_replica():
    assert TWO.reduce("SUM", np.array([1.0, 2.0]), axis=0) == 6
    assert TWO.reduce("MEAN", np.array([1.0, 2.0]), axis=0) == 1.5


# --- bad components -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "components",
    [
        (np.ones(2), np.ones(3)),
        (np.ones(2), np.ones((2, 1))),
        (np.ones(2), np.ones(2, np.float32)),
        ("a", "b"),
        (None, None),
    ],
    ids=["sizes", "dimensions", "dtypes", "text", "none"],
)
def test_components_that_cannot_be_combined_are_refused(components):
    with pytest.raises(InvalidArgumentError):
        TWO.reduce("SUM", PerReplica(components), axis=None)


def test_text_has_no_sum_over_an_axis():
    with pytest.raises(TypeError, match="cannot add along an axis"):
        TWO.reduce("SUM", PerReplica([np.array(["a"]), np.array(["b"])]), axis=0)


@pytest.mark.parametrize("axis", [None, 0])
def test_components_of_another_strategy_are_refused(axis):
    with pytest.raises(ValueError, match="with 3 components cannot be reduced over 2 replicas"):
        TWO.reduce("SUM", PerReplica([np.ones(1)] * 3), axis=axis)


@pytest.mark.parametrize("axis", [None, 0])
def test_a_mask_is_not_lost_in_silence(axis):
    masked = np.ma.MaskedArray([1.0, 99.0], mask=[False, True])
    with pytest.raises(InvalidArgumentError, match=r"masked array.*x\.filled"):
        TWO.reduce("SUM", PerReplica([masked, masked]), axis=axis)


# --- slices of variables --------------------------------------------------------------------------------------------


def slices_of(number: int) -> ringlet.IndexedSlices:
    return ringlet.IndexedSlices(np.full((1, 2), 3.0 * number), np.array([number]), (9, 2))


@pytest.mark.parametrize("num_replicas", [2, 3])
@pytest.mark.parametrize(("op", "divisor"), [("SUM", 1), ("MEAN", None)])
def test_slices_are_combined_by_putting_their_rows_behind_each_other(num_replicas, op, divisor):
    strategy = STRATEGIES[num_replicas]
    value = PerReplica([slices_of(number) for number in range(num_replicas)])
    rows = [[3.0 * number / (divisor or num_replicas)] * 2 for number in range(num_replicas)]

    def step(x: Any) -> Any:
        return ringlet.get_replica_context().all_reduce(op, {"table": x, "bias": np.ones(2)})

    everywhere = strategy.run(step, args=(value,))
    assert [part.tolist() for part in everywhere["bias"].values] == [[num_replicas / (divisor or num_replicas)] * 2] * (
        num_replicas
    )
    for result in (strategy.reduce(op, value, axis=None), *everywhere["table"].values):
        np.testing.assert_allclose(result.values, rows)
        assert result.indices.tolist() == list(range(num_replicas))
        assert result.dense_shape == (9, 2)


def test_one_replica_gets_its_slices_back():
    slices = slices_of(1)
    step = STRATEGIES[1].run(lambda: ringlet.get_replica_context().all_reduce("SUM", [slices, 2.5]))
    assert step[0] is slices
    assert STRATEGIES[1].reduce("SUM", PerReplica([slices]), axis=None) is slices


def test_slices_on_some_replicas_only_are_an_error():
    def step() -> Any:
        replica = ringlet.get_replica_context()
        return replica.all_reduce("SUM", slices_of(1) if replica.replica_id_in_sync_group == 0 else np.ones((1, 2)))

    with pytest.raises(ringlet.errors.CollectiveMismatchError):
        TWO.run(step)
    with pytest.raises(InvalidArgumentError):
        TWO.reduce("SUM", PerReplica([slices_of(1), np.ones((1, 2))]), axis=None)


def test_slices_cannot_be_written_to_out():
    with pytest.raises(InvalidArgumentError, match="IndexedSlices"):
        TWO.run(lambda: ringlet.get_replica_context().all_reduce("SUM", slices_of(1), out=np.ones((2, 2))))


def test_structures_inside_of_components_are_reduced_leaf_by_leaf_along_axes():
    value = PerReplica(
        [{"a": np.array([1, 2]), "b": (np.ones((2, 2)),)}, {"a": np.array([3]), "b": (np.ones((1, 2)),)}]
    )
    total = TWO.reduce("SUM", value, axis=0)
    assert (total["a"].tolist(), total["b"][0].tolist()) == (6, [3, 3])
    assert TWO.reduce("MEAN", [value], axis=0)[0]["a"] == 2


@pytest.mark.parametrize("axis", [None, 0])
def test_components_that_are_different_structures_are_refused_and_shown(axis):
    value = PerReplica([{"a": np.ones(1)}, {"b": np.ones(1)}])
    with pytest.raises(
        ValueError, match=r"reduce got different structures: replica 0 has \{'a': \*\}, replica 1 has \{'b': \*\}"
    ):
        TWO.reduce("SUM", value, axis=axis)
