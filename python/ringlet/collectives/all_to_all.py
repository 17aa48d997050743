"""All-to-all along any axes, on top of the core's all-to-all along axis 0.

If the axes differ, blocks are sent with `concat_axis` as their first axis, so that concatenation in memory joins them;
the receiving rank moves the axis back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ringlet import _core
from ringlet.collectives.adapters.array_adapters import in_kind_of
from ringlet.collectives.argument_parsing import axis_in, counts_of, equal_counts
from ringlet.collectives.buffers import Array, Output, as_buffer, copy_if_overlapping
from ringlet.errors import InvalidArgumentError


def all_to_all(
    core: _core.Member, x: Any, axes: tuple[Any, Any], counts: Iterable[int] | None, out: Array | None
) -> Any:
    """Exchange blocks of an array of any layout, along the axes (split, concat)."""
    buffer = as_buffer(x)
    split, concat = axis_in(buffer.ndim, axes[0], "split_axis"), axis_in(buffer.ndim, axes[1], "concat_axis")
    if counts is None:
        size = equal_counts(buffer.shape, split, core.num_ranks, "split_axis")
        sizes = None
    else:
        sizes = counts_of(counts, buffer.shape, split, core.num_ranks)
        size = sizes[core.rank]
    shape: list[int | None] = [*buffer.shape[:split], size, *buffer.shape[split + 1 :]]
    # With unequal blocks the total size along concat_axis depends on all ranks.
    shape[concat] = None if sizes is not None else core.num_ranks * (size if split == concat else buffer.shape[concat])
    output = None if out is None else Output(out, tuple(shape), buffer.dtype, axis=concat)
    if split or concat:  # compare the axes here, because the core does not
        core.barrier(f"all_to_all(split_axis={split}, concat_axis={concat})")
    if split == concat:
        result = _exchange(core, np.moveaxis(buffer, split, 0), sizes, concat, output)
    elif sizes is None:
        result = _exchange(core, _rows_of_equal_blocks(buffer, split, concat, core.num_ranks), None, concat, output)
    else:
        result = _exchange_unequal(core, buffer, (split, concat), sizes, output)
    return in_kind_of(x, result, is_own=True) if output is None else result


def _exchange(core: _core.Member, rows: Array, counts: list[int] | None, concat: int, output: Output | None) -> Any:
    rows = np.ascontiguousarray(rows)
    if output is None:
        return np.moveaxis(core.all_to_all(rows, counts, None), 0, concat)
    core.all_to_all(copy_if_overlapping(output.direct, rows), counts, output.direct)
    return output.store()


def _rows_of_equal_blocks(buffer: Array, split: int, concat: int, num_ranks: int) -> Array:
    """Return all blocks concatenated, each with `concat` as its first axis: shape (num_ranks * rows, ...)."""
    shape = buffer.shape
    cut = buffer.reshape(*shape[:split], num_ranks, shape[split] // num_ranks, *shape[split + 1 :])
    moved = np.moveaxis(cut, (split, concat if concat < split else concat + 1), (0, 1))
    rows: Array = np.ascontiguousarray(moved).reshape(num_ranks * shape[concat], *moved.shape[2:])
    return rows


def _exchange_unequal(
    core: _core.Member, buffer: Array, axes: tuple[int, int], counts: list[int], output: Output | None
) -> Any:
    """Exchange blocks of unequal size as flat elements, because their rows differ in length."""
    # Flat elements carry no shapes, so the ranks first exchange counts and shapes to detect mismatches.
    split, concat = axes
    shape = list(buffer.shape)
    rows = shape.pop(concat)
    layouts = core.all_gather(np.array([[*counts, rows, *shape]]), 0, None)
    _check_blocks(layouts, len(counts))
    ends = np.cumsum(counts)[:-1]
    blocks = [np.moveaxis(block, concat, 0).reshape(-1) for block in np.split(buffer, ends, axis=split)]
    received = core.all_to_all(np.concatenate(blocks), [block.size for block in blocks], None)
    shape[split if split < concat else split - 1] = counts[core.rank]
    joined = np.moveaxis(received.reshape(int(layouts[:, len(counts)].sum()), *shape), 0, concat)
    if output is None:
        return joined
    return output.fill(joined)


def _check_blocks(layouts: Array, num_ranks: int) -> None:
    """Raise an error if blocks cannot be joined.

    Each row of `layouts` describes one rank's array: the counts, the size along `concat_axis`, and the other sizes.
    """
    first = layouts[0].tolist()
    for rank, row in enumerate(layouts.tolist()):
        if row[:num_ranks] != first[:num_ranks]:
            raise InvalidArgumentError(
                f"cannot join blocks of unequal size along concat_axis: counts are {first[:num_ranks]} at rank 0 and "
                f"{row[:num_ranks]} at rank {rank}. Pass the same counts on all ranks, or set split_axis equal to "
                "concat_axis."
            )
        if row[num_ranks + 1 :] != first[num_ranks + 1 :]:
            raise InvalidArgumentError(
                f"cannot join blocks along concat_axis: the sizes of the other axes of x are {first[num_ranks + 1 :]} "
                f"at rank 0 and {row[num_ranks + 1 :]} at rank {rank}. Pass the same sizes on all ranks."
            )
