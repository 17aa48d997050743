"""The collectives of torch.distributed, implemented with the collectives of a Ringlet group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.distributed import ReduceOp

from ringlet.collectives import Member
from ringlet.collectives.operation_queue import Finished, OperationQueue
from ringlet.errors import InvalidArgumentError
from ringlet.torch.sparse_sums import all_reduce_sparse
from ringlet.torch.tensors import Flat, Reduction, as_array, checked, copy_parts, item_count, joined, reduction_of
from ringlet.torch.works import RingletWork

__all__ = ["CollectiveCalls", "listed"]

Array = np.ndarray[Any, np.dtype[Any]]


# The handle of a successful synchronous call: torch only waits for it.
_SUCCEEDED = RingletWork(Finished(None), [])


class CollectiveCalls:
    """Base class of the process group: the collectives, under the names that ``torch.distributed`` calls."""

    _member: Member
    _operations: OperationQueue
    _rank: int
    _size: int

    def _check_usable(self, call: str) -> None:
        raise NotImplementedError

    def _run(self, call: str, run: Callable[[], Any], results: Sequence[Any], opts: Any = None) -> RingletWork:
        """Start an operation; a synchronous operation is done on return."""
        self._check_usable(call)
        is_async = opts is None or getattr(opts, "asyncOp", True)
        done = self._operations.run(run, call, is_async)
        return _SUCCEEDED if not is_async and done.exception() is None else RingletWork(done, results)

    # --- reductions ---------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Combine the tensors of all ranks in place."""
        tensors = listed(tensors)
        if len(tensors) == 1 and tensors[0].layout is torch.sparse_coo and _op(opts) == ReduceOp.SUM:
            return self._run("all_reduce", partial(all_reduce_sparse, self._member, tensors[0]), tensors, opts)
        tensor = _one(checked(tensors, "all_reduce"), "all_reduce")
        reduction = reduction_of(_op(opts), tensor.dtype, self._size)
        return self._run("all_reduce", partial(self._all_reduce, tensor, reduction), tensors, opts)

    def allreduce_coalesced(self, tensors: Any, opts: Any = None) -> RingletWork:
        """Combine each of several tensors of all ranks in place."""
        inputs = checked(tensors, "all_reduce_coalesced")
        reductions = [reduction_of(_op(opts), tensor.dtype, self._size) for tensor in inputs]
        if len({reduction.op for reduction in reductions}) != 1:
            raise InvalidArgumentError(
                f"all_reduce_coalesced got {len(inputs)} tensors: expected one or more with equal dtypes. Call "
                "all_reduce for each tensor."
            )
        return self._run("all_reduce", partial(self._all_reduce_many, inputs, reductions), tensors, opts)

    def _all_reduce(self, tensor: Any, reduction: Reduction) -> None:
        combined = reduction.input(tensor)
        array = as_array(combined)
        self._member.all_reduce(array, reduction.op, out=array)
        reduction.finish(combined, tensor)

    def _all_reduce_many(self, tensors: list[Any], reductions: list[Reduction]) -> None:
        combined = [reduction.input(tensor) for reduction, tensor in zip(reductions, tensors, strict=True)]
        for index, tensor in enumerate(combined):
            # Copies a tensor that was passed twice.
            if any(tensor.data_ptr() == other.data_ptr() for other in combined[:index]):
                combined[index] = tensor.clone()
        arrays = list(map(as_array, combined))
        self._member.all_reduce_many(arrays, reductions[0].op, outs=arrays)
        for reduction, result, tensor in zip(reductions, combined, tensors, strict=True):
            reduction.finish(result, tensor)

    def reduce(self, tensors: Any, opts: Any = None, op: Any = ReduceOp.SUM, timeout: Any = None) -> RingletWork:
        """Combine the tensors of all ranks on the root."""
        tensors, root = listed(tensors), self._root("reduce", opts)
        tensor = _one(checked(tensors, "reduce"), "reduce")
        reduction = reduction_of(getattr(opts, "reduceOp", op), tensor.dtype, self._size)

        def run() -> None:
            combined = reduction.input(tensor)
            array = as_array(combined)
            self._member.reduce(array, reduction.op, root, out=array if root == self._rank else None)
            if root == self._rank:
                reduction.finish(combined, tensor)

        return self._run("reduce", run, tensors, opts)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Combine the tensor lists of all ranks element by element; rank r receives element r."""
        outputs = checked(listed(outputs), "reduce_scatter")
        output = _one(outputs, "reduce_scatter")
        parts = self._parts("reduce_scatter", "input tensors", inputs, output)
        reduction = reduction_of(_op(opts), output.dtype, self._size)
        is_even = len({part.numel() for part in parts}) == 1

        def run() -> None:
            if is_even:
                self._reduce_scatter(output, torch.cat([part.reshape(-1) for part in parts]), reduction)
                return
            for root, part in enumerate(parts):
                combined = reduction.input(part)
                array = as_array(combined)
                if root != self._rank:
                    self._member.reduce(array, reduction.op, root)
                    continue
                if combined is part:
                    combined = part.clone()
                    array = as_array(combined)
                self._member.reduce(array, reduction.op, root, out=array)
                reduction.finish(combined, output)

        return self._run("reduce_scatter", run, outputs, opts)

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> RingletWork:
        """Combine the tensors of all ranks; this rank receives its block of the result."""
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RingletWork:
        """Combine several tensors of all ranks; this rank receives its block of each result."""
        pairs = list(zip(checked(outputs, "reduce_scatter"), checked(inputs, "reduce_scatter"), strict=True))
        reductions = [reduction_of(_op(opts), output.dtype, self._size) for output, _ in pairs]
        for output, tensor in pairs:
            self._check_sizes("reduce_scatter", tensor, output)

        def run() -> None:
            for (output, tensor), reduction in zip(pairs, reductions, strict=True):
                self._reduce_scatter(output, tensor, reduction)

        return self._run("reduce_scatter", run, outputs, opts)

    def _reduce_scatter(self, output: Any, tensor: Any, reduction: Reduction) -> None:
        combined = reduction.input(tensor)
        result = output
        is_plain = output.is_contiguous() and not (output.is_conj() or output.is_neg())
        if not is_plain or combined.dtype != output.dtype:
            result = torch.empty(output.numel(), dtype=combined.dtype)
        self._member.reduce_scatter(as_array(combined), reduction.op, out=as_array(result))
        reduction.finish(result, output)

    # --- data movement ------------------------------------------------------------------------------------------------

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send the root's tensor to all ranks."""
        tensors, root = listed(tensors), self._root("broadcast", opts, root)
        tensor = _one(checked(tensors, "broadcast"), "broadcast")

        def run() -> None:
            flat = Flat(tensor)
            self._member.broadcast(flat.array, root, out=flat.array)
            flat.store()

        return self._run("broadcast", run, tensors, opts)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Send the tensor of each rank to all ranks, as a list of tensors of possibly different sizes."""
        tensor = _one(checked(listed(inputs), "all_gather"), "all_gather")
        parts = self._parts("all_gather", "output tensors", outputs, tensor)
        self._check_size("all_gather", "the output of this rank", parts[self._rank], tensor.numel())

        def run() -> None:
            self._all_gather_parts(tensor, parts)

        return self._run("all_gather", run, parts, opts)

    def _all_gather_parts(self, tensor: Any, parts: Sequence[Any]) -> None:
        received = self._exchange_counts([item_count(tensor)] * self._size)
        result = self._member.all_gather(Flat(tensor).array)
        self._check_received("all_gather", received, map(item_count, parts))
        copy_parts(result, parts)

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> RingletWork:
        """Send the tensor of each rank to all ranks, as one concatenated tensor."""
        return self.all_gather_single_coalesced([output], [tensor], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RingletWork:
        """Send several tensors of each rank to all ranks, each as one concatenated tensor."""
        pairs = list(zip(checked(outputs, "all_gather"), checked(inputs, "all_gather"), strict=True))
        for output, tensor in pairs:
            self._check_sizes("all_gather", output, tensor)

        def run() -> None:
            for output, tensor in pairs:
                flat = Flat(output)
                self._member.all_gather(Flat(tensor).array, out=flat.array)
                flat.store()

        return self._run("all_gather", run, outputs, opts)

    def allgather_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RingletWork:
        """Send several tensors of each rank to all ranks; `outputs` has one list for each rank."""
        self._check_count(len(outputs), "all_gather_coalesced", "output lists")
        tensors = checked(inputs, "all_gather_coalesced")
        lists = [
            self._parts("all_gather_coalesced", "output tensors", parts, tensor)
            for parts, tensor in zip(zip(*outputs, strict=True), tensors, strict=True)
        ]

        def run() -> None:
            for tensor, parts in zip(tensors, lists, strict=True):
                self._all_gather_parts(tensor, parts)

        return self._run("all_gather_coalesced", run, outputs, opts)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send the tensor of each rank to the root."""
        root = self._root("gather", opts, root)
        tensor = _one(checked(listed(inputs), "gather"), "gather")
        parts = self._parts("gather", "output tensors", outputs, tensor, root)

        def run() -> None:
            received = self._exchange_counts([item_count(tensor) if rank == root else 0 for rank in range(self._size)])
            result = self._member.gather(Flat(tensor).array, root)
            if result is not None:
                self._check_received("gather", received, map(item_count, parts))
                copy_parts(result, parts)

        return self._run("gather", run, parts, opts)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send each rank its tensor of the root's list."""
        root = self._root("scatter", opts, root)
        output = _one(checked(listed(outputs), "scatter"), "scatter")
        parts = self._parts("scatter", "input tensors", inputs, output, root)
        if parts:
            self._check_size("scatter", "the output of this rank", output, parts[root].numel())

        def run() -> None:
            flat = Flat(output)
            if parts:
                counts = [item_count(part) for part in parts]
                self._member.scatter(joined(parts), root, counts=counts, out=flat.array)
            else:
                self._member.scatter(None, root, out=flat.array)
            flat.store()

        return self._run("scatter", run, listed(outputs), opts)

    def all_to_all_single(
        self,
        output: Any,
        tensor: Any,
        output_sizes: Sequence[int] | None = None,
        input_sizes: Sequence[int] | None = None,
        opts: Any = None,
        timeout: Any = None,
    ) -> RingletWork:
        """Send block d of each rank's tensor to rank d; a block is a range of rows (indices of the first dimension)."""
        (checked_output, checked_input) = checked([output, tensor], "all_to_all")
        _check_dtypes("all_to_all", [checked_output, checked_input])
        sent = self._counts("input_split_sizes", checked_input, input_sizes)
        expected = self._counts("output_split_sizes", checked_output, output_sizes)

        def run() -> None:
            flat = Flat(checked_output)
            received = self._exchange_counts(sent)
            self._member.all_to_all(Flat(checked_input).array, counts=sent, out=flat.array)
            self._check_received("all_to_all", received, expected)
            flat.store()

        return self._run("all_to_all", run, [output], opts)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Send tensor d of each rank's list to rank d."""
        parts, tensors = checked(outputs, "all_to_all"), checked(inputs, "all_to_all")
        self._check_count(len(parts), "all_to_all", "output tensors")
        self._check_count(len(tensors), "all_to_all", "input tensors")
        _check_dtypes("all_to_all", [*parts, *tensors])
        sent = [item_count(each) for each in tensors]

        def run() -> None:
            received = self._exchange_counts(sent)
            result = self._member.all_to_all(joined(tensors), counts=sent)
            self._check_received("all_to_all", received, map(item_count, parts))
            copy_parts(result, parts)

        return self._run("all_to_all", run, outputs, opts)

    def barrier(self, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Wait for all ranks."""
        limit = getattr(opts, "timeout", timeout)
        if limit is None or limit <= timedelta(0):
            return self._run("barrier", self._member.barrier, [], opts)
        work = self._run("barrier", self._member.barrier, [])
        work.seconds = limit.total_seconds()
        return work

    # --- names that older versions of torch call ----------------------------------------------------------------------

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # --- checks -------------------------------------------------------------------------------------------------------

    def _root(self, call: str, opts: Any, root: int = 0) -> int:
        root = opts if isinstance(opts, int) else int(getattr(opts, "rootRank", root))
        if not 0 <= root < self._size:
            raise InvalidArgumentError(f"{call} got the root {root}: expected a rank from 0 to {self._size - 1}.")
        return root

    def _parts(self, call: str, what: str, lists: Any, tensor: Any, root: int | None = None) -> list[Any]:
        """Return one tensor for each rank, which torch may pass in a nested list; with `root`, none on other ranks."""
        if root not in (None, self._rank):
            if lists:
                raise InvalidArgumentError(f"{call} got {what} on rank {self._rank}: pass them on rank {root} only.")
            return []
        parts = checked(_one(lists, call) if lists and isinstance(lists[0], (list, tuple)) else lists, call)
        self._check_count(len(parts), call, what)
        _check_dtypes(call, [tensor, *parts])
        return parts

    def _check_count(self, count: int, call: str, what: str) -> None:
        if count != self._size:
            raise InvalidArgumentError(f"{call} got {count} {what}: expected one for each of {self._size} ranks.")

    def _check_size(self, call: str, what: str, tensor: Any, size: int) -> None:
        if tensor.numel() != size:
            raise InvalidArgumentError(f"{call}: {what} has {tensor.numel()} elements, expected {size}.")

    def _check_sizes(self, call: str, whole: Any, block: Any) -> None:
        _check_dtypes(call, [whole, block])
        self._check_size(call, "the whole tensor", whole, block.numel() * self._size)

    def _exchange_counts(self, sent: Sequence[int]) -> list[int]:
        """Return the number of items that this rank receives from each rank; `sent` has the numbers to send."""
        received: list[int] = self._member.all_to_all(np.array(sent, np.int64)).tolist()
        return received

    def _check_received(self, call: str, received: list[int], outputs: Iterable[int]) -> None:
        """Raise an error if the numbers of received items differ from `outputs`."""
        expected = list(outputs)
        if received != expected:
            raise InvalidArgumentError(
                f"{call}: ranks 0 to {self._size - 1} sent {received} items, but the outputs hold {expected}: pass "
                "outputs with the sizes of the ranks' inputs."
            )

    def _counts(self, name: str, tensor: Any, sizes: Sequence[int] | None) -> list[int]:
        """Return the number of array items in each rank's block; without `sizes`, blocks are equal."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not sizes:
            if rows % self._size:
                raise InvalidArgumentError(
                    f"all_to_all got a tensor of {rows} rows for {self._size} ranks: pass {name}, or a number of rows "
                    "that is a multiple of the number of ranks."
                )
            sizes = [rows // self._size] * self._size
        self._check_count(len(sizes), "all_to_all", name)
        if sum(sizes) != rows:
            raise InvalidArgumentError(
                f"all_to_all got a tensor of {rows} rows, but {name} is {list(sizes)}: pass numbers whose sum is the "
                "number of rows."
            )
        width = item_count(tensor) // rows if rows else 0
        return [size * width for size in sizes]


def listed(tensors: Any) -> list[Any]:
    """Convert a tensor, or a sequence of tensors, to a list."""
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _op(opts: Any) -> Any:
    return ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _one(tensors: Any, call: str) -> Any:
    if len(tensors) != 1:
        raise InvalidArgumentError(f"{call} got a list of {len(tensors)} tensors: pass one tensor per call.")
    return tensors[0]


def _check_dtypes(call: str, tensors: Iterable[Any]) -> None:
    if len(dtypes := {tensor.dtype for tensor in tensors}) > 1:
        names = " and ".join(sorted(map(str, dtypes)))
        raise InvalidArgumentError(f"{call} got tensors of {names}: pass tensors of one dtype.")
