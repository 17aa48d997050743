from __future__ import annotations

from ringlet.collectives import Op
from ringlet.sharding.layout.factors import FactorMap, broadcast_factors


def test_dimensions_are_aligned_from_the_last():
    assert broadcast_factors([(4, 5, 6), (6,), ()]) == (((0, 1, 2), (2,), ()), (0, 1, 2))


def test_a_dimension_that_is_repeated_has_no_factor():
    assert broadcast_factors([(4, 1), (1, 5)]) == (((0, None), (None, 1)), (0, 1))


def test_a_dimension_of_size_one_that_nothing_repeats_has_one():
    assert broadcast_factors([(1, 5), (5,)]) == (((0, 1), (1,)), (0, 1))


def test_parts_combine_as_the_reduced_factors_say():
    assert FactorMap((("i",),), (), {"i": Op.MAX}).combine is Op.MAX
    assert FactorMap((("i",),), ("i",)).combine is Op.SUM


def test_equal_maps_are_one_key():
    maps = [FactorMap((("i", "j"),), ("j",), {"i": Op.SUM}) for _ in range(2)]
    assert len({*maps, FactorMap((("i", "j"),), ("j",), {"i": Op.MAX})}) == 2
