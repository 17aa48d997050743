"""What docs/sharding.md says of functions is so: those that work tile by tile do, and the others gather."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from ringlet.errors import GatherWarning
from ringlet.sharding import Sharding, shard
from ringlet.sharding.execution.array_function_table import implementations, numpy_function

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "sharding.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (.*) \| (.*) \|$", PAGE, re.MULTILINE)
COLUMNS = [re.findall(r"`([\w.]+)`", " ".join(column)) for column in zip(*ROWS, strict=True)]

# Gather for some arguments only, or change their array: called below.
OTHERS = {"inv", "solve", "det", "put", "place", "fill_diagonal", "sort", "pad"}


def functions(names):
    """Functions of NumPy that have such a name, but ufuncs, all of which work tile by tile."""
    found = {name: numpy_function(name) or numpy_function(f"linalg.{name}") for name in names}
    no_functions = (type, np.ufunc)
    return {name: each for name, each in found.items() if callable(each) and not isinstance(each, no_functions)}


def test_functions_of_the_first_column_work_tile_by_tile_and_those_of_the_second_do_not():
    tiled, gathered = map(functions, COLUMNS)
    assert len(tiled) >= 50
    assert len(gathered) > 25
    assert [name for name, function in tiled.items() if function not in implementations()] == []
    assert {name for name, function in gathered.items() if function in implementations()} == OTHERS


def x():
    return shard(np.arange(1.0, 17).reshape(4, 4) ** 1.5, Sharding.tiled((4, 1)))


@pytest.mark.parametrize(
    "call",
    [
        lambda: np.linalg.inv(x()),
        lambda: np.linalg.det(x()),
        lambda: np.linalg.solve(x(), np.ones(4)),
        lambda: np.sort(x(), axis=0),
        lambda: np.argpartition(x(), 1, axis=0),
        lambda: np.put(x(), 1, 2),
        lambda: np.place(x(), [True] * 16, [2, 3]),
        lambda: np.fill_diagonal(x(), 0),
        lambda: x()[x() > 3],
        lambda: x()[[0, 1], [1, 2]],
        lambda: np.fft.fft(x(), axis=1),
        lambda: np.pad(x(), 1, "mean"),
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
        lambda: np.sort(x(), axis=1),
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
