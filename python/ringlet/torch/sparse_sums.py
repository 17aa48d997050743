"""The sum of sparse tensors of all ranks: their elements one after the other, of which those of one index are added."""

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
    """Sum COO tensors of one shape in place."""
    mine = tensor.coalesce()
    shape = [mine.sparse_dim(), *mine.shape]
    counts = member.all_gather(np.array([mine._nnz()]))
    shapes = member.all_gather(np.array(shape)).tolist()
    if shapes != shape * len(counts):
        raise InvalidArgumentError(
            f"all_reduce got a sparse tensor of the shape {tuple(mine.shape)}, {mine.sparse_dim()} dimensions of it "
            "sparse, and another rank has other dimensions: pass the same on all ranks."
        )
    count = int(counts.sum())
    indices = torch.empty(count, mine.sparse_dim(), dtype=torch.int64)
    values = torch.empty(count, *mine.values().shape[1:], dtype=mine.dtype)
    for whole, part in ((indices, mine.indices().t()), (values, mine.values())):
        copy_parts(member.all_gather(Flat(part).array), [whole])
    tensor.copy_(torch.sparse_coo_tensor(indices.t(), values, mine.shape).coalesce())
