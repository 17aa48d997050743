"""Factorizations of one divided matrix: QR and SVD by rows, LU and Cholesky by blocks of columns.

QR and SVD divide a tall or square matrix along its rows (a wide one is transposed). Each device factors its tile, and
only the triangular factors, with one row per column, are sent to all devices. LU and Cholesky divide a matrix along its
columns: the columns of each device in turn are sent to all devices, which update their own columns. No device has the
whole divided matrix, except for eigenvalues and eigenvectors of a symmetric matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ringlet.sharding.creation import place
from ringlet.sharding.execution.propagation import TileBoxes
from ringlet.sharding.execution.tile_execution import apply
from ringlet.sharding.layout.factors import FactorMap
from ringlet.sharding.layout.layout import WHOLE, Array, Layout
from ringlet.sharding.memory_modes import is_planning
from ringlet.sharding.products.contraction import numpy_error
from ringlet.sharding.resharding.pencils import all_gathered, moved_back, with_whole_axes
from ringlet.sharding.resharding.regions import IndexRange
from ringlet.sharding.resharding.reshard import materialized
from ringlet.sharding.resharding.tile_assembly import select_ranges
from ringlet.sharding.sharded_array import ShardedArray

_EFFORT = 16.0


def _placed(x: ShardedArray, values: Array) -> ShardedArray:
    return place(values, Layout.replicated(x._layout.num_devices, values.ndim), x._group)


def _floats(x: ShardedArray) -> ShardedArray:
    made: ShardedArray = x.astype(np.linalg.qr(np.empty((0, 0), x.dtype))[1].dtype, copy=False)
    return made


def _tall(x: ShardedArray) -> tuple[ShardedArray, Array, Array]:
    """Return a matrix in tiles of rows, its factor R, and the matrices by which the tiles' Q factors become its Q."""
    x = _floats(with_whole_axes(x, (1,)))
    count, width = x._layout.cuts[0].count, x.shape[1]

    def triangle(tiles: list[Array], out: Array, _: TileBoxes) -> None:
        r = np.linalg.qr(tiles[0], "r")
        out[: len(r)] = r
        out[len(r) :] = 0

    rule = FactorMap((("i", "j"),), ("i", None))
    tops = apply("qr", rule, triangle, [x], x.dtype, shape=(count * width, width), effort=_EFFORT)
    turns, r = np.linalg.qr(all_gathered(tops))
    return x, r, turns


def _orthonormal(x: ShardedArray, turns: Array) -> ShardedArray:
    """Return the Q factor of each tile of rows, multiplied by the rows of `turns` for that tile."""
    width, length = x.shape[1], -(-x.shape[0] // x._layout.cuts[0].count)

    def kernel(tiles: list[Array], out: Array, where: TileBoxes) -> None:
        first = where.result[0].start // max(length, 1) * width
        q = np.linalg.qr(tiles[0])[0]
        np.matmul(q, turns[first : first + q.shape[1]], out=out)

    made: ShardedArray = apply("qr", FactorMap((("i", "j"),), ("i", None)), kernel, [x], x.dtype, shape=x.shape)
    return made


def _qr(a: ShardedArray, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "r") or a.shape[0] < a.shape[1]:
        return NotImplemented
    x, r, turns = _tall(a)
    if mode == "r":
        return _placed(x, r)
    kind: Any = type(np.linalg.qr(np.empty((0, 0))))
    return kind(_orthonormal(x, turns), _placed(x, r))


def _svd(a: ShardedArray, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    rows, columns = a.shape
    if hermitian or (compute_uv and full_matrices and rows != columns):
        return NotImplemented
    x, r, turns = _tall(a if rows >= columns else a.T)
    if not compute_uv:
        return _placed(x, np.linalg.svd(r, compute_uv=False))
    left, values, right = np.linalg.svd(r)
    kind: Any = type(np.linalg.svd(np.empty((0, 0))))
    u, vh = _orthonormal(x, turns @ left), _placed(x, right)
    return kind(u, _placed(x, values), vh) if rows >= columns else kind(vh.T, _placed(x, values), u.T)


def least_squares(a: ShardedArray, b: Any, rcond: Any = None) -> Any:
    """Return the results of :func:`numpy.linalg.lstsq` for a tall matrix."""
    rows, columns = a.shape
    x, r, turns = _tall(a)
    q = _orthonormal(x, turns)
    tolerance = np.finfo(x.dtype).eps * max(rows, columns) if rcond is None else rcond
    projected = all_gathered(np.matmul(np.conj(q.T), b))
    found, _, rank, values = np.linalg.lstsq(r, projected, tolerance)
    residuals: Any = np.empty(0, values.dtype)
    if rank == columns and rows > columns:
        rest = np.abs(b - np.matmul(x, found)) ** 2
        residuals = np.sum(rest, axis=0, keepdims=b.ndim == 1).astype(values.dtype)
    else:
        residuals = _placed(x, residuals)
    return _placed(x, found), residuals, rank, _placed(x, values)


class _Blocks:
    """A square matrix in tiles of columns, which are eliminated from left to right."""

    def __init__(self, a: ShardedArray) -> None:
        if a.shape[0] != a.shape[1]:
            raise numpy_error(np.linalg.inv, a)
        self.layout = materialized(a)._layout
        self.matrix = _floats(with_whole_axes(a, (0,))).copy()
        size, count = a.shape[0], self.matrix._layout.cuts[1].count
        length = -(-size // count)
        self.bounds = [(start, min(start + length, size)) for start in range(0, size, max(length, 1))]

    def column(self, first: int, start: int, stop: int) -> Array:
        """Gather columns ``start:stop``, from row `first` down, on every device."""
        x = self.matrix
        ranges = (IndexRange(first, 1, len(x) - first), IndexRange(start, 1, stop - start))
        return select_ranges("slice", x, ranges, Layout.replicated(x._layout.num_devices, 2))._gathered()

    def update(self, x: ShardedArray, change: Callable[[Array, int], None], *, is_later: bool = False) -> None:
        """Call ``change(tile, first_column)`` for each tile of `x`; `is_later` places `x` right of the matrix."""

        def kernel(tiles: list[Array], out: Array, where: TileBoxes) -> None:
            out[...] = tiles[0]
            if out.size:
                change(out, self.matrix.shape[1] if is_later else where.result[1].start)

        apply("update", FactorMap((("i", "j"),), ("i", "j")), kernel, [x], x.dtype, out=x, effort=_EFFORT)


def _pivoted(panel: Array) -> tuple[Array, Array, int]:
    """Return the LU factors of a block of columns, the order of its rows, and the sign of that permutation."""
    order, sign = np.arange(len(panel)), 1
    if is_planning():
        return panel, order, sign
    panel = panel.copy()
    for j in range(panel.shape[1]):
        pivot = j + int(np.argmax(np.abs(panel[j:, j])))
        if pivot != j:
            panel[[j, pivot]], order[[j, pivot]], sign = panel[[pivot, j]], order[[pivot, j]], -sign
        if panel[j, j] != 0:
            panel[j + 1 :, j] /= panel[j, j]
            panel[j + 1 :, j + 1 :] -= np.outer(panel[j + 1 :, j], panel[j, j + 1 :])
    return panel, order, sign


def _elimination(start: int, stop: int, factors: Array, order: Array) -> Callable[[Array, int], None]:
    width = stop - start

    def step(tile: Array, first: int) -> None:
        if first >= stop:
            lower = np.tril(factors[:width], -1) + np.eye(width, dtype=factors.dtype)
            tile[start:] = tile[start:][order]
            tile[start:stop] = np.linalg.solve(lower, tile[start:stop])
            tile[stop:] -= factors[width:] @ tile[start:stop]
        elif first == start:
            tile[start:] = np.triu(factors)

    return step


def _eliminate(blocks: _Blocks, right: ShardedArray | None = None) -> tuple[int, Array]:
    """Reduce a matrix to upper triangular form by block elimination with pivoting, and transform `right` likewise.

    Returns the sign of the row permutation and the diagonal.
    """
    sign, diagonal = 1, []
    for start, stop in blocks.bounds:
        factors, order, swaps = _pivoted(blocks.column(start, start, stop))
        sign *= swaps
        diagonal.append(np.diagonal(factors))
        step = _elimination(start, stop, factors, order)
        blocks.update(blocks.matrix, step)
        if right is not None:
            blocks.update(right, step, is_later=True)
    return sign, np.concatenate([*diagonal, np.empty(0, blocks.matrix.dtype)])


def _substitution(start: int, stop: int, panel: Array) -> Callable[[Array, int], None]:
    def step(tile: Array, _: int) -> None:
        tile[start:stop] = np.linalg.solve(panel[start:stop], tile[start:stop])
        tile[:start] -= panel[:start] @ tile[start:stop]

    return step


def solve_by_blocks(a: Any, b: Any) -> Any:
    """Return the results of :func:`numpy.linalg.solve`, in tiles of columns if there are enough right-hand sides."""
    if not isinstance(a, ShardedArray):
        a = _placed(b, a)
    blocks = _Blocks(a)
    given = b.reshape(-1, 1) if b.ndim == 1 else b
    dtype = np.result_type(
        blocks.matrix.dtype, _floats(given).dtype if isinstance(given, ShardedArray) else given.dtype
    )
    blocks.matrix = blocks.matrix.astype(dtype, copy=False)
    if not isinstance(given, ShardedArray):
        given = _placed(a, given)
    cut = blocks.matrix._layout.cuts[1] if given.shape[1] >= blocks.matrix._layout.cuts[1].count else WHOLE
    right = moved_back(given.astype(dtype), Layout(a._layout.num_devices, (WHOLE, cut))).copy()
    _, diagonal = _eliminate(blocks, right)
    if (diagonal == 0).any() and not is_planning():
        raise np.linalg.LinAlgError("Singular matrix")
    for start, stop in reversed(blocks.bounds):
        blocks.update(right, _substitution(start, stop, blocks.column(0, start, stop)))
    return right.reshape(b.shape)


def _inv(a: ShardedArray) -> Any:
    if a.shape[0] != a.shape[1]:
        raise numpy_error(np.linalg.inv, a)
    layout = a._layout if a._layout.cuts[1].count > 1 else a._layout.with_cuts(a._layout.cuts[::-1])
    kind = _floats(a).dtype
    unit = np.broadcast_to(kind.type(0), a.shape) if is_planning() else np.eye(len(a), dtype=kind)
    identity = place(unit, layout.without_parts(), a._group)
    return moved_back(solve_by_blocks(a, identity), materialized(a)._layout)


def _slogdet(a: ShardedArray) -> Any:
    sign, diagonal = _eliminate(_Blocks(a))
    sizes = np.abs(diagonal)
    with np.errstate(divide="ignore"):
        parts = np.prod(diagonal / np.where(sizes == 0, 1, sizes)) * sign, np.sum(np.log(sizes))
    kind: Any = type(np.linalg.slogdet(np.eye(1)))
    return kind(*(_placed(a, np.asarray(x, d)) for x, d in zip(parts, (diagonal.dtype, sizes.dtype), strict=True)))


def _det(a: ShardedArray) -> Any:
    sign, diagonal = _eliminate(_Blocks(a))
    return _placed(a, np.asarray(np.prod(diagonal) * sign, diagonal.dtype))


def _cholesky_step(start: int, stop: int, top: Array, below: Array) -> Callable[[Array, int], None]:
    def step(tile: Array, first: int) -> None:
        if first >= stop:
            tile[stop:] -= below @ np.conj(below[first - stop : first - stop + tile.shape[1]].T)
        elif first == start:
            tile[:start], tile[start:stop], tile[stop:] = 0, top, below

    return step


def _cholesky(a: ShardedArray, /, *, upper: bool = False) -> Any:
    blocks = _Blocks(np.conj(a.T) if upper else a)
    for start, stop in blocks.bounds:
        panel, width = blocks.column(start, start, stop), stop - start
        top = below = panel
        if not is_planning():
            top = np.linalg.cholesky(panel[:width])
            below = np.conj(np.linalg.solve(top, np.conj(panel[width:].T)).T)
        blocks.update(blocks.matrix, _cholesky_step(start, stop, top, below))
    made = moved_back(blocks.matrix, blocks.layout)
    return np.conj(made.T) if upper else made


def _eigh(a: ShardedArray, **options: Any) -> Any:
    found: Any = np.linalg.eigh(all_gathered(a), **options)
    return type(found)(_placed(a, found[0]), place(found[1], a._layout.without_parts(), a._group))


# Functions of one divided matrix. If a function returns NotImplemented, the matrix is gathered.
DIVIDED: Mapping[str, Callable[..., Any]] = {
    "cholesky": _cholesky,
    "det": _det,
    "eigh": _eigh,
    "eigvalsh": lambda a, **options: _placed(a, np.linalg.eigvalsh(all_gathered(a), **options)),
    "inv": _inv,
    "qr": _qr,
    "slogdet": _slogdet,
    "svd": _svd,
    "svdvals": lambda x: _svd(x, compute_uv=False),
}
