from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding.halo.convolution import Options, convolution_of


def test_tiles_are_viewed_in_one_order_of_dimensions_without_a_copy():
    numbers = ("CNHW", "IOHW", "NHWC")
    spec = convolution_of((4, 2, 5, 6), (2, 8, 3, 3), Options(1, "VALID", None, None, numbers, 2, 1))
    for view, tile, shape in (
        (spec.inputs, np.ones((4, 2, 5, 6)), (2, 5, 6, 2, 2)),
        (spec.kernels, np.ones((2, 8, 3, 3)), (1, 3, 3, 2, 2, 4)),
        (spec.outputs, np.ones((2, 3, 4, 8)), (2, 3, 4, 2, 4)),
    ):
        assert view(tile).shape == shape
        assert np.shares_memory(view(tile), tile)


def test_groups_of_the_batch_are_viewed_as_groups_of_features():
    spec = convolution_of((6, 2, 5), (8, 2, 3), Options(1, "VALID", None, None, None, 1, 2))
    x = np.arange(60).reshape(6, 2, 5)
    np.testing.assert_array_equal(spec.inputs(x)[:, :, 1], x[3:].transpose(0, 2, 1))


def test_there_may_be_no_spatial_dimension_but_not_less():
    assert convolution_of((3, 2), (8, 2), Options((), "VALID", None, None, None, 1, 1)).out_shape == (3, 8)
    with pytest.raises(ValueError, match=r"cannot convolve shape \(3,\) with a kernel of shape \(8,\)"):
        convolution_of((3,), (8,), Options((), "VALID", None, None, None, 1, 1))


def test_the_same_question_is_answered_once():
    options = Options(1, "SAME", None, None, None, 1, 1)
    assert convolution_of((1, 2, 5), (8, 2, 3), options) is convolution_of((1, 2, 5), (8, 2, 3), options)


def test_tiles_are_counted_along_places_unless_features_are_cut_or_a_tile_sees_nothing():
    spec = convolution_of((4, 2, 8), (6, 2, 3), Options(1, ((1, 1),), None, None, None, 1, 1))
    assert spec.tiles_of(spec.forward, (2, 1, 4)) == (2, 4)
    assert spec.tiles_of(spec.forward, (2, 2, 4)) is None
    assert spec.tiles_of(spec.to_kernel, (1, 1, 1)) is None
    far = convolution_of((4, 2, 8), (6, 2, 3), Options(1, ((9, 9),), None, None, None, 1, 1))
    assert far.tiles_of(far.forward, (2, 1, 4)) is None
