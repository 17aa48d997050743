from __future__ import annotations

import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.errors import ShardingError
from ringlet.sharding import Mesh, Sharding, explain, mode, shard
from ringlet.sharding.execution.tile_execution import allocate, apply, compute, prepare, write_out
from ringlet.sharding.layout.factors import FactorMap

ROWS, COLUMNS = Sharding.tiled((4, 1)), Sharding.tiled((1, 4))
MESH = Mesh({"x": 2, "y": 2})
SUM_OF_ROWS = FactorMap((("i", "j"),), ("j",), {"i": Op.SUM}, linear=(frozenset({0}),))
SAME = FactorMap((("i", "j"),), ("i", "j"))
BOTH = FactorMap((("i", "j"), ("i", "j")), ("i", "j"))


def sum_of_rows(tiles, out, where):
    tiles[0].sum(0, out=out)


def numbers(rows=6, columns=5):
    return np.arange(rows * columns).reshape(rows, columns)


@pytest.mark.parametrize("memory", ["shared", "copy"])
def test_each_tile_is_computed_from_the_operands_tiles(memory):
    with mode(memory):
        x = shard(numbers(), ROWS)
        result = apply("sum", SUM_OF_ROWS, sum_of_rows, [x], x.dtype)
        assert result._layout.is_partial
        np.testing.assert_array_equal(np.asarray(result), numbers().sum(0))


def test_devices_that_share_memory_compute_a_tile_once():
    x, places = shard(numbers(), Sharding.replicated(4)), []
    apply("visit", SAME, lambda tiles, out, where: places.append(where.device), [x], x.dtype)
    assert places == [0]


def test_devices_with_memory_of_their_own_compute_it_each():
    places = []
    with mode("copy"):
        x = shard(numbers(), Sharding.replicated(4))
        apply("visit", SAME, lambda tiles, out, where: places.append(where.device), [x], x.dtype)
    assert places == [0, 1, 2, 3]


def test_a_kernel_is_told_where_its_tile_is():
    x, places = shard(numbers(), ROWS), []
    apply("sum", SUM_OF_ROWS, lambda tiles, out, where: places.append(where), [x], x.dtype)
    assert [where.operands[0][0] for where in places] == [slice(0, 2), slice(2, 4), slice(4, 6), slice(6, 6)]
    assert [(where.device, where.part) for where in places] == [(d, d) for d in range(4)]
    assert all(where.result == (slice(0, 5),) for where in places)


def test_arrays_that_every_device_has_are_sliced_and_scalars_are_left_alone():
    x, seen = shard(numbers(), ROWS), []
    rule = FactorMap((("i", "j"), ("i", "j"), ()), ("i", "j"))
    apply("see", rule, lambda tiles, out, where: seen.append(tiles[1:]), [x, numbers(), 2], x.dtype)
    np.testing.assert_array_equal(seen[1][0], numbers()[2:4])
    assert [scalar for _, scalar in seen] == [2] * 4


def test_operands_are_moved_where_the_plan_wants_them():
    x, y = shard(numbers(), ROWS), shard(numbers(), COLUMNS)
    with explain() as report:
        result = apply("add", BOTH, lambda tiles, out, where: np.add(*tiles, out=out), [x, y], x.dtype)
    assert result.sharding == x.sharding
    assert [operation.name for operation in report.operations] == ["add"]
    assert [collective.kind for collective in report.operations[0].collectives] == ["all-to-all"]


def test_dimensions_without_a_factor_may_have_any_size_in_the_result():
    x = shard(numbers(), Sharding.tiled((2, 2)))
    doubled = FactorMap((("i", None),), ("i", None))
    result = apply(
        "tile", doubled, lambda t, out, _: np.concatenate([t[0]] * 2, 1, out=out), [x], x.dtype, shape=(6, 10)
    )
    np.testing.assert_array_equal(np.asarray(result), np.tile(numbers(), 2))


def test_out_is_filled_where_it_lies_as_the_result():
    x, out = shard(numbers(), ROWS), shard(np.zeros((6, 5), int), ROWS)
    buffer = out._buffer(0)
    assert apply("copy", SAME, lambda tiles, into, _: np.copyto(into, tiles[0]), [x], x.dtype, out=out) is out
    assert out._buffer(0) is buffer
    np.testing.assert_array_equal(buffer, numbers())


@pytest.mark.parametrize("sharding", [ROWS, COLUMNS, Sharding.replicated(4), Sharding.maximal(1, 4)])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_out_may_have_any_sharding_and_a_dtype_of_the_same_kind(sharding, dtype):
    x, out = shard(numbers(), ROWS), shard(np.zeros((6, 5), dtype), sharding)
    assert apply("copy", SAME, lambda tiles, into, _: np.copyto(into, tiles[0]), [x], x.dtype, out=out) is out
    np.testing.assert_array_equal(np.asarray(out), numbers())
    assert out.dtype == dtype


def test_out_may_be_an_array_that_is_not_sharded():
    out = np.zeros(5, int)
    assert apply("sum", SUM_OF_ROWS, sum_of_rows, [shard(numbers(), ROWS)], int, out=out) is out
    np.testing.assert_array_equal(out, numbers().sum(0))


@pytest.mark.parametrize("sharding", [ROWS, Sharding.replicated(4)])
def test_out_may_be_an_operand_that_other_elements_are_computed_from(sharding):
    def transpose(tiles, into, where):
        for row, column in zip(into, tiles[0].T, strict=True):
            row[...] = column

    x = shard(numbers(4, 4), sharding)
    apply("transpose", FactorMap((("j", "i"),), ("i", "j")), transpose, [x], x.dtype, out=x)
    np.testing.assert_array_equal(np.asarray(x), numbers(4, 4).T)


def test_out_of_another_kind_or_shape_is_refused_as_numpy_does():
    x = shard(numbers().astype(float), ROWS)
    with pytest.raises(TypeError, match="Cannot cast"):
        write_out(np.zeros((6, 5), int), x)
    with pytest.raises(ValueError, match=r"out has shape \(5,\), expected the result's shape \(6, 5\)"):
        write_out(np.zeros(5), x)


def test_parts_that_were_combined_are_not_combined_again():
    total = apply("sum", SUM_OF_ROWS, sum_of_rows, [shard(numbers(), ROWS)], int)
    square = FactorMap((("j",),), ("j",))
    with explain() as report:
        for _ in range(3):
            apply("square", square, lambda tiles, out, _: np.square(tiles[0], out=out), [total], int)
    assert [len(operation.collectives) for operation in report.operations] == [1, 0, 0]


def test_parts_are_combined_onto_the_tiles_that_the_other_operand_has():
    total = apply("sum", SUM_OF_ROWS, sum_of_rows, [shard(numbers(8, 8), ROWS)], int)
    other = shard(np.arange(8), Sharding.tiled((4,)))
    rule = FactorMap((("j",), ("j",)), ("j",))
    with explain() as report:
        result = apply("maximum", rule, lambda tiles, out, _: np.maximum(*tiles, out=out), [total, other], int)
    assert [collective.kind for collective in report.operations[0].collectives] == ["reduce-scatter"]
    assert result.sharding == other.sharding


def test_an_operation_may_work_between_moving_its_operands_and_computing():
    ready = prepare("copy", SAME, [shard(numbers(), ROWS)], float)
    result = allocate(ready)
    compute(result, lambda tile, where: tile.fill(where.device), ready)
    np.testing.assert_array_equal(np.asarray(result)[::2, 0], [0, 1, 2])


def test_arrays_on_different_devices_do_not_meet():
    with pytest.raises(ShardingError, match="different device groups"):
        prepare("add", BOTH, [shard(numbers(), ROWS), shard(numbers(), Sharding.tiled((2, 1)))], int)


def test_a_kernel_that_takes_stacks_fills_all_tiles_in_one_call_where_there_is_little_to_do():
    def products(tiles, out, where):
        shapes.append(out.shape)
        np.matmul(*tiles, out=out)

    rule = FactorMap((("i", "j"), ("j", "k")), ("i", "k"), {"j": Op.SUM})
    a, b, shapes = numbers(8, 6).astype(float), numbers(6, 4).astype(float), []
    for cut_a, cut_b, stack in (
        (Sharding.tiled((4, 1)), Sharding.replicated(4), (4, 2, 4)),
        (MESH.sharding("x", None), MESH.sharding(None, "y"), (2, 2, 4, 2)),
        (Sharding.tiled((1, 2)), Sharding.tiled((2, 1)), (2, 8, 4)),
    ):
        shapes.clear()
        result = apply("matmul", rule, products, [shard(a, cut_a), shard(b, cut_b)], a.dtype, takes_stacks=True)
        assert shapes == [stack]
        assert result._layout.is_partial == (stack == (2, 8, 4))
        np.testing.assert_array_equal(np.asarray(result), a @ b)


@pytest.mark.parametrize(("memory", "rows"), [("shared", 6), ("copy", 8)])
def test_tiles_are_no_stack_if_they_are_of_several_sizes_or_apart(memory, rows):
    ndims = []

    def doubled(tiles, out, where):
        ndims.append(out.ndim)
        np.add(tiles[0], tiles[0], out=out)

    with mode(memory):
        x = shard(numbers(rows), ROWS)
        result = apply("double", SAME, doubled, [x], x.dtype, takes_stacks=True)
    assert ndims == [2, 2, 2, 2]
    np.testing.assert_array_equal(np.asarray(result), 2 * numbers(rows))


def test_a_stack_goes_where_it_is_asked_to_go():
    x, out = shard(numbers(8), ROWS), shard(np.zeros((8, 5), int), COLUMNS)
    given = apply("copy", SAME, lambda tiles, to, _: np.copyto(to, tiles[0]), [x], x.dtype, out=out, takes_stacks=True)
    assert given is out
    np.testing.assert_array_equal(np.asarray(out), numbers(8))
