"""Tables of docs/sharding_coverage.md: every function of NumPy is of one kind, and the document is current."""

from __future__ import annotations

import numpy as np
import pytest
from docs import sharding_coverage
from numpy.testing.overrides import get_overridable_numpy_ufuncs

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


@pytest.mark.parametrize("ufunc", [ufunc for ufunc in get_overridable_numpy_ufuncs() if not ufunc.types], ids=str)
def test_ufuncs_of_text_work_tile_by_tile(ufunc):
    whole = np.array(["ab", "Cd", "12", "a b"])
    x = shard(whole, Sharding.tiled((2,)))
    with strict():
        try:
            expected = ufunc(whole, *TEXTS.get(ufunc.__name__, ()))
        except (TypeError, ValueError):
            return  # called by functions with a text of the result's length
        found = ufunc(x, *TEXTS.get(ufunc.__name__, ()))
        assert isinstance(found, ShardedArray)
        np.testing.assert_array_equal(found.numpy(), expected)
