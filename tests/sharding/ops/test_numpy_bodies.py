from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Sharding, explain, shard


@pytest.mark.parametrize(
    ("shape", "tiles", "forward", "inverse", "exchanges"),
    [
        ((8, 8), (4, 1), "fft2", "ifft2", 2),
        ((8, 8), (1, 4), "fftn", "ifftn", 2),
        ((8, 8), (4, 1), "rfft2", "irfft2", 2),
        ((8, 8, 8), (4, 1, 1), "fftn", "ifftn", 2),
        ((8, 8, 8), (1, 4, 1), "rfftn", "irfftn", 2),
        ((8, 8, 8), (2, 2, 1), "fftn", "ifftn", 4),
    ],
)
def test_an_inverse_transform_begins_with_the_axes_that_the_transform_left_whole(
    shape, tiles, forward, inverse, exchanges
):
    plain = np.random.default_rng(0).random(shape)
    with explain() as report:
        spectrum = getattr(np.fft, forward)(shard(plain.copy(), Sharding.tiled(tiles)))
        back = getattr(np.fft, inverse)(spectrum)
    assert report.counts == {"all-to-all": exchanges}
    np.testing.assert_allclose(spectrum.numpy(), getattr(np.fft, forward)(plain), atol=1e-12)
    np.testing.assert_allclose(back.numpy(), plain, atol=1e-12)


@pytest.mark.parametrize("axes", [(0, 1, 0), (1, -1), [0]])
def test_sizes_follow_their_axes_and_repeated_axes_keep_their_order(axes):
    plain = np.random.default_rng(0).random((6, 8))
    for name in ("fftn", "ifftn", "irfftn"):
        given = {"s": (5, 4, 7)[: len(axes)], "axes": axes}
        found = getattr(np.fft, name)(shard(plain.copy(), Sharding.tiled((2, 1))), **given)
        np.testing.assert_allclose(found.numpy(), getattr(np.fft, name)(plain, **given), atol=1e-12)
