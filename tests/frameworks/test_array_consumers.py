"""Scikit-learn, xarray and Dask compute with sharded arrays, and gather nothing."""

from __future__ import annotations

import numpy as np
import pytest

from ringlet.sharding import Mesh, ShardedArray, shard, strict
from tests.frameworks.libraries import library

NUMBERS = np.random.default_rng(0)
POINTS = NUMBERS.standard_normal((64, 5))
TARGETS = POINTS @ NUMBERS.standard_normal(5) + 0.1 * NUMBERS.standard_normal(64)
LABELS, GUESSES = (TARGETS > 0).astype(int), (POINTS[:, 0] > 0).astype(int)
FIELD = NUMBERS.standard_normal((8, 6))


def sharded(array):
    return shard(array.copy(), Mesh({"x": 4}).sharding("x"))


def scaled(x, y, labels, guesses):
    with np.errstate(invalid="ignore"):  # scikit-learn divides 0 by 0
        return library("sklearn.preprocessing").StandardScaler().fit_transform(x)


def projected(x, y, labels, guesses):
    return library("sklearn.decomposition").PCA(2, svd_solver="full").fit_transform(x)


def predicted(x, y, labels, guesses):
    return library("sklearn.linear_model").Ridge(solver="svd").fit(x, y).predict(x)


def squared_error(x, y, labels, guesses):
    return library("sklearn.metrics").mean_squared_error(y, 0.9 * y)


def accuracy(x, y, labels, guesses):
    return library("sklearn.metrics").accuracy_score(labels, guesses)


def distances(x, y, labels, guesses):  # of KMeans
    return library("sklearn.metrics").pairwise.euclidean_distances(x, x[:3])


@pytest.mark.parametrize("program", [scaled, projected, predicted, squared_error, accuracy, distances])
def test_scikit_learn_computes_by_the_array_api(program):
    given = (POINTS, TARGETS, LABELS, GUESSES)
    with library("sklearn").config_context(array_api_dispatch=True), strict():
        found = program(*map(sharded, given))
    assert isinstance(found, ShardedArray if np.ndim(program(*given)) else float)
    np.testing.assert_allclose(found, program(*given), atol=1e-12)


LABELLED = {
    "anomalies": lambda d: (d - d.mean("time")) / d.std("time"),
    "selection": lambda d: d.isel(time=slice(1, 4)),
    "where": lambda d: d.where(d > 0, 0.0),
    "shift": lambda d: d.roll(time=1),
    "running sum": lambda d: d.cumsum("time"),
    "difference": lambda d: d.diff("time"),
    "product": lambda d: d.dot(d.rename(time="later")),
    "join": lambda d: library("xarray").concat([d, d], "time"),
}


@pytest.mark.parametrize("name", LABELLED)
def test_xarray_keeps_arrays_sharded(name):
    def labelled(array):
        return library("xarray").DataArray(array, dims=("time", "place"), coords={"time": np.arange(8)})

    with strict():
        found = LABELLED[name](labelled(sharded(FIELD)))
    expected = LABELLED[name](labelled(FIELD))
    assert isinstance(found.data, ShardedArray)
    assert (found.dims, found.shape) == (expected.dims, expected.shape)
    np.testing.assert_allclose(found.data, expected.data, atol=1e-12)


def test_dask_takes_blocks_of_a_sharded_array_and_is_sharded_again():
    x = sharded(FIELD)
    blocks = library("dask.array").from_array(x, chunks=(2, 6))
    np.testing.assert_allclose((blocks + 1).sum(axis=0).compute(), (FIELD + 1).sum(axis=0))
    back = shard(blocks, Mesh({"x": 4}).sharding("x"))
    assert back.sharding == x.sharding
    np.testing.assert_array_equal(back, FIELD)
