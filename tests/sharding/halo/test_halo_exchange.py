from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Mesh, conv_general, conv_general_vjp, explain, max_pool, max_pool_vjp, shard
from ringlet.sharding.halo.halo_exchange import plan_exchange, with_neighbours
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Cut, Layout
from ringlet.sharding.memory_modes import mode
from tests.sharding.sweep import poisoned, tiled

MESH = Mesh({"x": 4, "y": 2})
DOWN, UP = ((0, 2), (1, 3), (2, 4), (3, 5), (4, 6), (5, 7)), ((2, 0), (3, 1), (4, 2), (5, 3), (6, 4), (7, 5))
RIGHT, LEFT = ((0, 1), (2, 3), (4, 5), (6, 7)), ((1, 0), (3, 2), (5, 4), (7, 6))


def conv(size, stride=1, padding="SAME"):
    kernel = np.ones((size, size, 4, 8), np.float32)
    return lambda x: conv_general(x, kernel, stride, padding, dimension_numbers=("NHWC", "HWIO", "NHWC"))


# jax 0.10.2 / XLA on eight host devices: the permutes of NHWC images of 16 x 16 x 4, by shape and pairs.
@pytest.mark.parametrize(
    ("operation", "spec", "expected"),
    [
        (conv(3), ("x", None), [((1, 1, 16, 4), DOWN), ((1, 1, 16, 4), UP)]),
        (
            conv(3),
            ("x", "y"),
            [((1, 1, 8, 4), DOWN), ((1, 1, 8, 4), UP), ((1, 6, 1, 4), RIGHT), ((1, 6, 1, 4), LEFT)],
        ),
        (conv(7), ("x", None), [((1, 3, 16, 4), DOWN), ((1, 3, 16, 4), UP)]),
        (conv(3, stride=2), ("x", None), [((1, 1, 16, 4), UP)]),
        (lambda x: max_pool(x, 2), ("x", None), []),
        (lambda x: max_pool(x, 3, 1, "SAME"), ("x", None), [((1, 1, 16, 4), DOWN), ((1, 1, 16, 4), UP)]),
    ],
)
def test_tiles_send_their_neighbours_what_xla_has_them_send(operation, spec, expected):
    x = shard(np.ones((1, 16, 16, 4), np.float32), MESH.sharding(None, *spec, None))
    with explain() as report:
        operation(x)
    (noted,) = report.operations
    assert {c.kind for c in noted.collectives} <= {"collective-permute"}
    assert [(c.shape, c.pairs) for c in noted.collectives] == expected


@pytest.mark.parametrize(
    ("spec", "edges"),
    [((), []), (("x",), [(1, 8), (1, 8), (1, 1), (1, 1)]), (("x", "y"), [(1, 8), (1, 8), (6, 1), (6, 1)])],
    ids=["nothing", "corners across y", "edges"],
)
def test_devices_are_not_sent_what_they_have_of_an_array_that_is_cut_further(spec, edges):
    numbers = np.arange(16.0 * 16).reshape(1, 16, 16, 1)
    settings = {"window_strides": 1, "padding": "SAME", "dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    given, kernel = numbers[:, ::-1], np.ones((3, 3, 1, 1))
    with mode("copy"), poisoned():
        x, cotangent = shard(numbers, MESH.sharding(None, *spec)), shard(given, MESH.sharding(None, "x", "y"))
        with explain() as report:
            _, gradient = conv_general_vjp(x, kernel, cotangent, **settings)
            pooled = max_pool_vjp(x, cotangent, 3, 1, "SAME")
        np.testing.assert_array_equal(gradient, conv_general_vjp(numbers, kernel, given, **settings)[1])
        np.testing.assert_array_equal(pooled, max_pool_vjp(numbers, given, 3, 1, "SAME"))
    assert [c.shape[1:3] for c in report.operations[1].collectives] == edges
    assert len(report.operations[2].collectives) == 4 + len(edges)


def test_uneven_tiles_send_what_each_needs_and_no_more():
    x = shard(np.ones((1, 18, 16, 4), np.float32), MESH.sharding(None, "x", None, None))
    with explain() as report:
        conv(3, padding="VALID")(x)
    down, up = report.operations[0].collectives
    assert (down.shape, up.shape) == ((1, 3, 16, 4), (1, 1, 16, 4))
    row = 16 * 4 * 4  # bytes; two devices have each tile
    assert (down.nbytes, up.nbytes) == (2 * (1 + 2 + 3) * row, 2 * 1 * row)


def test_what_tiles_further_away_have_comes_from_them():
    layout = Layout(4, (Cut(4, (0, 1, 2, 3)),))
    needs = (((0, 8),), ((0, 8),), ((2, 8),), ((4, 8),))
    plan = plan_exchange((8,), np.dtype("int8"), layout, (needs,), DeviceGroup.of(4))
    assert [c.pairs for c in plan.collectives] == [
        ((0, 1), (1, 2), (2, 3)),
        ((1, 0), (2, 1), (3, 2)),
        ((2, 0), (3, 1)),
        ((3, 0),),
    ]


def test_ranges_apart_come_one_by_one():
    layout = Layout(4, (Cut(4, (0, 1, 2, 3)),))
    needs = (((0, 3), (7, 8)), ((1, 5),), ((3, 7),), ((0, 1), (5, 8)))
    plan = plan_exchange((8,), np.dtype("int8"), layout, (needs,), DeviceGroup.of(4))
    pairs = sorted((message.source, message.target) for message in plan.rounds[0])
    assert pairs == [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]


def test_what_came_along_one_dimension_is_sent_on_along_the_next():
    values = np.arange(16).reshape(4, 4)
    layout = Layout(4, (Cut(2, (0, 0, 1, 1)), Cut(2, (0, 1, 0, 1))))
    needs = (((0, 3),), ((1, 4),))
    with mode("copy"), poisoned():
        x = tiled(values, layout)
        spaces, boxes = with_neighbours(x, layout, (needs, needs), x._group)
    for device in range(4):
        np.testing.assert_array_equal(spaces[device][boxes[device]], values[boxes[device]])


def test_memory_that_is_shared_is_looked_at_and_not_copied():
    whole = np.arange(8)
    x = shard(whole, Mesh({"x": 2}).sharding("x"))
    spaces, _ = with_neighbours(x, x._layout, ((((0, 5),), ((3, 8),)),), x._group)
    assert all(space is whole for space in spaces)


def test_nothing_is_received_into_memory_that_is_not_to_be_written_to():
    with mode("copy"):
        x = shard(np.broadcast_to(np.float64(3), (8,)), Mesh({"x": 2}).sharding("x"))
        spaces, boxes = with_neighbours(x, x._layout, ((((0, 5),), ((3, 8),)),), x._group)
    assert [space[box].tolist() for space, box in zip(spaces, boxes, strict=True)] == [[3.0] * 5] * 2
