"""Conversion of tensors to flat arrays for collectives, and of torch's reductions to operations on arrays."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from ringlet.collectives import Op
from ringlet.collectives.collective_dtypes import is_known
from ringlet.errors import InvalidArgumentError

__all__ = [
    "Flat",
    "Reduction",
    "as_array",
    "check_writable",
    "checked",
    "copy_parts",
    "described",
    "item_count",
    "joined",
    "reduction_of",
]

Array = np.ndarray[Any, np.dtype[Any]]

_NARROW = {
    getattr(torch, name): name
    for name in ("bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}
_ML_DTYPES: dict[Any, np.dtype[Any]] = {}
if importlib.util.find_spec("ml_dtypes") is not None:
    import ml_dtypes

    for _dtype, _name in _NARROW.items():
        _ML_DTYPES[_dtype] = np.dtype(getattr(ml_dtypes, _name))
        is_known(_ML_DTYPES[_dtype])  # registers the dtype with the core
_BYTES = "|u1"

_KINDS = torch.distributed.ReduceOp.RedOpType
_OPS = {
    _KINDS.SUM: Op.SUM,
    _KINDS.AVG: Op.MEAN,
    _KINDS.PRODUCT: Op.PROD,
    _KINDS.MIN: Op.MIN,
    _KINDS.MAX: Op.MAX,
    _KINDS.BAND: Op.AND,
    _KINDS.BOR: Op.OR,
    _KINDS.BXOR: Op.XOR,
    _KINDS.PREMUL_SUM: Op.SUM,
}
_BOOL_OPS = {Op.SUM: Op.OR, Op.PROD: Op.AND}


def checked(tensors: Sequence[Any], call: str) -> list[Any]:
    """Return the tensors, detached from autograd; raise an error if the backend does not support one of them."""
    for tensor in tensors:
        if not tensor.is_cpu:
            raise InvalidArgumentError(
                f"{call} got a tensor on {tensor.device}: the ringlet backend supports tensors in CPU memory only. "
                'Pass x.cpu(), or use a group of another backend: torch.distributed.new_group(backend="nccl").'
            )
        if tensor.layout is not torch.strided:
            raise InvalidArgumentError(
                f"{call} got a tensor of layout {tensor.layout}: the ringlet backend supports strided tensors, "
                "and sparse_coo tensors in all_reduce with SUM. Pass x.to_dense()."
            )
        if tensor.is_quantized:
            raise InvalidArgumentError(f"{call} got a quantized tensor: pass x.int_repr(), or x.dequantize().")
    return [tensor.detach() if tensor.requires_grad else tensor for tensor in tensors]


def described(tensor: Any) -> str:
    """Return the dtype and number of elements of a tensor as text, such as ``float32[6]``."""
    return f"{str(tensor.dtype).removeprefix('torch.')}[{tensor.numel()}]"


def check_writable(tensors: Sequence[Any], call: str) -> None:
    """Raise an error for an expanded output, whose elements share memory: `copy_` would fail after the transfer."""
    for tensor in tensors:
        if tensor.numel() and any(
            stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
        ):
            raise InvalidArgumentError(
                f"{call} got an output of shape {tuple(tensor.shape)} and strides {tensor.stride()}, whose elements "
                "share memory: pass a tensor that is not expanded, such as x.clone()."
            )


class Flat:
    """A flat array on the memory of a tensor, or on a contiguous copy of the tensor."""

    __slots__ = ("_copy", "_tensor", "array")

    def __init__(self, tensor: Any, as_bytes: bool = False) -> None:
        self._tensor = tensor
        self._copy = None
        if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            self._copy = tensor = tensor.resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
        self.array = as_array(tensor, as_bytes)

    def store(self) -> None:
        """Copy the array back to the tensor; no effect if they share memory."""
        if self._copy is not None:
            _copy(self._copy, self._tensor)


class _Memory:
    """The memory of a contiguous tensor for NumPy; after ``Tensor.numpy()``, torch could not resize the tensor."""

    __slots__ = ("__array_interface__", "_tensor")

    def __init__(self, tensor: Any, size: int, kind: str) -> None:
        self._tensor = tensor
        data = tensor.data_ptr(), False
        self.__array_interface__ = {"data": data, "shape": (size,), "typestr": kind, "version": 3}


def as_array(tensor: Any, as_bytes: bool = False) -> Array:
    """View a contiguous tensor as a flat array, of uint8 if `as_bytes` or if NumPy and ml_dtypes lack its dtype."""
    if not as_bytes and (ml_dtype := _ML_DTYPES.get(tensor.dtype)) is not None:
        return np.asarray(_Memory(tensor, tensor.numel(), f"u{ml_dtype.itemsize}")).view(ml_dtype)
    kind, width = (_BYTES, tensor.element_size()) if as_bytes else _numpy_kind(tensor.dtype)
    return np.asarray(_Memory(tensor, tensor.numel() * width, kind))


@lru_cache
def _numpy_kind(dtype: Any) -> tuple[str, int]:
    """Return NumPy's type string for a tensor's array, and the number of array items for each element of the tensor."""
    with contextlib.suppress(TypeError):  # NumPy does not have this dtype
        if dtype not in _NARROW:
            return torch.empty(0, dtype=torch.uint8).view(dtype).numpy().dtype.str, 1
    return _BYTES, dtype.itemsize


def _copy(source: Any, out: Any) -> None:
    """Copy to an output, which may be an inference tensor that another thread created."""
    if out.is_inference():
        with torch.inference_mode():
            out.copy_(source)
    else:
        out.copy_(source)


def item_count(tensor: Any) -> int:
    """Return the number of items of the tensor's array: its elements, or bytes if the array is of uint8."""
    return int(tensor.numel() * (1 if tensor.dtype in _ML_DTYPES else _numpy_kind(tensor.dtype)[1]))


def joined(tensors: Sequence[Any]) -> Array:
    """Return the elements of tensors of one dtype as one array; a single contiguous tensor is not copied."""
    if len(tensors) == 1:
        return Flat(tensors[0]).array
    return as_array(torch.cat([tensor.reshape(-1) for tensor in tensors]))


def copy_parts(array: Array, tensors: Sequence[Any]) -> None:
    """Copy consecutive parts of an array to the tensors."""
    begin = 0
    for tensor in tensors:
        flat = Flat(tensor)
        flat.array[:] = array[begin : begin + flat.array.size]
        flat.store()
        begin += flat.array.size


class Reduction:
    """A reduction of torch for one dtype: an operation on arrays, and the conversions before and after it."""

    def __init__(self, kind: Any, dtype: Any, num_ranks: int, factor: Any = None) -> None:
        self.op = _OPS[kind]
        self._factor = factor
        self._dtype = dtype
        # Without ml_dtypes, values are combined as float32 and rounded once at the end, which gives the same bits.
        self._is_widened = dtype in _NARROW and dtype not in _ML_DTYPES
        self._is_plain = factor is None and not self._is_widened
        # A view, because torch warns when complex32 is allocated.
        one = torch.empty(dtype.itemsize, dtype=torch.uint8).view(dtype)
        if not self._is_widened and as_array(one).dtype.itemsize != dtype.itemsize:
            remedy = "x.to(torch.complex64)" if dtype.is_complex else "x.float()"
            raise InvalidArgumentError(f"{self.op.name} does not support {dtype}: convert with {remedy}.")
        self._divisor = 0
        if dtype is torch.bool:
            self.op = _BOOL_OPS.get(self.op, self.op)
        elif self.op is Op.MEAN and not (dtype.is_floating_point or dtype.is_complex):
            self.op, self._divisor = Op.SUM, num_ranks

    def input(self, tensor: Any) -> Any:
        """Return the contiguous tensor to combine; `tensor` itself if possible."""
        if self._is_plain and tensor.is_contiguous() and not tensor.is_neg():
            return tensor.resolve_conj() if self._dtype.is_complex else tensor
        if self._factor is not None:
            tensor = (tensor * self._factor).to(self._dtype)
        if self._is_widened:
            tensor = tensor.float()
        return tensor.resolve_conj().resolve_neg().contiguous()

    def finish(self, result: Any, out: Any) -> None:
        """Store a combined tensor in `out`, which may be the same tensor; a mean of integers is divided first."""
        if self._divisor:
            array = as_array(result)
            array //= self._divisor
        if result is not out:
            _copy(result.view(out.shape), out)


_reductions: dict[tuple[int, Any, int], Reduction] = {}


def reduction_of(reduce_op: Any, dtype: Any, num_ranks: int) -> Reduction:
    """Return the reduction for an operation and a dtype; `reduce_op` is a ``ReduceOp`` or one of its constants."""
    kind = getattr(reduce_op, "op", reduce_op)
    key = kind.value, dtype, num_ranks  # torch's constants are slow to hash and to compare
    if (found := _reductions.get(key)) is None:
        if kind == _KINDS.PREMUL_SUM:
            return Reduction(kind, dtype, num_ranks, reduce_op.__getstate__()[1])
        found = _reductions[key] = Reduction(kind, dtype, num_ranks)
    return found
