"""Plans of movements: how many bytes are sent, what that is called, and which way is taken in a topology."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ringlet
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout
from ringlet.sharding.resharding.reshard_plan import plan_reshard
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.transfers import moved_bytes
from tests.sharding.every_layout import MESHES, layouts, pairs

SHAPE = (8, 12, 6)
X = Cut(4, (0, 0, 1, 1, 2, 2, 3, 3))
Y = Cut(2, (0, 1, 0, 1, 0, 1, 0, 1))
XY = Cut(8, tuple(range(8)))
YX = Cut(8, (0, 4, 1, 5, 2, 6, 3, 7))


def on_mesh(*cuts: Cut, parts: Cut = WHOLE, only: int | None = None) -> Layout:
    """A layout on the mesh x=4, y=2."""
    return Layout(8, cuts, parts, only)


def elements(layout: Layout, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """Which elements each device has: booleans [device, ...]."""
    has = np.zeros((layout.num_devices, *shape), bool)
    for device in layout.holders:
        has[device][layout.boxes(shape)[device]] = True
    return has


def fewest(source: Layout, target: Layout) -> int:
    """How many elements at least have to reach a device that has not got them."""
    has, wants = elements(source), elements(target)
    if source.parts == target.parts:
        return int((wants & ~has).sum())
    if not source.is_partial:
        wants[[target.parts.tile_of(device) > 0 for device in range(target.num_devices)]] = False
        return int((wants & ~has).sum())
    if target.is_partial:
        values = source.without_parts()
        return fewest(source, values) + fewest(values, target)
    # All parts but one travel; so does the result to all that want it but one; both start where a part is wanted.
    joined = (wants & has).any(0)
    return int((source.parts.count - 1 + wants.sum(0) - joined)[wants.any(0)].sum())


@pytest.mark.parametrize("mesh", MESHES)
def test_as_few_bytes_move_as_the_layouts_allow(mesh):
    for source, target in pairs(mesh, 3, 400):
        assert plan_reshard(SHAPE, 4, source, target).nbytes == 4 * fewest(source, target), (source, target)


@pytest.mark.parametrize("mesh", MESHES)
def test_no_more_bytes_move_than_if_all_devices_were_sent_everything(mesh):
    whole = math.prod(SHAPE)
    for source, target in pairs(mesh, 3, 400):
        missing = source.num_devices * source.parts.count * whole - int(elements(source).sum())
        assert plan_reshard(SHAPE, 1, source, target).nbytes <= missing or source.is_partial is not target.is_partial


@pytest.mark.parametrize("mesh", MESHES)
def test_operations_are_chosen_by_the_bytes_that_movements_take(mesh):
    for source, target in pairs(mesh, 2, 400):
        if not target.is_partial:
            assert moved_bytes((7, 5), 4, source, target) == plan_reshard((7, 5), 4, source, target).nbytes


@pytest.mark.parametrize(
    ("source", "target", "kind", "shape", "groups"),
    [
        # from, to, what it is called, what a device has then, who takes part
        (on_mesh(X, WHOLE), on_mesh(WHOLE, WHOLE), "all-gather", (8, 8), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(X, Y), on_mesh(X, WHOLE), "all-gather", (2, 8), ((0, 1), (2, 3), (4, 5), (6, 7))),
        (on_mesh(X, Y), on_mesh(WHOLE, WHOLE), "all-gather", (8, 8), (tuple(range(8)),)),
        (on_mesh(X, WHOLE), on_mesh(WHOLE, X), "all-to-all", (8, 2), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(X, Y), on_mesh(Y, X), "all-to-all", (4, 2), ((0, 2), (1, 3, 4, 6), (5, 7))),
        (on_mesh(XY, WHOLE), on_mesh(YX, WHOLE), "collective-permute", (1, 8), ()),
        (on_mesh(X, WHOLE), on_mesh(Y, WHOLE), "point-to-point", (4, 8), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(X, WHOLE), on_mesh(WHOLE, WHOLE, only=3), "gather", (8, 8), ((3, 1, 5, 7),)),
        (on_mesh(WHOLE, WHOLE, only=3), on_mesh(WHOLE, WHOLE), "broadcast", (8, 8), ((3, 0, 1, 2, 4, 5, 6, 7),)),
        (on_mesh(WHOLE, WHOLE, only=3), on_mesh(WHOLE, WHOLE, only=0), "point-to-point", (8, 8), ((0, 3),)),
        (on_mesh(WHOLE, WHOLE, parts=X), on_mesh(WHOLE, WHOLE), "all-reduce", (8, 8), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(Y, WHOLE, parts=X), on_mesh(Y, WHOLE), "all-reduce", (4, 8), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(WHOLE, WHOLE, parts=XY), on_mesh(WHOLE, XY), "reduce-scatter", (8, 1), (tuple(range(8)),)),
        (on_mesh(Y, WHOLE, parts=X), on_mesh(Y, X), "reduce-scatter", (4, 2), ((0, 2, 4, 6), (1, 3, 5, 7))),
        (on_mesh(WHOLE, WHOLE, parts=X), on_mesh(X, WHOLE), "reduce-scatter", (2, 8), ((0, 2, 4, 6), (1, 3, 5, 7))),
    ],
)
def test_a_movement_is_called_by_the_collective_that_it_is(source, target, kind, shape, groups):
    (collective,) = plan_reshard((8, 8), 4, source, target, dtype="float32").collectives
    assert (collective.kind, collective.shape, collective.dtype) == (kind, shape, "float32")
    assert collective.groups == groups


def test_a_permutation_names_its_pairs():
    (collective,) = plan_reshard((8, 8), 4, on_mesh(XY, WHOLE), on_mesh(YX, WHOLE)).collectives
    assert collective.pairs == ((1, 2), (2, 4), (3, 6), (4, 1), (5, 3), (6, 5))


def test_parts_that_are_wanted_in_other_tiles_are_scattered_and_then_gathered():
    plan = plan_reshard((8, 8), 4, on_mesh(WHOLE, WHOLE, parts=XY), on_mesh(X, WHOLE))
    assert [(collective.kind, collective.nbytes) for collective in plan.collectives] == [
        ("reduce-scatter", 7 * 256),
        ("all-gather", 256),
    ]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (2, 1)])
def test_what_has_no_elements_or_few_is_moved_like_any_other(shape):
    for source in layouts((4,), len(shape)):
        for target in layouts((4,), len(shape)):
            size = math.prod(shape)
            assert 0 <= plan_reshard(shape, 1, source, target).nbytes <= 2 * 4 * 4 * size


def slice_of(kind: str, **build: object) -> DeviceGroup:
    """Eight devices of a TPU slice."""
    topology = ringlet.tpu.Topology.from_accelerator_type(kind)
    assignment = ringlet.tpu.DeviceAssignment.build(topology, num_replicas=1, **build)
    return DeviceGroup(8, tuple(map(str, range(8))), assignment=assignment)


GROUP = slice_of("v4-16", computation_shape=[2, 2, 2, 1])


def test_in_a_topology_every_collective_has_a_predicted_time():
    for source, target in pairs((4, 2), 3, 60):
        plan = plan_reshard(SHAPE, 4, source, target, group=GROUP)
        assert all(collective.seconds > 0 for collective in plan.collectives)
        assert plan.seconds == sum(collective.seconds for collective in plan.collectives)


def test_in_a_topology_the_way_is_taken_that_is_done_first():
    source, target = on_mesh(X, WHOLE), on_mesh(Y, WHOLE)
    (fewest_bytes,) = plan_reshard((1024, 1024), 4, source, target).collectives
    (gather,) = (taken := plan_reshard((1024, 1024), 4, source, target, group=GROUP)).collectives
    assert (fewest_bytes.kind, gather.kind) == ("point-to-point", "all-gather")
    assert gather.nbytes > fewest_bytes.nbytes
    assert taken.seconds < timed(fewest_bytes, GROUP).seconds


def test_of_several_devices_that_have_a_tile_the_nearest_sends_it():
    rows, columns = on_mesh(Cut(2, (0, 0, 0, 0, 1, 1, 1, 1))), on_mesh(Cut(2, (1, 1, 1, 1, 0, 0, 0, 0)))
    (step,) = plan_reshard((2,), 4, rows, columns, group=GROUP).steps
    cores = GROUP.assignment.core_assignment[0]
    for message in step.messages:
        assert np.abs(cores[message.source] - cores[message.target])[:3].sum() == 1
