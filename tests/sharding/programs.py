"""Programs on sharded arrays, with digests of results and bytes sent, to compare memory modes."""

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


def _scaled(x: Any) -> Any:
    y = x.copy()
    y[y > 0] *= -2
    y[y < -3] = np.arange(np.count_nonzero(y < -3))
    return y


def _written_at(x: Any) -> Any:
    y, places = x.copy(), np.argsort(x, axis=0)
    y[[0, 5, 0], [1, 2, 1]] = [7, 8, 9]
    np.put_along_axis(y, places[:2], 3, axis=0)
    np.put(y, [1, -1], x[0, :2])
    np.fill_diagonal(y, 4)
    return y[places[:, 0]]


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
    "sorted line": lambda x: np.sort(x, axis=None),
    "order of a line": lambda x: x.ravel()[np.argsort(x, axis=None)],
    "distinct": lambda x: np.concatenate(np.unique(np.round(x), return_inverse=True, return_counts=True), axis=None),
    "median": lambda x: np.quantile(x, [0.1, 0.5, 0.8]) + np.median(x),
    "medians": lambda x: np.median(x, axis=0),
    "transformed": lambda x: np.fft.ifft(np.fft.fft(x, axis=0) * 2, axis=0),
    "transformed line": lambda x: np.fft.rfft(np.resize(x, 64)),
    "long running sums": lambda x: np.cumsum(x) + np.subtract.accumulate(x, axis=0).ravel(),
    "chosen by a mask": lambda x: np.concatenate([x[x > 0], x[x[:, 0] > 0].mean(axis=0)]),
    "scaled by a mask": _scaled,
    "written at places": _written_at,
    "counted": lambda x: np.histogram(x, 5)[0] + np.histogram(x, 5, weights=x)[0],
    "slopes": lambda x: np.gradient(x, axis=0),
    "factored": lambda x: np.concatenate([np.linalg.qr(x).Q, np.linalg.svd(x, compute_uv=False)[None]]),
    "least squares": lambda x: np.linalg.lstsq(x, x[:, 0] + 1, rcond=None)[0],
    "solved": lambda x: np.linalg.solve(x.T @ x + 3 * np.eye(7), x.T),
    "lower triangle": lambda x: np.linalg.cholesky(x.T @ x + 3 * np.eye(7)),
}

SPECS: list[tuple[Any, ...]] = [("x", None), ("x", "y"), ("y", "x"), (("y", "x"),), (None, "x"), ()]


def digests(mesh: Mesh, memory: Any) -> dict[str, tuple[str, int]]:
    """Return a digest of the result of each program and the bytes sent, for every placement of the arrays."""
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
