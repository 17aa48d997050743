"""Movements carried out: the values are the same in every layout, however memory is held."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.collectives import Op
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, explain, shard
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.memory_modes import current_mode, mode
from ringlet.sharding.resharding.device_buffers import buffers_for
from ringlet.sharding.resharding.reshard import materialized, redistribute, reshard
from ringlet.sharding.resharding.reshard_plan import plan_reshard
from ringlet.sharding.sharded_array import ShardedArray
from ringlet.testing import run_on_ranks
from tests.sharding.every_layout import MESHES, layouts, pairs
from tests.sharding.sweep import assemble, poisoned

MODES = ("shared", "copy")


def laid_out(
    values: np.ndarray, layout: Layout, combine: Op = Op.SUM, group: DeviceGroup | None = None
) -> ShardedArray:
    """An array whose parts, if there are several, are `values` times 1, 2, …; what a device has not got is unknown."""
    group = group or DeviceGroup.of(layout.num_devices)
    boxes = layout.boxes(values.shape)

    def buffer(device: int) -> np.ndarray:
        made = np.full(values.shape, -77, values.dtype)
        part = layout.parts.tile_of(device)
        sharing = [device] if current_mode() == "copy" else group.local_devices
        for each in sharing:
            if layout.parts.tile_of(each) == part:
                made[boxes[each]] = values[boxes[each]] * (part + 1)
        return made

    return ShardedArray._build(buffers_for(layout, group, buffer), layout, group, combine)


def expected(values: np.ndarray, layout: Layout) -> np.ndarray:
    count = layout.parts.count
    return values * (count * (count + 1) // 2)


def check(values: np.ndarray, x: ShardedArray, target: Layout) -> None:
    """Each device of this process has its box of the values; those of parts that it has itself."""
    moved = redistribute(x, target)
    assert (moved._layout, moved.shape, moved.dtype) == (target, x.shape, x.dtype)
    boxes = target.boxes(values.shape)
    for device in set(target.holders) & set(x._group.local_devices):
        part = target.parts.tile_of(device)
        is_kept = x._layout.parts == target.parts and target.is_partial
        wanted = values * (part + 1) if is_kept else expected(values, x._layout) * (part == 0)
        np.testing.assert_array_equal(moved._tile(device), wanted[boxes[device]])


@pytest.mark.parametrize("memory", MODES)
@pytest.mark.parametrize("mesh", MESHES)
def test_values_are_the_same_in_every_layout(mesh, memory):
    values = np.arange(8 * 12 * 6).reshape(8, 12, 6)
    with mode(memory), poisoned():
        for source, target in pairs(mesh, 3, 400):
            check(values, laid_out(values, source), target)


@pytest.mark.parametrize("memory", MODES)
@pytest.mark.parametrize("owner", [(0, 0, 1, 1), (1, 0, 1, 1), (0, 1, 2, 1)])
def test_values_are_the_same_whichever_process_has_which_devices(owner, memory):
    values = np.arange(7 * 5).reshape(7, 5)

    def step(member):
        group = DeviceGroup(4, tuple("abcd"), member, owner)
        with mode(memory), poisoned():
            for source, target in pairs((2, 2), 2, 60):
                check(values, laid_out(values, source, group=group), target)

    run_on_ranks(max(owner) + 1, step)


@pytest.mark.parametrize("memory", MODES)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 0), (5, 1)])
def test_empty_and_tiny_arrays_move_like_any_other(shape, memory):
    values = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1
    with mode(memory), poisoned():
        for source in layouts((2, 2), len(shape)):
            for target in layouts((2, 2), len(shape)):
                check(values, laid_out(values, source), target)


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int8", "bool", "uint64", "M8[s]", "U3"])
def test_every_dtype_moves(dtype):
    values = np.arange(12).reshape(4, 3).astype(dtype)
    rows, columns = Layout(2, (Cut(2, (0, 1)), WHOLE)), Layout(2, (WHOLE, Cut(2, (1, 0))))
    with mode("copy"):
        moved = redistribute(ShardedArray(values, Sharding.tiled((2, 1))), columns)
        np.testing.assert_array_equal(assemble(redistribute(moved, rows)), values)


@pytest.mark.parametrize("memory", MODES)
@pytest.mark.parametrize("op", [Op.SUM, Op.MAX, Op.MIN, Op.PROD])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_parts_are_combined_to_the_same_bits_wherever_they_are_wanted(dtype, op, memory):
    values = (np.random.default_rng(1).standard_normal((5, 7)) * 4).astype(dtype)
    source = Layout(8, (WHOLE, WHOLE), parts=Cut(8, tuple(range(8))))
    with mode(memory):
        whole = assemble(materialized(laid_out(values, source, op)))
        for target in layouts((4, 2), 2):
            if not target.is_partial:
                moved = redistribute(laid_out(values, source, op), target)
                np.testing.assert_array_equal(assemble(moved), whole)


def test_parts_are_combined_once():
    x = laid_out(np.arange(4.0), Layout(2, (WHOLE,), parts=Cut(2, (0, 1))))
    with explain() as report:
        first = materialized(x)
        assert materialized(x) is first
        redistribute(x, Layout(2, (Cut(2, (0, 1)),)))
    assert report.counts == {"all-reduce": 1}


def test_what_was_scattered_is_gathered_where_all_of_it_is_wanted():
    x = laid_out(np.arange(4.0), Layout(2, (WHOLE,), parts=Cut(2, (0, 1))))
    with explain() as report:
        redistribute(x, Layout(2, (Cut(2, (0, 1)),)))
        redistribute(x, Layout.replicated(2, 1))
    assert report.counts == {"reduce-scatter": 1, "all-gather": 1}


def test_where_memory_is_shared_nothing_is_copied():
    whole = np.arange(8).reshape(2, 4)
    x = ShardedArray(whole, Sharding.tiled((2, 1)))
    for sharding in [Sharding.tiled((1, 2)), Sharding.replicated(2), Sharding.maximal(1, 2)]:
        assert np.shares_memory(reshard(x, sharding)._whole, whole)


@pytest.mark.parametrize("memory", MODES)
def test_what_is_written_afterwards_does_not_show_in_what_was_moved(memory):
    with mode(memory):
        x = ShardedArray(np.arange(4), Sharding.tiled((2,)))
        y = reshard(x, Sharding.replicated(2))
        x[...] = 9
        assert assemble(y).tolist() == [0, 1, 2, 3]
        y[1] = 5
        assert (assemble(x).tolist(), assemble(y).tolist()) == ([9] * 4, [0, 5, 2, 3])


@pytest.mark.parametrize("memory", MODES)
def test_what_comes_from_an_array_that_cannot_be_written_to_is_moved_all_the_same(memory):
    values = np.broadcast_to(np.arange(4), (4, 4))
    with mode(memory):
        x = ShardedArray(values, Sharding.tiled((2, 1)))
        assert assemble(reshard(x, Sharding.tiled((1, 2)))).tolist() == values.tolist()


def test_what_is_on_one_device_and_cannot_be_written_to_is_moved_all_the_same():
    with mode("copy"):
        x = ShardedArray(np.arange(8).reshape(2, 4), Sharding.maximal(1, 2)).T
        assert assemble(reshard(x, Sharding.tiled((2, 1)))).tolist() == np.arange(8).reshape(2, 4).T.tolist()


def test_what_one_device_had_stays_as_it_was_when_that_is_written_to():
    def step(member):
        group = DeviceGroup(2, ("a", "b"), member, (0, 0))
        with mode("copy"):
            x = laid_out(np.arange(4), Layout(2, (WHOLE,), only=0), group=group)
            y = redistribute(x, Layout.replicated(2, 1))
            x[...] = 9
            return [y._tile(device).tolist() for device in range(2)]

    assert run_on_ranks(1, step) == [[[0, 1, 2, 3]] * 2]


def test_resharding_is_one_operation_of_a_report():
    x = ShardedArray(np.arange(8.0).reshape(2, 4), Sharding.tiled((2, 1)))
    with explain() as report:
        reshard(x, Sharding.tiled((1, 2)))
        reshard(x, Sharding.tiled((2, 1)))
    assert [(operation.name, operation.nbytes) for operation in report.operations] == [("reshard", 32), ("reshard", 0)]


def test_a_sharding_of_a_mesh_is_taken_too():
    mesh = Mesh({"x": 2, "y": 2})
    x = ShardedArray(np.arange(8).reshape(2, 4), Sharding.replicated(4))
    assert [shard.tolist() for shard in reshard(x, mesh.sharding("y", "x")).shards][1] == [[4, 5]]


@pytest.mark.parametrize(
    "sharding", [Sharding.tiled((2,)), Sharding.tiled((4, 1)), Sharding.replicated(8), Sharding.tiled((2, 1, 1))]
)
def test_a_sharding_of_other_devices_or_dimensions_is_refused(sharding):
    x = ShardedArray(np.arange(8).reshape(2, 4), Sharding.tiled((2, 1)))
    with pytest.raises((ShardingError, ValueError)):
        reshard(x, sharding)


def test_a_sharding_of_devices_in_other_places_is_refused():
    topology = ringlet.tpu.Topology.from_accelerator_type("v4-16")
    assignment = ringlet.tpu.DeviceAssignment.build(topology, num_replicas=1, computation_shape=[1, 2, 1, 1])
    placed = Mesh({"x": 2}, assignment=assignment)
    with pytest.raises(ShardingError, match="pass a sharding of the same mesh"):
        reshard(ShardedArray(np.arange(4), Sharding.tiled((2,))), placed.sharding("x"))
    x = shard(np.arange(4), placed.sharding("x"))
    assert reshard(x, Mesh({"x": 2}).sharding())._group is x._group


@pytest.mark.parametrize("memory", MODES)
def test_an_array_can_become_partial(memory):
    parts = Layout(4, (WHOLE,), parts=Cut(4, (0, 1, 2, 3)))
    with mode(memory):
        x = redistribute(ShardedArray(np.arange(4), Sharding.tiled((4,))), parts)
        assert [x._tile(device).tolist() for device in range(4)] == [[0, 1, 2, 3], [0] * 4, [0] * 4, [0] * 4]
        assert assemble(x).tolist() == [0, 1, 2, 3]


def test_messages_of_a_movement_are_not_kept_where_nothing_moves():
    mesh, kept = Mesh({"x": 31}), plan_reshard.cache_info().currsize
    x = shard(np.ones((31, 31)), mesh.sharding("x"))
    with explain() as report:
        reshard(x, mesh.sharding()), reshard(x.sum(axis=0), mesh.sharding("x"))
    assert report.counts == {"all-gather": 1, "reduce-scatter": 1}
    assert plan_reshard.cache_info().currsize == kept
