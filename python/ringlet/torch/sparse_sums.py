"""The sum of sparse tensors over all ranks: elements are concatenated, and elements with equal indices are added."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ringlet.collectives import Member
from ringlet.errors import InvalidArgumentError
from ringlet.torch.tensors import Flat, copy_parts

__all__ = ["all_reduce_sparse"]


@torch.no_grad()  # type: ignore[untyped-decorator]
def all_reduce_sparse(member: Member, tensor: Any) -> None:
    """Sum the COO tensors of all ranks, which have the same shape, in place."""
    mine = tensor.coalesce()
    shape = [mine.sparse_dim(), *mine.shape]
    rows = member.all_gather(np.array([mine._nnz(), *shape]))
    if rows.size != member.num_ranks * (1 + len(shape)) or (rows.reshape(member.num_ranks, -1)[:, 1:] != shape).any():
        raise InvalidArgumentError(
            f"all_reduce got a sparse tensor of shape {tuple(mine.shape)} with {mine.sparse_dim()} sparse dimensions, "
            "but another rank passed one with a different shape or number of sparse dimensions: pass tensors with the "
            "same shape and number of sparse dimensions on all ranks."
        )
    count = int(rows.reshape(member.num_ranks, -1)[:, 0].sum())
    indices = torch.empty(count, mine.sparse_dim(), dtype=torch.int64)
    values = torch.empty(count, *mine.values().shape[1:], dtype=mine.dtype)
    for whole, part in ((indices, mine.indices().t()), (values, mine.values())):
        copy_parts(member.all_gather(Flat(part).array), [whole])
    tensor.copy_(torch.sparse_coo_tensor(indices.t(), values, mine.shape).coalesce())
