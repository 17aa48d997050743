"""Every function of NumPy that gathers says so, and every ufunc works tile by tile."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing.overrides import get_overridable_numpy_ufuncs

from ringlet.errors import GatherWarning
from ringlet.sharding import ShardedArray, Sharding, shard

VECTOR = np.array([3.0, 1.0, 2.0, 1.0])
MATRIX = np.array([[2.0, 1.0, 0.5, 1.0], [1.0, 3.0, 1.0, 0.0], [0.5, 1.0, 4.0, 1.0], [1.0, 0.0, 1.0, 5.0]])
# Names in warnings, and calls.
CALLS = {
    "np.insert": lambda v, m: np.insert(v, 1, 5),
    "np.linalg.eigvals": lambda v, m: np.linalg.eigvals(m),
    "np.linalg.lstsq": lambda v, m: np.linalg.lstsq(m[:2], v[:2], rcond=None)[0],
    "np.linalg.qr": lambda v, m: tuple(np.linalg.qr(m[:2])),
    "np.linalg.svd": lambda v, m: tuple(np.linalg.svd(m[:2])),
    "np.linspace": lambda v, m: np.linspace(v, 9, 3),
    "np.roots": lambda v, m: np.roots(v),
    "np.nanquantile": lambda v, m: np.nanquantile(v, [[0.3]]),
    "np.pad": lambda v, m: np.pad(v, 1, "reflect", reflect_type="odd"),
    "np.quantile": lambda v, m: np.quantile(v, 0.3, weights=v, method="inverted_cdf"),
    "np.unique": lambda v, m: np.unique(m, axis=0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_gathers_says_so_and_gives_what_it_gives_for_the_whole(name):
    vector, matrix = shard(VECTOR.copy(), Sharding.tiled((2,))), shard(MATRIX.copy(), Sharding.tiled((2, 1)))
    with pytest.warns(GatherWarning, match=re.escape(f"{name} ")):
        found = CALLS[name](vector, matrix)
    np.testing.assert_equal(found, CALLS[name](VECTOR, MATRIX))


# Those of text have no types that numbers have.
OF_NUMBERS = sorted((f for f in get_overridable_numpy_ufuncs() if f.types), key=lambda ufunc: ufunc.__name__)


@pytest.mark.parametrize("ufunc", OF_NUMBERS, ids=lambda ufunc: ufunc.__name__)
@np.errstate(all="ignore")
def test_every_ufunc_of_numbers_works_tile_by_tile(ufunc):
    for code in "d?lm":
        size = (4, 4) if ufunc.signature else (4,)
        arrays = [np.full(size, 0.5).astype(code) for _ in range(ufunc.nin)]
        try:
            expected = ufunc(*arrays)
        except TypeError:
            continue
        found = ufunc(*(shard(array, Sharding.tiled((2, 1)[: array.ndim])) for array in arrays))
        assert all(isinstance(each, ShardedArray) for each in (found if ufunc.nout > 1 else (found,)))
        np.testing.assert_equal(np.asarray(found), np.asarray(expected))
        return
    pytest.fail(f"no dtype for {ufunc.__name__}")
