"""Textbook algorithms in plain NumPy give on tiles what they give on the whole, wherever the tiles lie."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from ringlet.sharding import Mesh, mode, shard, strict
from ringlet.sharding.resharding.device_buffers import POISONED

SIZE = 12
IDENTITY = np.eye(SIZE)


def lu(x):
    for k in range(SIZE - 1):
        x[k + 1 :, k] /= x[k, k]
        x[k + 1 :, k + 1 :] -= np.outer(x[k + 1 :, k], x[k, k + 1 :])
    return x


def cholesky(x):
    matrix, lower = x @ x.T + SIZE * IDENTITY, np.zeros_like(x)
    for j in range(SIZE):
        lower[j, j] = np.sqrt(matrix[j, j] - (lower[j, :j] ** 2).sum())
        lower[j + 1 :, j] = (matrix[j + 1 :, j] - lower[j + 1 :, :j] @ lower[j, :j]) / lower[j, j]
    return lower


def gram_schmidt(x):
    q = x.copy()
    for j in range(SIZE):
        for k in range(j):
            q[:, j] -= (q[:, k] @ q[:, j]) * q[:, k]
        q[:, j] /= np.sqrt(q[:, j] @ q[:, j])
    return q


def conjugate_gradients(x):
    matrix = x @ x.T + SIZE * IDENTITY
    solution, rest = np.zeros(SIZE), np.ones(SIZE)
    direction, left = rest, rest @ rest
    while left > 1e-20:
        moved = matrix @ direction
        length = left / (direction @ moved)
        solution, rest = solution + length * direction, rest - length * moved
        left, before = rest @ rest, left
        direction = rest + left / before * direction
    return solution


def shortest_paths(x):
    lengths = np.abs(x) + 1
    for k in range(SIZE):
        lengths = np.minimum(lengths, lengths[:, k, None] + lengths[None, k])
    return lengths


def red_and_black(x):
    is_red = np.indices((SIZE - 2, SIZE - 2)).sum(axis=0) % 2 == 0
    for colour in (is_red, ~is_red) * 3:
        around = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]
        x[1:-1, 1:-1] = np.where(colour, around / 4, x[1:-1, 1:-1])
    return x


def game_of_life(x):
    field = (x > 0).astype(np.int8)
    for _ in range(4):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
        around = sum(np.roll(field, shift, (0, 1)) for shift in shifts)
        field = ((around == 3) | ((around == 2) & (field == 1))).astype(np.int8)
    return field


def attention(x):
    query, key, value = np.split(np.concatenate([x, x[::-1], x.T]), 3)
    scores = np.where(np.tri(SIZE, dtype=bool), query @ key.T / np.sqrt(SIZE), -np.inf)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return scores / scores.sum(axis=-1, keepdims=True) @ value


def k_means(x):
    centres = x[:3].copy()
    for _ in range(4):
        nearest = ((x[:, None] - centres) ** 2).sum(axis=-1).argmin(axis=1)
        is_near = (nearest[:, None] == np.arange(3)).astype(x.dtype)
        centres = is_near.T @ x / np.maximum(is_near.sum(axis=0), 1)[:, None]
    return centres


def greatest_eigenvector(x):
    centred = (x - x.mean(axis=0)) / x.std(axis=0, ddof=1)
    covariance, vector = centred.T @ centred / (len(x) - 1), np.ones(SIZE)
    for _ in range(50):
        vector = covariance @ vector
        vector /= np.linalg.norm(vector)
    return vector


ALGORITHMS = [
    *(lu, cholesky, gram_schmidt, conjugate_gradients, shortest_paths, red_and_black, game_of_life, attention, k_means),
    greatest_eigenvector,
]
# Axes of the mesh, and which cut rows and columns; 12 rows and columns make uneven and empty tiles, too.
LAYOUTS = [({"x": 1}, ()), ({"x": 5}, ("x",)), ({"x": 8}, (None, "x")), ({"x": 2, "y": 2}, ("x", "y"))]


@pytest.mark.parametrize("memory", ["shared", "copy"])
@pytest.mark.parametrize(("axes", "entries"), LAYOUTS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_algorithm_gives_what_it_gives_on_the_whole_and_gathers_nothing(algorithm, axes, entries, memory):
    matrix = np.random.default_rng(7).standard_normal((SIZE, SIZE))
    expected = algorithm(matrix.copy())
    with contextlib.ExitStack() as stack:
        stack.callback(POISONED.reset, POISONED.set(memory == "copy"))
        stack.enter_context(mode(memory))
        with strict():
            found = algorithm(shard(matrix.copy(), Mesh(axes).sharding(*entries)))
        np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9)
        assert found.dtype == expected.dtype
