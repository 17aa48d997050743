"""Programs on sharded arrays, and what each computed and sent, to hold one way of keeping memory against another."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ringlet.errors import GatherWarning
from ringlet.sharding import Mesh, explain, mode, shard
from ringlet.sharding.halo.conv import conv_general
from ringlet.sharding.halo.pooling import max_pool
from ringlet.sharding.halo.stencil import map_halo
from tests.sharding.sweep import poisoned

__all__ = ["PROGRAMS", "digests"]


def _attention(x: Any) -> Any:
    scores = x @ x.T
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ x


def _written(x: Any) -> Any:
    y = x.copy()
    before = y[2:5]
    y[1:4] = before * 2
    y += x
    y[y > 3] = 0
    return np.concatenate([y, before])


def _partial_twice(x: Any) -> Any:
    total = x.sum(axis=0)
    return np.stack([total + x.sum(axis=0), total * 2, np.abs(total)])


def _standardized(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def _convolved(x: Any) -> Any:
    image = x[None, :, :, None]
    kernel = np.arange(18, dtype=np.float32).reshape(3, 3, 1, 2)
    maps = conv_general(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return max_pool(maps, (3, 3), (2, 2), "SAME")


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: np.exp(x) + x.T.T,
    "sum": lambda x: x.sum(),
    "sums": lambda x: x.sum(axis=0) + x.sum(axis=1)[:7],
    "partial sums": _partial_twice,
    "largest": lambda x: np.max(x, axis=0) - np.min(x),
    "place of the largest": lambda x: np.argmax(x, axis=0),
    "standardized": _standardized,
    "products": lambda x: x.T @ x + np.einsum("ij,ik->jk", x, x),
    "attention": _attention,
    "stencil": lambda x: x[2:] + x[:-2] - 2 * x[1:-1],
    "convolved": _convolved,
    "periodic stencil": lambda x: map_halo(lambda u: u[2:, 1:-1] - u[:-2, 1:-1], x, 1, "periodic"),
    "rolled": lambda x: np.roll(x, 3, axis=0)[::-2],
    "joined": lambda x: np.concatenate([x, x[::-1]], axis=0).reshape(-1, 7),
    "padded": lambda x: np.pad(x, 2),
    "chosen": lambda x: np.where(x > 0, np.take(x, [8, *range(8)], axis=0), -1),
    "sorted": lambda x: np.sort(x, axis=0),
    "running sums": lambda x: np.cumsum(x, axis=1),
    "written": _written,
}

SPECS: list[tuple[Any, ...]] = [("x", None), ("x", "y"), ("y", "x"), (("y", "x"),), (None, "x"), ()]


def digests(mesh: Mesh, memory: Any) -> dict[str, tuple[str, int]]:
    """What each program gave, as a digest, and how many bytes were sent for it; for arrays of every placement."""
    values = np.random.default_rng(5).standard_normal((9, 7)).astype(np.float32)
    found = {}
    with mode(memory), poisoned(), warnings.catch_warnings():
        warnings.simplefilter("ignore", GatherWarning)
        for name, program in PROGRAMS.items():
            for spec in SPECS:
                with explain() as report:
                    result = np.asarray(program(shard(values.copy(), mesh.sharding(*spec))))
                text = f"{result.dtype} {result.shape}".encode() + result.tobytes()
                found[f"{name} {spec}"] = hashlib.sha256(text).hexdigest()[:16], report.nbytes
    return found
