"""The process group of the backend: torch's collectives as those of a Ringlet group."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from torch.distributed import DistBackendError, ReduceOp

from ringlet.collectives import Op, empty_shared
from ringlet.errors import InvalidArgumentError
from ringlet.torch.messages import Messages
from ringlet.torch.store_rendezvous import exchange, join
from ringlet.torch.tensors import Flat, Reduction, checked, copy_parts, joined
from ringlet.torch.works import OperationQueue, RingletWork, backend_error

__all__ = ["RingletProcessGroup"]

Array = np.ndarray[Any, np.dtype[Any]]

_live: weakref.WeakSet[RingletProcessGroup] = weakref.WeakSet()
_LAST_SECONDS = 1.0  # for operations that run as a process exits


class RingletProcessGroup(torch.distributed.ProcessGroup):  # type: ignore[misc]
    """A process group of ``torch.distributed`` over the processes of one host.

    Made by ``torch.distributed.init_process_group("ringlet")`` and ``torch.distributed.new_group``, whose functions call
    its methods. Operations of one group run in the order of the calls; groups do not wait for each other.

    Examples
    --------
    >>> import torch.distributed
    >>> torch.distributed.init_process_group(
    ...     "ringlet", store=torch.distributed.HashStore(), rank=0, world_size=1
    ... )  # doctest: +SKIP
    """

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta, global_ranks: Sequence[int] | None = None
    ) -> None:
        super().__init__(rank, size)  # the constructor with a store is for C++ alone
        ranks = exchange(store, rank, size, timeout)
        self._seconds = timeout.total_seconds()
        self._store, self._rank, self._size = store, rank, size
        self._global_ranks = list(global_ranks or range(size))
        self._queue = OperationQueue(lambda error: backend_error(error, self._global_ranks if global_ranks else None))
        # Before the group forms, so that a rank that has joined can send to all.
        self._messages = Messages(ranks, rank, self._seconds, self._global_ranks)
        try:
            self._member = join(ranks, rank, timeout)
        except BaseException as error:
            self._messages.close(0)
            raise backend_error(error)
        self._pid: int | None = os.getpid()  # None after shutdown
        self._barriers = 0
        _live.add(self)

    @classmethod
    def create(cls, options: Any, backend_options: Any = None) -> RingletProcessGroup:
        """Return the group that ``torch.distributed`` asks for."""
        if backend_options is not None:
            raise InvalidArgumentError(f"pg_options is {backend_options!r}: the backend ringlet has no options.")
        return cls(
            options.store, options.group_rank, options.group_size, options.timeout, options.global_ranks_in_group
        )

    # --- what torch asks about a group --------------------------------------------------------------------------------

    def name(self) -> str:
        return "ringlet"

    def getBackendName(self) -> str:  # noqa: N802 - torch's name
        return "ringlet"

    _get_backend_name = getBackendName

    @property
    def _device_types(self) -> list[Any]:
        return [torch.device("cpu")]

    def _get_backend(self, device: Any) -> RingletProcessGroup:
        return self

    def get_group_store(self) -> Any:
        return self._store

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._group_name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._group_name

    def setGroupDesc(self, text: str) -> None:  # noqa: N802
        self._group_desc = text

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._group_desc

    supports_splitting = supports_coalescing = supports_time_estimate = False

    def supports_tensor_alloc(self, device: Any) -> bool:
        return bool(torch.device(device).type == "cpu")

    def allocate_tensor(self, size: int, *, dtype: Any, device: Any) -> Any:
        """Return a tensor in shared memory, which collectives access without a copy."""
        return torch.from_numpy(empty_shared(size * dtype.itemsize, np.uint8)).view(dtype)

    def _set_sequence_number_for_group(self) -> None:
        """Do nothing: the core counts calls."""

    def _get_sequence_number_for_group(self) -> int:
        return self._member._core.calls

    def set_timeout(self, timeout: timedelta) -> None:
        raise NotImplementedError(
            "the backend ringlet cannot change the time-out of a group: pass timeout= to init_process_group or new_group."
        )

    _set_default_timeout = set_timeout

    # --- life ---------------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Finish the operations that run, and leave the group. A second call has no effect."""
        self._leave(self._seconds)

    def _leave(self, seconds: float) -> None:
        pid, self._pid = self._pid, None
        _live.discard(self)
        if pid != os.getpid():
            return
        if not self._queue.close(seconds):
            self._abort("ended while its operations ran")
            self._queue.close(_LAST_SECONDS)
        self._messages.close(seconds)
        self._member.close()

    def abort(self) -> None:
        """End all operations of all ranks with an error."""
        self._abort("called abort()")

    def _abort(self, reason: str) -> None:
        if self._size > 1:
            self._member._core.group.abort(f"rank {self._rank} {reason}")

    def _run(self, call: str, run: Callable[[], Any], results: Sequence[Any], opts: Any = None) -> RingletWork:
        """Start an operation; run it in this thread if the caller waits for it anyway."""
        self._check_usable(call)
        limit = getattr(opts, "timeout", None)
        seconds = limit.total_seconds() if limit is not None and limit > timedelta(0) else None
        return RingletWork(self._queue.run(run, getattr(opts, "asyncOp", True) or seconds is not None), results, seconds)

    def _check_usable(self, call: str) -> None:
        if self._pid != os.getpid():
            reason = "was destroyed" if self._pid is None else f"belongs to process {self._pid}, which was forked"
            raise DistBackendError(
                f"{call}: the process group {reason}. Call torch.distributed.init_process_group in this process."
            )

    # --- reductions ---------------------------------------------------------------------------------------------------

    def allreduce(self, tensors: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Combine the tensors of all ranks in place."""
        tensors = _listed(tensors)
        flat = checked(tensors, "all_reduce")
        reductions = [Reduction(_op(opts), tensor.dtype, self._size) for tensor in flat]
        if len({reduction.op for reduction in reductions}) > 1:
            raise InvalidArgumentError("all_reduce of several tensors needs one kind of dtype: call it for each.")

        def run() -> None:
            inputs = [reduction.input(tensor) for reduction, tensor in zip(reductions, flat, strict=True)]
            arrays = [reduction.array(tensor) for reduction, tensor in zip(reductions, inputs, strict=True)]
            if len(arrays) == 1:
                self._member.all_reduce(arrays[0], reductions[0].op, out=arrays[0])
            else:
                self._member.all_reduce_many(arrays, reductions[0].op, outs=arrays)
            for reduction, combined, tensor in zip(reductions, inputs, flat, strict=True):
                reduction.finish(combined, tensor)

        return self._run("all_reduce", run, tensors, opts)

    allreduce_coalesced = allreduce

    def reduce(self, tensors: Any, opts: Any = None, op: Any = ReduceOp.SUM, timeout: Any = None) -> RingletWork:
        """Combine the tensors of all ranks on one."""
        tensors, root = _listed(tensors), _root(opts)
        (tensor,) = checked(tensors, "reduce")
        reduction = Reduction(getattr(opts, "reduceOp", op), tensor.dtype, self._size)

        def run() -> None:
            combined = reduction.input(tensor)
            array = reduction.array(combined)
            self._member.reduce(array, reduction.op, root, out=array if root == self._rank else None)
            if root == self._rank:
                reduction.finish(combined, tensor)

        return self._run("reduce", run, tensors, opts)

    def reduce_scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Combine a list of tensors of all ranks, and keep the one of this rank."""
        (output,) = outputs = checked(_listed(outputs), "reduce_scatter")
        (parts,) = inputs if isinstance(inputs[0], (list, tuple)) else [inputs]
        parts = checked(parts, "reduce_scatter")
        self._check_count(len(parts), "reduce_scatter", "input tensors")
        reduction = Reduction(_op(opts), output.dtype, self._size)
        is_even = len({part.numel() for part in parts}) == 1

        def run() -> None:
            if is_even:
                self._reduce_scatter(output, torch.cat([part.reshape(-1) for part in parts]), reduction)
                return
            for root, part in enumerate(parts):
                combined = reduction.input(part)
                array = reduction.array(combined)
                if root != self._rank:
                    self._member.reduce(array, reduction.op, root)
                    continue
                if combined is part:
                    combined = part.clone()
                    array = reduction.array(combined)
                self._member.reduce(array, reduction.op, root, out=array)
                reduction.finish(combined, output)

        return self._run("reduce_scatter", run, outputs, opts)

    def reduce_scatter_single(self, output: Any, tensor: Any, opts: Any = None) -> RingletWork:
        """Combine the tensors of all ranks, and keep the block of this rank."""
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RingletWork:
        """Combine each of several tensors, and keep this rank's blocks."""
        pairs = list(zip(checked(outputs, "reduce_scatter"), checked(inputs, "reduce_scatter"), strict=True))
        reductions = [Reduction(_op(opts), output.dtype, self._size) for output, _ in pairs]
        for output, tensor in pairs:
            self._check_sizes("reduce_scatter", tensor, output)

        def run() -> None:
            for (output, tensor), reduction in zip(pairs, reductions, strict=True):
                self._reduce_scatter(output, tensor, reduction)

        return self._run("reduce_scatter", run, outputs, opts)

    def _reduce_scatter(self, output: Any, tensor: Any, reduction: Reduction) -> None:
        combined = reduction.input(tensor)
        result = output
        if not output.is_contiguous() or combined.dtype != output.dtype:
            result = torch.empty(output.numel(), dtype=combined.dtype)
        self._member.reduce_scatter(reduction.array(combined), reduction.op, out=reduction.array(result))
        reduction.finish(result, output)

    # --- movement -----------------------------------------------------------------------------------------------------

    def broadcast(self, tensors: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send a tensor of one rank to all."""
        tensors, root = _listed(tensors), _root(opts, root)
        inputs = checked(tensors, "broadcast")

        def run() -> None:
            flats = [Flat(tensor) for tensor in inputs]
            arrays = [flat.array for flat in flats]
            self._member.broadcast_many(arrays, root, outs=arrays)
            for flat in flats:
                flat.store()

        return self._run("broadcast", run, tensors, opts)

    def allgather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Send the tensor of each rank to all, which receive them as a list; sizes may differ."""
        (tensor,) = checked(_listed(inputs), "all_gather")
        (parts,) = outputs if isinstance(outputs[0], (list, tuple)) else [outputs]
        parts = checked(parts, "all_gather")
        self._check_count(len(parts), "all_gather", "output tensors")
        self._check_size("all_gather", "the output of this rank", parts[self._rank], tensor.numel())

        def run() -> None:
            copy_parts(self._all_gather_parts(tensor, parts), parts)

        return self._run("all_gather", run, outputs, opts)

    def _all_gather_parts(self, tensor: Any, parts: Sequence[Any]) -> Array:
        result = self._member.all_gather(Flat(tensor).array)
        self._check_received("all_gather", result, parts)
        return result

    def all_gather_single(self, output: Any, tensor: Any, opts: Any = None) -> RingletWork:
        """Send the tensor of each rank to all, which receive them as one."""
        return self.all_gather_single_coalesced([output], [tensor], opts)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> RingletWork:
        """Send several tensors of each rank to all."""
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
        """Send several tensors of each rank to all: `outputs` has a list for each rank."""
        self._check_count(len(outputs), "all_gather_coalesced", "output lists")
        tensors = checked(inputs, "all_gather_coalesced")
        lists = [checked(parts, "all_gather_coalesced") for parts in zip(*outputs, strict=True)]

        def run() -> None:
            for tensor, parts in zip(tensors, lists, strict=True):
                copy_parts(self._all_gather_parts(tensor, parts), parts)

        return self._run("all_gather_coalesced", run, outputs, opts)

    def gather(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send the tensor of each rank to one."""
        root = _root(opts, root)
        (tensor,) = checked(_listed(inputs), "gather")
        parts = []
        if root == self._rank:
            (parts,) = outputs if isinstance(outputs[0], (list, tuple)) else [outputs]
            parts = checked(parts, "gather")
            self._check_count(len(parts), "gather", "output tensors")

        def run() -> None:
            result = self._member.gather(Flat(tensor).array, root)
            if result is not None:
                self._check_received("gather", result, parts)
                copy_parts(result, parts)

        return self._run("gather", run, outputs, opts)

    def scatter(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None, root: int = 0) -> RingletWork:
        """Send each rank a tensor of one rank's list."""
        root = _root(opts, root)
        (output,) = checked(_listed(outputs), "scatter")
        parts = []
        if root == self._rank:
            (parts,) = inputs if isinstance(inputs[0], (list, tuple)) else [inputs]
            parts = checked(parts, "scatter")
            self._check_count(len(parts), "scatter", "input tensors")
            self._check_size("scatter", "the output of this rank", output, parts[root].numel())

        def run() -> None:
            flat = Flat(output)
            if parts:
                counts = [part.numel() for part in parts]
                self._member.scatter(joined(parts), root, counts=counts, out=flat.array)
            else:
                self._member.scatter(None, root, out=flat.array)
            flat.store()

        return self._run("scatter", run, _listed(outputs), opts)

    def all_to_all_single(
        self,
        output: Any,
        tensor: Any,
        output_sizes: Sequence[int] | None = None,
        input_sizes: Sequence[int] | None = None,
        opts: Any = None,
        timeout: Any = None,
    ) -> RingletWork:
        """Send block d of the tensor of each rank to rank d, in rows along the first dimension."""
        (checked_output, checked_input) = checked([output, tensor], "all_to_all")
        sent = self._counts("input_split_sizes", checked_input, input_sizes)
        self._counts("output_split_sizes", checked_output, output_sizes)

        def run() -> None:
            flat = Flat(checked_output)
            self._member.all_to_all(Flat(checked_input).array, counts=sent, out=flat.array)
            flat.store()

        return self._run("all_to_all", run, [output], opts)

    def alltoall(self, outputs: Any, inputs: Any, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Send tensor d of each rank's list to rank d."""
        parts, tensors = checked(outputs, "all_to_all"), checked(inputs, "all_to_all")
        self._check_count(len(parts), "all_to_all", "output tensors")
        self._check_count(len(tensors), "all_to_all", "input tensors")
        sent = [each.numel() for each in tensors]

        def run() -> None:
            result = self._member.all_to_all(joined(tensors), counts=sent)
            self._check_received("all_to_all", result, parts)
            copy_parts(result, parts)

        return self._run("all_to_all", run, outputs, opts)

    def barrier(self, opts: Any = None, timeout: Any = None) -> RingletWork:
        """Wait for all ranks."""
        return self._run("barrier", self._member.barrier, [], opts)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks; if some do not come in time, raise an error that names them, and stay usable."""
        self._check_usable("monitored_barrier")
        self._barriers += 1
        keys = [f"monitored_barrier/{self._barriers}/{rank}" for rank in range(self._size)]
        self._store.set(keys[self._rank], "")
        timeout = timeout or timedelta(seconds=self._seconds)
        try:
            self._store.wait(keys, timeout)
        except RuntimeError as error:
            missing = [rank for rank, key in zip(self._global_ranks, keys, strict=True) if not self._store.check([key])]
            raise DistBackendError(
                f"rank {self._global_ranks[self._rank]} waited {timeout.total_seconds():g} s in monitored_barrier for "
                f"ranks {missing if wait_all_ranks else missing[:1]}."
            ) from error

    # --- point to point -----------------------------------------------------------------------------------------------

    def send(self, tensors: Any, target: int, tag: int = 0) -> RingletWork:
        """Start to send a tensor to a rank."""
        self._check_usable("send")
        return self._messages.send(*checked(_listed(tensors), "send"), target, tag)

    def recv(self, tensors: Any, source: int | None, tag: int = 0) -> RingletWork:
        """Start to receive a tensor from a rank."""
        self._check_usable("recv")
        return self._messages.receive(*checked(_listed(tensors), "recv"), source, tag)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> RingletWork:
        """Start to receive a tensor from any rank."""
        return self.recv(tensors, None, tag)

    # --- names of older versions of torch -----------------------------------------------------------------------------

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # --- checks -------------------------------------------------------------------------------------------------------

    def _check_count(self, count: int, call: str, what: str) -> None:
        if count != self._size:
            raise InvalidArgumentError(f"{call} got {count} {what}: expected one for each of {self._size} ranks.")

    def _check_size(self, call: str, what: str, tensor: Any, size: int) -> None:
        if tensor.numel() != size:
            raise InvalidArgumentError(f"{call}: {what} has {tensor.numel()} elements, expected {size}.")

    def _check_sizes(self, call: str, whole: Any, block: Any) -> None:
        if whole.dtype != block.dtype:
            raise InvalidArgumentError(f"{call} got tensors of {whole.dtype} and {block.dtype}: pass one dtype.")
        self._check_size(call, "the whole tensor", whole, block.numel() * self._size)

    def _check_received(self, call: str, result: Array, parts: Sequence[Any]) -> None:
        expected = sum(part.numel() for part in parts)
        if len(result) != expected:
            raise InvalidArgumentError(
                f"{call}: the ranks sent {len(result)} elements, and the output tensors have {expected}: make them of "
                "the sizes of the inputs of all ranks."
            )

    def _counts(self, name: str, tensor: Any, sizes: Sequence[int] | None) -> list[int]:
        """Return the number of elements of each rank's block."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not sizes:
            if rows % self._size:
                raise InvalidArgumentError(
                    f"all_to_all got a tensor of {rows} rows for {self._size} ranks: pass {name}, or a multiple."
                )
            sizes = [rows // self._size] * self._size
        self._check_count(len(sizes), "all_to_all", name)
        if sum(sizes) != rows:
            raise InvalidArgumentError(f"all_to_all got a tensor of {rows} rows, and {name} {list(sizes)}.")
        width = tensor.numel() // rows if rows else 0
        return [size * width for size in sizes]


def _listed(tensors: Any) -> list[Any]:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _op(opts: Any) -> Any:
    return ReduceOp.SUM if opts is None else getattr(opts, "reduceOp", opts)


def _root(opts: Any, root: int = 0) -> int:
    return opts if isinstance(opts, int) else int(getattr(opts, "rootRank", root))


@atexit.register
def _leave_groups() -> None:
    """Leave the groups that a program did not destroy, so that other ranks can finish."""
    error = getattr(sys, "last_value", None)
    for group in list(_live):
        if error is not None and group._pid == os.getpid():
            group._abort(f"raised {type(error).__name__}: {error}")
        group._leave(_LAST_SECONDS)
