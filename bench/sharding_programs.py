"""Small arrays in eight tiles: single functions, and programs of many small operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.peers.sharding_inputs import AXES
from bench.sharding_questions import Question
from ringlet import sharding
from ringlet.sharding import Mesh

__all__ = ["FUNCTIONS", "PROGRAMS", "small_questions", "title_of_small"]

_STEPS = 10


def life(field: Any) -> Any:
    """Run steps of Conway's Game of Life on a torus."""
    places = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    for _ in range(_STEPS):
        around = sum(np.roll(np.roll(field, i, 0), j, 1) for i, j in places)
        field = ((around == 3) | ((field == 1) & (around == 2))).astype(np.int8)
    return field


def ising(spins: Any, noise: Any, is_black: Any) -> Any:
    """Run half steps of the Ising model, on the black and on the white points of a torus."""
    for step in range(_STEPS):
        around = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1) + np.roll(spins, -1, 1)
        flips = (noise < np.exp(-0.8 * spins * around)) & (is_black if step % 2 == 0 else ~is_black)
        spins = np.where(flips, -spins, spins)
    return spins


def conjugate_gradients(b: Any) -> Any:
    """Run steps that solve ``5 p - (sum of the four neighbours) = b`` on a torus."""
    x, r = np.zeros_like(b), b.copy()
    p, rr = r, np.sum(r * r)
    for _ in range(_STEPS):
        q = 5.0 * p - np.roll(p, 1, 0) - np.roll(p, -1, 0) - np.roll(p, 1, 1) - np.roll(p, -1, 1)
        alpha = rr / np.sum(p * q)
        x, r = x + alpha * p, r - alpha * q
        before, rr = rr, np.sum(r * r)
        p = r + (rr / before) * p
    return x


def _inputs(size: int) -> tuple[Any, ...]:
    numbers = np.random.default_rng(0)
    noise = numbers.random((size, size))
    return noise, (noise < 0.3).astype(np.int8), np.where(noise < 0.5, -1, 1), np.indices((size, size)).sum(0) % 2 == 0


# Title: arrays used, by their place in `_inputs`, and the function.
FUNCTIONS: dict[str, tuple[tuple[int, ...], Callable[..., Any]]] = {
    "sum 64 x 64": ((0,), np.sum),
    "where 64 x 64": ((3, 0), lambda mask, x: np.where(mask, x, 0.0)),
    "roll 64 x 64": ((0,), lambda x: np.roll(x, 1, 0)),
}
PROGRAMS: dict[str, tuple[tuple[int, ...], Callable[..., Any]]] = {
    "Life 128 x 128": ((1,), life),
    "Ising 128 x 128": ((2, 0, 3), ising),
    "conjugate gradients 128 x 128": ((0,), conjugate_gradients),
}


def title_of_small(name: str, variant: str) -> str:
    """Return the title of the times of a question."""
    return f"{name}, {variant}"


def small_questions(name: str) -> Iterator[Question]:
    """Yield the calls of a function or a program, tiled and untiled."""
    places, function = (FUNCTIONS | PROGRAMS)[name]
    arrays = [_inputs(int(name.rsplit(maxsplit=1)[-1]))[place] for place in places]
    sharded = [sharding.shard(array.copy(), Mesh(AXES).sharding("x", "y")) for array in arrays]
    for variant, operands in (("tiled", sharded), ("untiled", arrays)):
        yield Question(
            title_of_small(name, variant),
            lambda operands=operands: function(*operands),
            lambda: np.asarray(function(*arrays)),
            variant == "untiled",
            tolerance=1e-9,
        )
