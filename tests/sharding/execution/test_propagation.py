from __future__ import annotations

import pytest

from ringlet.collectives import Op
from ringlet.sharding.execution.propagation import plan
from ringlet.sharding.layout.factors import EVERY_OP, FactorMap
from ringlet.sharding.layout.layout import WHOLE, Cut, Layout, joint

# A mesh of 4 by 2 devices.
X, Y = Cut(4, (0, 0, 1, 1, 2, 2, 3, 3)), Cut(2, (0, 1) * 4)
XY, YX = joint((X, Y)), joint((Y, X))
EACH = (frozenset({0}), frozenset({1}))

MATMUL = FactorMap((("i", "j"), ("j", "k")), ("i", "k"), {"j": Op.SUM}, linear=EACH)
ADD = FactorMap((("i", "j"), ("i", "j")), ("i", "j"), linear=(frozenset({0, 1}),))
MULTIPLY = FactorMap((("i", "j"), ("i", "j")), ("i", "j"), linear=EACH)


def on(*cuts, parts=WHOLE, only=None):
    """A layout on the mesh."""
    return Layout(8, cuts, parts, only)


def planned(factor_map, a, b, shapes=((8, 16), (16, 8)), **options):
    """The plan for two operands of four bytes an element."""
    return plan(factor_map, shapes, (4, 4), (a, b), 4, **options)


@pytest.mark.parametrize(
    ("a", "b", "a_moved", "b_moved", "result"),
    [
        # rows of one, columns of the other: nothing moves
        (on(X, WHOLE), on(WHOLE, Y), on(X, WHOLE), on(WHOLE, Y), on(X, Y)),
        # the sum is cut in one: the other is sliced, since the product is smaller than what would be gathered
        (on(WHOLE, X), on(WHOLE, WHOLE), on(WHOLE, X), on(X, WHOLE), on(WHOLE, WHOLE, parts=X)),
        # the sum is cut alike in both
        (on(WHOLE, X), on(X, WHOLE), on(WHOLE, X), on(X, WHOLE), on(WHOLE, WHOLE, parts=X)),
        # rows and columns by one axis: what is gathered is the right one, of two that cost the same
        (on(X, WHOLE), on(WHOLE, X), on(X, WHOLE), on(WHOLE, WHOLE), on(X, WHOLE)),
        (on(X, Y), on(Y, WHOLE), on(X, Y), on(Y, WHOLE), on(X, WHOLE, parts=Y)),
        (on(X, Y), on(X, Y), on(X, WHOLE), on(WHOLE, Y), on(X, Y)),
    ],
)
def test_products_of_matrices_communicate_as_little_as_they_can(a, b, a_moved, b_moved, result):
    made = planned(MATMUL, a, b)
    assert (made.operand_layouts, made.result_layout) == ((a_moved, b_moved), result)


def test_the_smaller_operand_of_a_conflict_is_gathered():
    made = planned(MATMUL, on(X, WHOLE), on(WHOLE, X), ((4, 16), (16, 64)))
    assert made.operand_layouts == (on(WHOLE, WHOLE), on(WHOLE, X))


def test_the_sum_is_not_cut_if_combining_products_costs_more_than_gathering():
    made = planned(MATMUL, on(WHOLE, X), on(WHOLE, WHOLE), ((8, 16), (16, 64)))
    assert made.operand_layouts[0] == on(WHOLE, WHOLE)
    assert made.result_layout == on(WHOLE, WHOLE)


@pytest.mark.parametrize(("a", "b"), [((X, Y), (Y, X)), ((X, WHOLE), (Y, WHOLE)), ((XY, WHOLE), (YX, WHOLE))])
def test_operands_in_different_tiles_stay_as_the_left_one_is_if_that_costs_no_more(a, b):
    made = planned(ADD, on(*a), on(*b), ((8, 8), (8, 8)))
    assert made.result_layout == on(*a)


def test_the_larger_operand_stays_where_it_is():
    rows = FactorMap((("j",), ("i", "j")), ("i", "j"))
    made = planned(rows, on(X), on(WHOLE, Y), ((8,), (8, 8)))
    assert made.operand_layouts == (on(Y), on(WHOLE, Y))


def test_different_dimensions_of_the_operands_are_cut_together_if_they_can_be():
    made = planned(ADD, on(X, WHOLE), on(WHOLE, Y), ((8, 8), (8, 8)))
    assert (made.result_layout, made.nbytes) == (on(X, Y), 0)


def test_a_coarser_cut_frees_an_axis_for_another_dimension():
    # Rows by both axes and columns by y: gathering a's rows along y costs less than b.
    made = planned(MATMUL, on(XY, WHOLE), on(WHOLE, Y), ((8, 16), (16, 512)))
    assert made.result_layout == on(X, Y)
    assert made.operand_layouts == (on(X, WHOLE), on(WHOLE, Y))


def test_factors_that_must_be_whole_are_gathered():
    last = FactorMap((("i", "j"),), ("i", "j"), whole=frozenset({"j"}))
    made = plan(last, ((8, 8),), (4,), (on(X, Y),), 4)
    assert made.operand_layouts == (on(X, WHOLE),) == (made.result_layout,)


def test_dimensions_without_a_factor_are_gathered():
    made = plan(FactorMap(((0, None),), (0, None)), ((8, 8),), (4,), (on(X, Y),), 4, result_shape=(8, 3))
    assert (made.operand_layouts, made.result_layout) == ((on(X, WHOLE),), on(X, WHOLE))
    assert made.result_boxes[2] == (slice(2, 4), slice(0, 3))


def test_an_operand_that_every_device_has_is_sliced():
    made = planned(ADD, None, on(X, Y), ((8, 8), (8, 8)))
    assert (made.operand_layouts[0], made.nbytes) == (on(X, Y), 0)


def test_operands_on_one_device_stay_on_that_of_the_larger():
    made = planned(MATMUL, on(WHOLE, WHOLE, only=1), on(WHOLE, WHOLE, only=5), ((8, 16), (16, 16)))
    assert {layout.only for layout in (*made.operand_layouts, made.result_layout)} == {5}
    assert made.nbytes == 8 * 16 * 4


def test_what_is_everywhere_goes_to_the_one_device_of_the_other_operand():
    made = planned(ADD, on(WHOLE, WHOLE), on(WHOLE, WHOLE, only=5), ((8, 8), (8, 8)))
    assert (made.result_layout.only, made.nbytes) == (5, 0)


def test_what_is_on_one_device_is_sent_to_the_tiles_of_the_other_operand():
    made = planned(ADD, on(WHOLE, WHOLE, only=5), on(X, Y), ((8, 8), (8, 8)))
    assert made.result_layout == on(X, Y)


def test_a_sum_of_partial_arrays_stays_partial():
    partial = on(X, WHOLE, parts=Y)
    made = planned(ADD, partial, partial, ((8, 8), (8, 8)), combine=Op.SUM)
    assert (*made.operand_layouts, made.result_layout) == (partial, partial, partial)


@pytest.mark.parametrize("other", [on(X, WHOLE), None, on(WHOLE, WHOLE)])
def test_a_partial_array_and_a_known_one_are_not_added_as_they_are(other):
    made = planned(ADD, on(X, WHOLE, parts=Y), other, ((8, 8), (8, 8)), combine=Op.SUM)
    assert made.result_layout == on(X, WHOLE)


def test_a_multiple_of_a_partial_array_stays_partial():
    partial = on(X, WHOLE, parts=Y)
    assert planned(MULTIPLY, partial, None, ((8, 8), (8, 8)), combine=Op.SUM).result_layout == partial


def test_a_partial_array_times_itself_is_combined_first():
    partial = on(X, WHOLE, parts=Y)
    made = planned(MULTIPLY, partial, partial, ((8, 8), (8, 8)), combine=Op.SUM)
    assert sum(layout.is_partial for layout in made.operand_layouts) <= 1


def test_parts_that_combine_otherwise_are_combined_first():
    partial = on(X, WHOLE, parts=Y)
    for combine in (Op.MAX, None):
        made = planned(ADD, partial, partial, ((8, 8), (8, 8)), combine=combine)
        assert made.result_layout == on(X, WHOLE)
    moves = FactorMap((("i", "j"),), ("j", "i"), linear=(frozenset({0}),), linear_ops=EVERY_OP)
    made = plan(moves, ((8, 8),), (4,), (partial,), 4, combine=Op.MAX)
    assert made.result_layout == on(WHOLE, X, parts=Y)


def test_the_parts_of_an_operand_and_of_a_sum_are_parts_together():
    made = planned(MATMUL, on(WHOLE, X, parts=Y), on(X, WHOLE), ((8, 1024), (1024, 8)), combine=Op.SUM)
    assert made.result_layout.parts.count == 8


def test_parts_along_an_axis_that_the_other_operand_is_cut_by_are_combined_onto_it():
    made = planned(MULTIPLY, on(WHOLE, WHOLE, parts=X), on(X, WHOLE), ((8, 8), (8, 8)), combine=Op.SUM)
    assert made.operand_layouts[0] == made.result_layout == on(X, WHOLE)


def test_devices_that_compute_the_same_have_the_same_number():
    made = planned(MATMUL, on(X, WHOLE), on(WHOLE, WHOLE))
    assert made.tile_numbers == (0, 0, 1, 1, 2, 2, 3, 3)


def test_a_result_whose_factor_has_another_size_is_cut_into_as_many_tiles():
    made = plan(FactorMap((("i",),), ("i",)), ((9,),), (4,), (on(X),), 4, result_shape=(3,))
    assert [where.operands[0][0] for where in made.places[::2]] == [slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 9)]
    assert [box[0] for box in made.result_boxes[::2]] == [slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 3)]


def test_many_operands_in_conflict_are_planned_all_the_same():
    # Each of six operands is cut by both axes, along two dimensions of its own.
    labels = tuple("abcdef")
    layouts = tuple(on(*(X if d == n else Y if d == (n + 1) % 6 else WHOLE for d in range(6))) for n in range(6))
    made = plan(FactorMap((labels,) * 6, labels), ((4,) * 6,) * 6, (4,) * 6, layouts, 4)
    assert set(made.operand_layouts) == {made.result_layout} == {layouts[0]}
