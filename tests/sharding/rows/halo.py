"""Operations on the neighbourhood of each element: convolutions, pooling and stencils."""

from __future__ import annotations

import numpy as np

from ringlet.sharding import avg_pool, conv_general, conv_general_vjp, correlate, map_halo, max_pool, max_pool_vjp
from tests.sharding.sweep import FLOATS, NUMBERS, REALS, Row

NWC = {"dimension_numbers": ("NWC", "WIO", "NWC")}
SHAPES = ((2, 7, 3), (3, 3, 4))


def conv(x, kernel, stride=1, padding="SAME"):
    return conv_general(x, kernel, stride, padding, **NWC)


def gradients(x, kernel, cotangent):
    return conv_general_vjp(x, kernel, cotangent, 1, "SAME", **NWC)


ROWS = [
    Row("conv", conv, SHAPES, NUMBERS, length=9),
    Row("conv stride 2", lambda x, kernel: conv(x, kernel, 2), SHAPES, FLOATS, length=9),
    Row("conv wide", lambda x, kernel: conv(x, kernel, 1, [(5, 4)]), SHAPES, FLOATS, length=9),
    Row(
        "conv of features by themselves",
        lambda x, kernel: conv_general(x, kernel, 1, "SAME", **NWC, feature_group_count=3),
        ((2, 7, 3), (3, 1, 3)),
        length=3,
    ),
    Row("gradients of conv", gradients, (*SHAPES, (2, 7, 4)), FLOATS, length=16),
    Row("max pool", lambda x: max_pool(x, 3, 2, "SAME"), ((2, 9, 2),), REALS),
    Row("max pool gradient", lambda x, c: max_pool_vjp(x, c, 3, 1, "SAME"), ((2, 9, 2), (2, 9, 2)), FLOATS, length=3),
    Row("average pool", lambda x: avg_pool(x, 2, 1, "SAME"), ((2, 9, 2),), REALS, length=2),
    Row("correlate", lambda x, kernel: correlate(x, kernel, "same"), ((7, 5), (3, 2)), NUMBERS, length=6),
    Row("np.convolve", np.convolve, ((11,), (4,)), NUMBERS, length=4),
    Row("np.correlate", lambda x, v: np.correlate(x, v, "full"), ((11,), (4,)), NUMBERS, length=4),
    Row("stencil", lambda x: map_halo(lambda u: u[2:, 1:-1] - u[:-2, 1:-1], x, 1, "periodic"), ((7, 5),), NUMBERS),
    Row("deep stencil", lambda x: map_halo(lambda u: u[6:] + u[:-6], x, [3, 0], "reflect"), ((7, 5),), NUMBERS),
]
