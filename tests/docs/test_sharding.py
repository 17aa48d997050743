"""Calls that docs/sharding_coverage.md says to gather, and others that do not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, shard


def x():
    return shard(np.arange(1.0, 17).reshape(4, 4) ** 1.5, Sharding.tiled((4, 1)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.argsort(x().astype(object), axis=0),
        lambda: np.linalg.eigvals(x()),
        lambda: np.linalg.eigh(x()),
        lambda: np.linalg.qr(x()[:2]),
        lambda: np.linalg.svd(x()[:, :3], full_matrices=True),
        lambda: np.linalg.lstsq(x()[:3], np.ones(3)),
        lambda: np.pad(x(), 1, "linear_ramp"),
        lambda: np.quantile(x(), 0.5, 0, weights=np.ones(4), method="inverted_cdf"),
        lambda: np.unique(x(), axis=0),
        lambda: np.insert(x(), 1, 0, axis=0),
    ],
)
def test_these_gather_in_some_cases(call):
    with pytest.warns(GatherWarning):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.add.at(x(), (1, 2), 3),
        lambda: np.add.outer(x(), x()),
        lambda: np.multiply.reduce(x(), axis=0),
        lambda: np.add(x(), 1, where=x() > 2, out=x()),
        lambda: np.sort(x(), axis=0),
        lambda: np.sort(x(), axis=1),
        lambda: np.argpartition(x(), 1, axis=0),
        lambda: np.linalg.inv(x()),
        lambda: np.linalg.det(x()),
        lambda: np.linalg.solve(x(), np.ones(4)),
        lambda: np.put(x(), 1, 2),
        lambda: np.place(x(), [True] * 16, [2, 3]),
        lambda: np.fill_diagonal(x(), 0),
        lambda: x()[x() > 3],
        lambda: x()[[0, 1], [1, 2]],
        lambda: np.fft.fft(x(), axis=1),
        lambda: np.pad(x(), 1, "mean"),
        lambda: np.pad(x(), 1, "edge"),
        lambda: np.add.reduceat(x(), [0, 2], axis=0),
        lambda: np.argpartition(x(), 1),
        lambda: x()[::-2, None, 1],
        lambda: x()[[3, 0]],
        lambda: x().__setitem__(slice(2), 0),
        lambda: x().__setitem__(x() > 3, 0),
    ],
)
def test_these_do_not(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error", GatherWarning)
        call()
