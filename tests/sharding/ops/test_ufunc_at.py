"""``ufunc.at`` with indices and values that are cut: NumPy's results, and no more bytes than have to be sent."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ringlet.errors import GatherError, GatherWarning, ShardingError
from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, mode, shard, strict
from ringlet.sharding.ops.ufunc_at import cost_of_gathering, is_in_bounds, scatter, scatter_of
from ringlet.testing import run_on_ranks

MESH = Mesh({"x": 4, "y": 2})
CUT = MESH.sharding(("x", "y"))
RANDOM = np.random.default_rng(0)
INDICES = RANDOM.integers(-5, 5, 400)
VALUES = RANDOM.integers(-9, 9, (400, 2))
UFUNCS = [np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.bitwise_or, np.bitwise_and, np.bitwise_xor]


def changed(ufunc, target, key, values):
    ufunc.at(target, key, values)
    return np.asarray(target)


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_a_plain_array_gets_the_results_of_all_devices_by_one_all_reduce(ufunc, memory):
    target, values = np.arange(10).reshape(5, 2), VALUES if ufunc is not np.multiply else VALUES % 3 - 1
    expected = changed(ufunc, target.copy(), INDICES, values)
    with mode(memory), strict(), explain() as report:
        found = changed(ufunc, target.copy(), shard(INDICES, CUT), shard(values, CUT))
    np.testing.assert_array_equal(found, expected)
    assert [(operation.name, len(operation.collectives)) for operation in report.operations] == [
        (f"{ufunc.__name__}.at", 1)
    ]
    assert report.counts == {"all-reduce": 1}
    assert report.nbytes == 2 * 7 * target.nbytes


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize("spec", [("x",), ("y", "x"), (None, "y"), ()])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "uint8", "complex64"])
def test_tiles_of_a_sharded_array_get_the_results_that_fall_on_them(dtype, spec, memory):
    target, values = np.arange(10).reshape(5, 2).astype(dtype), np.abs(VALUES).astype(dtype)
    with mode(memory), strict(), explain() as report:
        found = shard(target.copy(), MESH.sharding(*spec))
        np.subtract.at(found, shard(INDICES, CUT), shard(values, CUT))
    np.testing.assert_array_equal(np.asarray(found), changed(np.subtract, target, INDICES, values))
    assert found.sharding == MESH.sharding(*spec).for_ndim(2)
    assert report.nbytes <= 2 * 7 * target.nbytes


@given(st.data())
def test_any_indices_and_values_do_what_numpy_does(data):
    shape = data.draw(st.sampled_from([(3,), (4, 3), (2, 3, 4)]))
    count = data.draw(st.integers(1, len(shape)))
    forms = [(), (7,), (2, 5), (1, 5), (2, 1)]
    chosen = [data.draw(st.sampled_from(forms)) for _ in range(count)]
    try:
        taken = np.broadcast_shapes(*chosen)
    except ValueError:
        taken, chosen = (7,), [(7,)] * count
    key = tuple(RANDOM.integers(-size, size, form) for size, form in zip(shape, chosen, strict=False))
    whole = (*taken, *shape[count:])
    skipped = data.draw(st.integers(0, len(whole)))
    values = RANDOM.integers(-9, 9, [data.draw(st.sampled_from([1, size])) for size in whole[skipped:]])
    axes = [None, "x", "y", ("x", "y")]

    def placed(array):
        if not array.ndim or data.draw(st.booleans()):
            return array
        return shard(array, MESH.sharding(data.draw(st.sampled_from(axes)), *[None] * (array.ndim - 1)))

    ufunc, target = data.draw(st.sampled_from(UFUNCS)), RANDOM.integers(-9, 9, shape)
    # Repeated explicitly: NumPy 2.4 reads beyond the end of values that it repeats along dimensions of an index.
    expected = changed(ufunc, target.copy(), key, np.broadcast_to(values, whole))
    mine, indices, drawn = placed(target.copy()), tuple(map(placed, key)), placed(values)
    # Else it is NumPy's own call, which does not look for other arrays in a tuple.
    assume(any(isinstance(array, ShardedArray) for array in (mine, drawn)))
    found = changed(ufunc, mine, indices, drawn)
    np.testing.assert_array_equal(found, expected)


def test_floats_may_round_otherwise_and_keep_their_special_values():
    target = np.array([-0.0, 0.0, np.inf, np.nan, 1.0, -0.0])
    indices = np.array([0, 2, 3, 4, 4, 5, 0, 1] * 8)
    for values in (
        np.array([-0.0, -1, 2, 3, 1e-3, 0, -0.0, -0.0] * 8),
        np.array([0.0, -np.inf, 2, 3, 1, 0, 0, np.nan] * 8),
    ):
        for ufunc in (np.add, np.subtract, np.maximum):
            with np.errstate(invalid="ignore"):
                expected = changed(ufunc, target.copy(), indices, values)
                found = changed(ufunc, target.copy(), shard(indices, CUT), shard(values, CUT))
            np.testing.assert_allclose(found, expected, rtol=1e-14)
            assert np.signbit(found).tolist() == np.signbit(expected).tolist()


def test_truth_values_and_numbers_are_counted():
    is_there, counts = np.zeros(5, bool), np.zeros(5, np.int8)
    np.logical_or.at(is_there, shard(INDICES[:4], Sharding.tiled((4,))), True)
    np.add.at(counts, shard(INDICES, CUT), 1)
    np.testing.assert_array_equal(is_there, changed(np.logical_or, np.zeros(5, bool), INDICES[:4], True))
    np.testing.assert_array_equal(counts, changed(np.add, np.zeros(5, np.int8), INDICES, 1))


def test_few_indices_of_a_large_array_are_sent_rather_than_the_array():
    table, rows, gradient = np.zeros((1000, 4)), INDICES[:16], RANDOM.random((16, 4))
    with explain() as report:
        found = changed(np.add, table.copy(), shard(rows, CUT), shard(gradient, CUT))
    np.testing.assert_array_equal(found, changed(np.add, table, rows, gradient))
    assert report.counts == {"all-gather": 2}
    assert report.nbytes == 7 * (rows.nbytes + gradient.nbytes)


def test_what_takes_an_order_or_a_mask_is_refused_under_strict_for_a_plain_array():
    indices, values = shard(INDICES, CUT), shard(VALUES, CUT)
    for call in (
        lambda target: np.power.at(target, indices, values),
        lambda target: np.add.at(target, indices > 0, 1),
        lambda target: np.add.at(target, (slice(None), indices), 1),
    ):
        with strict(), pytest.raises(GatherError, match="gathers"):
            call(np.zeros((5, 400)))


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (np.array([0, 1, 2, 3, 9, -8, 1, 1] * 9), np.ones((72, 2))),
        (np.array([0, 1, 2, 3, -9, 8, 1, 1] * 9), 1.0),
        (np.arange(72) % 5, np.ones((71, 2))),
        (np.arange(72) % 5, np.ones((72, 3))),
        (np.arange(72) % 5 * 1.0, 1.0),
        ((np.arange(72) % 5, np.arange(72) % 3), 1.0),
    ],
)
@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.filterwarnings("ignore::ringlet.errors.GatherWarning")
def test_errors_are_those_of_numpy_and_come_before_anything_is_written(key, values, is_plain):
    with pytest.raises((IndexError, ValueError)) as expected:
        np.add.at(np.zeros((5, 2)), key, values)
    target = np.zeros((5, 2)) if is_plain else shard(np.zeros((5, 2)), MESH.sharding("x"))
    key = tuple(shard(each, CUT) for each in key) if isinstance(key, tuple) else shard(key, CUT)
    with pytest.raises(expected.type) as found:
        np.add.at(target, key, shard(values, CUT) if np.ndim(values) else values)
    if expected.type is IndexError:
        assert str(found.value) == str(expected.value)
    assert not np.asarray(target).any()


def test_arrays_that_are_not_written_to_are_refused():
    read_only = np.zeros((5, 2))
    read_only.flags.writeable = False
    with pytest.warns(GatherWarning), pytest.raises(ValueError, match="read-only"):
        np.add.at(read_only, shard(INDICES, CUT), shard(VALUES, CUT))


@pytest.mark.parametrize(
    ("ufunc", "dtype", "values", "is_exact"),
    [
        (np.add, "int64", VALUES - 0.5, False),  # each sum is cut off
        (np.maximum, "int8", VALUES * 40, False),  # each maximum wraps
        (np.add, "int8", VALUES * 40, True),
        (np.subtract, "uint8", VALUES * 40, True),
        (np.add, "float32", VALUES + 0.25, True),
        (np.add, "complex64", VALUES, True),
    ],
)
def test_results_are_rounded_to_the_dtype_of_the_array_one_by_one(ufunc, dtype, values, is_exact):
    target = np.ones((5, 2), dtype)
    expected = changed(ufunc, target.copy(), INDICES, values)
    with contextlib.nullcontext() if is_exact else pytest.warns(GatherWarning):
        found = changed(ufunc, target.copy(), shard(INDICES, CUT), shard(values, CUT))
    np.testing.assert_array_equal(found, expected)
    found = changed(ufunc, shard(target.copy(), MESH.sharding("x")), shard(INDICES, CUT), shard(values, CUT))
    np.testing.assert_array_equal(found, expected)


def test_processes_accumulate_what_they_have_and_refuse_indices_together():
    def work(member):
        mesh = Mesh({"x": 4}, member=member)
        indices, values = shard(INDICES, mesh.sharding("x")), shard(VALUES, mesh.sharding("x"))
        plain, cut = np.zeros((5, 2), int), shard(np.zeros((5, 2), int), mesh.sharding("x"))
        for target in (plain, cut):
            np.add.at(target, indices, values)
        beyond = np.where(np.arange(400) == 399, 5, 0)  # the last process has it
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
            np.add.at(plain, shard(beyond, mesh.sharding("x")), values)
        return plain.tolist(), np.asarray(cut).tolist()

    expected = changed(np.add, np.zeros((5, 2), int), INDICES, VALUES).tolist()
    assert run_on_ranks(2, work) == [(expected, expected)] * 2


def test_a_call_knows_what_it_sends():
    indices = shard(INDICES, CUT)
    call = scatter_of(np.add, np.zeros(5), indices, [1.0])
    assert (call.nbytes, cost_of_gathering([indices, 1.0])) == (2 * 7 * 40, 7 * INDICES.nbytes)
    assert is_in_bounds(call)
    assert not is_in_bounds(scatter_of(np.add, np.zeros(4), indices, [1.0]))
    with explain() as report:
        scatter(call)
    assert report.nbytes == call.nbytes


def test_arrays_on_different_devices_are_refused():
    with pytest.raises(ShardingError, match="different device"):
        np.add.at(shard(np.zeros(5), Sharding.tiled((2,))), shard(INDICES, CUT), 1)


@pytest.mark.parametrize("spec", [None, "x", "y"])
def test_values_repeated_along_the_index_are_added_once_for_each(spec):
    key, values = np.array([[0, 1, 0, 2, 0], [0, 1, 0, 0, 0]]), np.arange(5)
    for axis in ("x", None):
        total = np.zeros(3, int)
        np.add.at(total, shard(key, MESH.sharding(axis, None)), shard(values, MESH.sharding(spec)))
        assert total.tolist() == [15, 2, 3]
        total = shard(np.zeros(3, int), MESH.sharding(axis))
        np.add.at(total, key, values)
        assert np.asarray(total).tolist() == [15, 2, 3]


@pytest.mark.parametrize("key", [1.0, "a"])
def test_an_index_of_another_dtype_raises_numpys_error(key):
    with pytest.raises(IndexError, match="arrays used as indices must be of integer"):
        shard(np.zeros(6), Sharding.tiled((2,)))[np.array(key)] = [1, 2, 3]
