from __future__ import annotations

import pytest

from ringlet.sharding.halo.dimension_numbers import ConvDimensionNumbers, dimension_numbers_of

NHWC = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))


@pytest.mark.parametrize(
    "spelling",
    [
        ("NHWC", "HWIO", "NHWC"),
        ["NHWC", "HWIO", "NHWC"],
        "b01f_01io->b01f",
        NHWC,
        tuple(NHWC),
    ],
)
def test_every_spelling_means_the_same(spelling):
    assert dimension_numbers_of(spelling, 4) == NHWC


def test_without_any_features_come_second_and_spatial_dimensions_last():
    assert dimension_numbers_of(None, 3) == ConvDimensionNumbers((0, 1, 2), (0, 1, 2), (0, 1, 2))


def test_letters_count_spatial_dimensions_in_the_order_of_the_kernel_and_numbers_as_they_say():
    assert dimension_numbers_of(("NHWC", "WHIO", "NHWC"), 4).lhs_spec == (0, 3, 2, 1)
    assert dimension_numbers_of("b01f_10io->b01f", 4) == ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 1, 0), (0, 3, 1, 2))


@pytest.mark.parametrize(
    "wrong",
    [
        "b01f_01io",
        4,
        ("NHWC", "HWIO"),
        ("NHWC", "HWIO", "NHWD"),
        ("NHHC", "HWIO", "NHWC"),
        ((0, 1, 2), (0, 1, 2), (0, 1, 2)),
        ((0, 0, 1, 2),) * 3,
        ((0, 1, 2, 3.0),) * 3,
        (4, 4, 4),
        (None, None, None),
    ],
)
def test_what_does_not_name_each_dimension_once_is_refused(wrong):
    with pytest.raises(ValueError, match=r"do not name each of the 4 dimensions .* pass three strings"):
        dimension_numbers_of(wrong, 4)
