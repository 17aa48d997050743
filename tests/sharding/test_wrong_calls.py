"""Random calls, right and wrong: NumPy's results, and errors of its classes that name the same facts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ringlet
from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, shard

ARRAYS = [
    np.arange(12.0).reshape(3, 4),
    np.arange(6.0),
    np.arange(24).reshape(2, 3, 4),
    np.arange(4).reshape(4, 1) > 1,
    np.array(3.0),
    np.empty((0, 3)),
]

numbers = st.integers(-9, 9)
axes = st.sampled_from([None, 0, 1, -1, 2, -3, 1.5, (0, 1), "a"])
shapes = st.sampled_from([(12,), (5,), (-1, -1), (3, -1), (-1, 5), 3.5, (0, -1), "a", (4, 3), (-2, 6)])
indices = numbers | st.sampled_from([[2, -1], [7, 0], np.array([[1]]), 1.5, [0.5], np.array([0.5]), "a", [True, False]])
values = st.sampled_from([1, -2.5, [1, 2, 3], np.ones((2, 2)), np.ones(4), "a", 1j, None])
modes = st.sampled_from(["raise", "wrap", "clip", "foo"])
sections = st.sampled_from([1, 2, 3, 0, -1, [1, 2], [9], 1.5])
entries = (
    numbers
    | st.builds(slice, st.none() | numbers, st.none() | numbers, st.sampled_from([None, 1, -1, 2, 0]))
    | st.sampled_from([None, ..., 1.5, "a", True, [1, -2], np.array([3]), np.array(1.0), np.array([[0.5]])])
    | st.sampled_from([np.array([True, False, True]), np.ones((3, 4), bool), np.zeros((4, 4), bool)])
)
keys = entries | st.lists(entries, min_size=1, max_size=3).map(tuple)

# What is called with an array, and what with besides.
CALLS: dict[str, tuple[Any, ...]] = {
    "getitem": (lambda x, key: x[key], keys),
    "setitem": (lambda x, key, value: x.__setitem__(key, value), keys, values),
    "take": (lambda x, i, axis, mode: np.take(x, i, axis, mode=mode), indices, axes, modes),
    "put": (np.put, indices, values, modes),
    "delete": (np.delete, indices, axes),
    "insert": (np.insert, indices, values, axes),
    "compress": (lambda x, i, axis: np.compress(i, x, axis), indices, axes),
    "repeat": (np.repeat, indices, axes),
    "roll": (np.roll, indices, axes),
    "tile": (np.tile, indices),
    "pad": (np.pad, indices),
    "split": (np.split, sections, axes),
    "array_split": (np.array_split, sections, axes),
    "reshape": (np.reshape, shapes),
    "broadcast_to": (np.broadcast_to, shapes),
    "transpose": (np.transpose, indices),
    "moveaxis": (np.moveaxis, axes, indices),
    "swapaxes": (np.swapaxes, axes, axes),
    "concatenate": (lambda x, axis: np.concatenate([x, x], axis), axes),
    "stack": (lambda x, axis: np.stack([x, x], axis), axes),
    "diff": (np.diff, numbers, axes),
    "reduceat": (np.add.reduceat, indices, axes),
    "norm": (lambda x, axis: np.linalg.norm(x, axis=axis), axes),
    "fill": (lambda x, value: x.fill(value), values),
    "item": (lambda x, i: x.item(i), indices),
    "clip": (lambda x, value: np.clip(x, value, 3), values),
    **{
        name: (getattr(np, name), axes)
        for name in (
            "sum",
            "max",
            "argmin",
            "cumsum",
            "mean",
            "std",
            "sort",
            "flip",
            "squeeze",
            "expand_dims",
            "unique",
        )
    },
}


def result_of(call: Any, x: Any, arguments: list[Any]) -> tuple[Any, Any]:
    """What a call gives, and what the array is after it; or the error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", GatherWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        try:
            found = call(x, *arguments)
        except Exception as error:
            return error, None
        return [np.asarray(part) for part in found] if isinstance(found, (list, tuple)) else found, np.asarray(x)


def first_public(kind: type[BaseException]) -> type[BaseException]:
    """The class itself or its first base that programs can name."""
    return next(base for base in kind.__mro__ if not base.__name__.startswith("_"))


@st.composite
def wrong_and_right_calls(draw: st.DrawFn, name: str) -> tuple[np.ndarray, list[Any], Sharding]:
    x = draw(st.sampled_from(ARRAYS))
    cut = [Sharding.replicated(1)]
    if x.ndim:
        ones = (1,) * (x.ndim - 1)
        cut += [Sharding.tiled((3, *ones)), Sharding.tiled((*ones, 2))]
    if x.ndim > 1:
        cut += [Sharding.tiled((2, 2, *ones[1:]))]
    return x, [draw(argument) for argument in CALLS[name][1:]], draw(st.sampled_from(cut))


@pytest.mark.parametrize("name", CALLS)
@given(data=st.data())
def test_a_call_gives_or_raises_what_it_does_for_the_whole(name, data):
    x, arguments, sharding = data.draw(wrong_and_right_calls(name))
    expected, whole = result_of(CALLS[name][0], x.copy(), arguments)
    found, cut = result_of(CALLS[name][0], shard(x.copy(), sharding), arguments)
    if isinstance(expected, Exception):
        assert isinstance(found, first_public(type(expected))), f"{found!r}, and not {expected!r}"
        if isinstance(expected, IndexError):
            assert str(found) == str(expected)
    else:
        assert not isinstance(found, Exception), f"{found!r}, and not {expected!r}"
        np.testing.assert_array_equal(cut, whole)
        for one, other in zip(found, expected, strict=True) if isinstance(expected, list) else [(found, expected)]:
            if expected is None:
                assert found is None
            else:
                np.testing.assert_allclose(np.asarray(one, np.asarray(other).dtype), other, rtol=1e-12)


ONE_REPLICA = ringlet.MirroredStrategy(["CPU:0"])


@pytest.mark.parametrize(
    "call",
    [
        lambda wrong: shard(np.ones(4), wrong),
        lambda wrong: ringlet.sharding.ShardedArray(np.ones(4), wrong),
        lambda wrong: Sharding.tiled((2, 1)).of_tuple([wrong]),
        Sharding.parse,
        lambda wrong: ONE_REPLICA.extended.update(wrong, abs),
        lambda wrong: ONE_REPLICA.run(abs, args=wrong),
        lambda wrong: ringlet.Variable(np.ones(3)).scatter_add(wrong),
    ],
)
def test_an_error_shows_the_beginning_of_a_wrong_array(call):
    with pytest.raises((TypeError, ValueError), match=r"array\(.*\.\.\. of shape \(1000, 2\)") as caught:
        call(np.linspace(0, 1, 2000).reshape(1000, 2))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400
