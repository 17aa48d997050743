"""Tables of docs/sharding_coverage.md: every function of NumPy is of one kind, and the document is current."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from docs import sharding_coverage
from numpy.testing.overrides import get_overridable_numpy_ufuncs

from ringlet.errors import GatherWarning
from ringlet.sharding import ShardedArray, Sharding, shard, strict


def test_every_function_is_of_one_kind():
    kinds = {
        sharding_coverage.name_of(each): sharding_coverage.kinds_of(each) for each in sharding_coverage.functions()
    }
    assert {name: found for name, found in kinds.items() if len(found) != 1} == {}


def test_the_document_holds_the_tables_as_they_are_written_now():
    document = sharding_coverage.DOCUMENT.read_text(encoding="utf-8")
    if f"Of NumPy {sharding_coverage.VERSION}," not in document:
        pytest.skip("the document describes another version of NumPy")
    assert document == sharding_coverage.with_tables(document), "run python -m docs.sharding_coverage"


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="earlier versions have fewer functions")
def test_most_functions_work_tile_by_tile():
    kinds = [sharding_coverage.kinds_of(each) for each in sharding_coverage.functions()]
    assert kinds.count(["native"]) >= 280


# Arguments after the first; an empty text is taken where the text is padded.
TEXTS = {"count": ("a", 0, 9), "endswith": ("b", 0, 9), "find": ("a", 0, 9), "index": ("", 0, 9), "rfind": ("a", 0, 9)}
TEXTS |= {"rindex": ("", 0, 9), "startswith": ("a", 0, 9), "_slice": (0, 1, 1), "_expandtabs_length": (4,)}
TEXTS |= {f"_{side}strip_chars": ("a",) for side in ("", "l", "r")}


UFUNCS_OF_TEXT = sorted((ufunc for ufunc in get_overridable_numpy_ufuncs() if not ufunc.types), key=str)


@pytest.mark.parametrize("ufunc", UFUNCS_OF_TEXT, ids=str)
def test_ufuncs_of_text_work_tile_by_tile(ufunc):
    whole = np.array(["ab", "Cd", "12", "a b"])
    x = shard(whole, Sharding.tiled((2,)))
    with strict():
        try:
            expected = ufunc(whole, *TEXTS.get(ufunc.__name__, ()))
        except (TypeError, ValueError):
            pytest.skip("called by functions of NumPy, with a text of the result's length")
        found = ufunc(x, *TEXTS.get(ufunc.__name__, ()))
        assert isinstance(found, ShardedArray)
        np.testing.assert_array_equal(found.numpy(), expected)


def x():
    return shard(np.arange(1.0, 17).reshape(4, 4) ** 1.5, Sharding.tiled((4, 1)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.argsort(x().astype(object), axis=0),
        lambda: np.linalg.eigvals(x()),
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
