"""Calls of ufuncs: whose they are, what they cost, and how they run in threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import ringlet
from ringlet.errors import GatherError, GatherWarning, ShardingError
from ringlet.sharding import Mesh, ShardedArray, Sharding, explain, shard, strict
from ringlet.sharding.execution.device_threads import INLINE_BYTES
from ringlet.sharding.ops import ufuncs

VALUES = np.arange(12.0).reshape(4, 3)
ROWS, COLUMNS = Sharding.tiled((2, 1)), Sharding.tiled((1, 2))


class Foreign:
    """Somebody else's array."""

    __array_ufunc__ = None

    def __radd__(self, other):
        return "foreign"


class Taking:
    """Somebody else's array, with a way of its own."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return "taken"


def test_arrays_of_other_kinds_have_their_way():
    x = shard(VALUES, ROWS)
    assert x + Foreign() == "foreign"
    assert x + Taking() == "taken"
    assert np.add(x, x, out=Taking()) == "taken"


def test_variables_are_read():
    x, variable = shard(VALUES, ROWS), ringlet.Variable(np.full((4, 3), 2.0))
    for found in (x * variable, variable * x, np.multiply(x, variable)):
        assert type(found) is ShardedArray
        np.testing.assert_array_equal(found.numpy(), VALUES * 2)


def test_an_operation_that_moves_nothing_sends_nothing():
    with explain() as report:
        shard(VALUES, ROWS) + shard(VALUES, ROWS) * 2
    assert [operation.name for operation in report.operations] == ["multiply", "add"]
    assert report.nbytes == 0


def test_operands_that_lie_otherwise_are_sent():
    with explain() as report:
        y = shard(VALUES, ROWS) + shard(VALUES, COLUMNS)
    assert len(report.operations) == 1
    assert 0 < report.nbytes <= VALUES.nbytes
    np.testing.assert_array_equal(y.numpy(), VALUES * 2)


def test_plans_are_kept():
    x = shard(VALUES, ROWS)
    x - 3
    before = ufuncs._planned.cache_info()
    shard(VALUES + 1, Sharding.parse("{devices=[2,1]0,1}")) - 4
    after = ufuncs._planned.cache_info()
    assert (after.misses, after.hits) == (before.misses, before.hits + 1)


@pytest.mark.parametrize("sharding", [ROWS, COLUMNS, Sharding.replicated(2), Sharding.maximal(0, 2)])
def test_large_tiles_are_computed_in_threads_to_the_same_bits(sharding):
    values = np.random.default_rng(0).standard_normal((INLINE_BYTES // 32, 3))[:, ::-1]
    x, threads = shard(values.copy(), sharding), set()
    noted = np.frompyfunc(lambda value: threads.add(threading.get_ident()) or value, 1, 1)
    np.testing.assert_array_equal(np.tanh(x).numpy(), np.tanh(values))
    np.testing.assert_array_equal((x * values + x[:1]).numpy(), values * values + values[:1])
    noted(x[:: len(values) // 8])
    assert threads == {threading.get_ident()}  # of those, nothing is large
    x *= x[::-1]
    np.testing.assert_array_equal(x.numpy(), values * values[::-1])
    x -= x._whole[::-1]  # the memory that it has itself
    product = values * values[::-1]
    np.testing.assert_array_equal(x.numpy(), product - product[::-1])


@pytest.mark.parametrize("shape", [(2, 3, INLINE_BYTES // 8), (INLINE_BYTES // 8, 1), (1, INLINE_BYTES // 4)])
def test_large_arrays_of_any_shape_are_cut_in_runs_of_memory(shape):
    values, last = np.arange(np.prod(shape)).reshape(shape), np.arange(shape[-1])
    x, y = shard(values, Sharding.tiled((1,) * (len(shape) - 1) + (3,))), shard(last, Sharding.tiled((3,)))
    np.testing.assert_array_equal((x - y).numpy(), values - last)
    np.testing.assert_array_equal((x[..., :1] - y).numpy(), values[..., :1] - last)


def test_numpys_own_errors_come_through():
    x = shard(np.arange(4, dtype=np.uint8), Sharding.tiled((2,)))
    with pytest.raises(OverflowError, match="out of bounds"):
        x + 300
    with pytest.raises(ValueError, match="could not be broadcast together with shapes"):
        x + np.ones(3)
    with pytest.raises(TypeError, match="not supported"):
        np.sin(shard(np.array(["a", "b"]), Sharding.tiled((2,))))
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        1 / x
    with pytest.raises(ValueError, match="negative integer powers"):
        x.astype(int) ** -1


def test_what_has_no_tiled_form_is_gathered_with_a_warning(monkeypatch):
    monkeypatch.setattr(ufuncs, "handler_of", lambda ufunc, method: None)
    x, expected = shard(VALUES.copy(), ROWS), np.add.accumulate(VALUES)
    with pytest.warns(GatherWarning, match="np.add.accumulate gathers 96 B"):
        found = np.add.accumulate(x)
    np.testing.assert_array_equal(found, expected)
    out, plain = shard(np.zeros((4, 3)), ROWS), np.zeros((4, 3))
    for place in (out, plain):
        with pytest.warns(GatherWarning):
            assert np.add.accumulate(x, out=place) is place
    np.testing.assert_array_equal(out.numpy(), expected)
    np.testing.assert_array_equal(plain, expected)
    with pytest.warns(GatherWarning):
        half, whole = np.modf(x + 0.5, out=(None, out))
    assert whole is out
    assert half[0, 0] == 0.5
    with strict(), pytest.raises(GatherError):
        np.add.accumulate(x)


def test_text_is_elementwise_too():
    words = np.array(["ab", "c", "def"])
    x = shard(words, Sharding.tiled((2,)))
    assert np.strings.add(x, "!").tolist() == ["ab!", "c!", "def!"]
    assert (x == "c").tolist() == [False, True, False]
    assert np.strings.str_len(x).tolist() == [2, 1, 3]


def test_a_masked_array_keeps_its_mask():
    whole = np.arange(4.0)
    masked = np.ma.array(whole, mask=whole > 2)
    x = shard(whole, Sharding.tiled((2,)))
    for found in (lambda: x + masked, lambda: np.clip(x, masked, None)):
        with pytest.warns(GatherWarning):
            assert found().mask.tolist() == [False, False, False, True]


def test_a_matrix_is_refused_because_its_operators_mean_something_else():
    x = shard(np.eye(2), Sharding.tiled((2, 1)))
    with pytest.warns(PendingDeprecationWarning), pytest.raises(TypeError, match=r"np\.matrix: pass np\.asarray"):
        x * np.matrix([[1, 2], [3, 4]])


def test_out_on_the_devices_of_another_topology_is_refused():
    x, out = (shard(VALUES[:4], _mesh_in(name).sharding("x")) for name in ("v5litepod-4", "v2-8"))
    for call in (lambda: np.add(x, 1, out=out), lambda: np.add(x, out)):
        with pytest.raises(ShardingError, match="add was given arrays on different device groups"):
            call()


def _mesh_in(accelerator_type):
    topology = ringlet.tpu.Topology.from_accelerator_type(accelerator_type)
    shape = [1, 1, 1, topology.mesh_shape[-1]]
    return Mesh({"x": shape[-1]}, assignment=ringlet.tpu.DeviceAssignment.build(topology, shape, num_replicas=1))


@pytest.mark.parametrize("rows", [8, 9], ids=["parts in one block", "parts apart"])
def test_a_number_of_a_partial_array_is_scaled_by_its_own_parts(rows: int):
    sums = shard(np.arange(rows * 8.0).reshape(rows, 8), Sharding.tiled((8, 1))).sum(axis=0)
    assert float(sums[3] * 2 / 4) == (np.arange(rows) * 8 + 3).sum() / 2
