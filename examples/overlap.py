"""Gradients of a network are summed while earlier layers are still computed: ``ringlet run -n 2 overlap.py``.

The backward pass goes from the last layer to the first; the sum of each layer's gradient starts as soon as it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ringlet.collectives import Member, Op, init_process_group

Array = np.ndarray[Any, np.dtype[Any]]
WIDTHS = (64, 256, 256, 1)
ROWS = 512
RATE = 0.05


def gradient_step(member: Member, weights: Sequence[Array], x: Array, y: Array) -> float:
    """Take one step of gradient descent; return the loss of this rank."""
    activations = [x]
    for weight in weights[:-1]:
        activations.append(np.tanh(activations[-1] @ weight))
    error = activations[-1] @ weights[-1] - y
    upstream = 2 * error / len(x)
    works = []
    for layer in reversed(range(len(weights))):
        gradient = activations[layer].T @ upstream
        works.append((layer, member.all_reduce_async(gradient, Op.MEAN, out=gradient)))
        if layer:  # runs while the gradient of this layer is summed
            upstream = (upstream @ weights[layer].T) * (1 - activations[layer] ** 2)
    for layer, work in works:
        weights[layer][...] -= RATE * work.wait()
    return float((error**2).mean())


def train(member: Member, num_steps: int = 20) -> list[float]:
    """Train on data of this rank; return the mean loss of each step."""
    random = np.random.default_rng(0)
    weights = [random.normal(0, size**-0.5, (size, next_size)) for size, next_size in pairwise(WIDTHS)]
    x = np.random.default_rng(1 + member.rank).normal(size=(ROWS, WIDTHS[0]))
    y = np.sin(x[:, :1])
    losses = [gradient_step(member, weights, x, y) for _ in range(num_steps)]
    means: list[float] = member.all_reduce(losses, Op.MEAN).tolist()
    return means


if __name__ == "__main__":
    with init_process_group() as member:
        losses = train(member)
        if member.rank == 0:
            print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
