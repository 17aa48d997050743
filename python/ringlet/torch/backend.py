"""The process group of the backend: creation, properties that torch queries, point-to-point calls and shutdown."""

from __future__ import annotations

import multiprocessing.util
import os
import sys
import weakref
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.distributed import DistBackendError

from ringlet.collectives import empty_shared
from ringlet.collectives.message_passing import stored_by
from ringlet.errors import InvalidArgumentError
from ringlet.errors.exception_notes import class_and_text
from ringlet.ipc.inbox import Inbox
from ringlet.observe.stall_reports import translators
from ringlet.torch.collective_calls import CollectiveCalls, listed
from ringlet.torch.store_rendezvous import exchange, join
from ringlet.torch.tensors import Flat, check_writable, checked, described
from ringlet.torch.works import RingletWork, backend_error

__all__ = ["RingletProcessGroup"]

_live: weakref.WeakSet[RingletProcessGroup] = weakref.WeakSet()
_registered_pid = 0
_LAST_SECONDS = 1.0  # limit for operations in progress when the process exits


class RingletProcessGroup(CollectiveCalls, torch.distributed.ProcessGroup):  # type: ignore[misc]
    """A process group of ``torch.distributed`` over processes of one host, or of one MPI job.

    Created by ``torch.distributed.init_process_group("ringlet")`` and ``torch.distributed.new_group``. The functions
    of ``torch.distributed`` call its methods. Collectives of one group run in the order of the calls; different groups
    run independently.
    """

    def __init__(
        self, store: Any, rank: int, size: int, timeout: timedelta, global_ranks: Sequence[int] | None = None
    ) -> None:
        super().__init__(rank, size)  # the constructor with a store is only available in C++
        ranks = exchange(store, rank, size, timeout, global_ranks or ())
        self._seconds = timeout.total_seconds()
        self._store, self._rank, self._size = store, rank, size
        self._global_ranks = list(global_ranks or range(size))
        others = None if self._global_ranks == list(range(size)) else self._global_ranks
        self._as_error = partial(backend_error, global_ranks=others)
        try:
            self._member = join(ranks, rank, timeout)
        except Exception as error:
            found = backend_error(error)
            raise found from found.__cause__
        self._operations = self._member._operations()
        self._operations.as_error = self._as_error
        self._inbox = self._member._inboxes(rank)
        self._inbox.numbers = self._global_ranks
        self._pid: int | None = os.getpid()  # None after shutdown
        self._key = ranks.key  # unique, because the store may outlive the group
        self._barriers = 0
        _live.add(self)
        translators.add(self)
        _leave_at_exit()

    @classmethod
    def create(cls, options: Any, backend_options: Any = None) -> RingletProcessGroup:
        """Create a group; raise InvalidArgumentError if `backend_options` is given."""
        if backend_options is not None:
            raise InvalidArgumentError(
                f"pg_options is {backend_options!r}: the ringlet backend has no options. Omit pg_options."
            )
        return cls(
            options.store, options.group_rank, options.group_size, options.timeout, options.global_ranks_in_group
        )

    # --- properties of the group that torch queries -------------------------------------------------------------------

    def name(self) -> str:
        return "ringlet"

    def getBackendName(self) -> str:
        return "ringlet"

    _get_backend_name = getBackendName

    @property
    def _device_types(self) -> list[Any]:
        return [torch.device("cpu")]

    def _get_backend(self, device: Any) -> RingletProcessGroup:
        return self

    def get_group_store(self) -> Any:
        return self._store

    def setGroupName(self, name: str) -> None:
        self._group_name = name

    def getGroupName(self) -> str:
        return self._group_name

    def setGroupDesc(self, text: str) -> None:
        self._group_desc = text

    def getGroupDesc(self) -> str:
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

    def as_in_errors(self, report: str) -> str:
        """Replace RINGLET_TIMEOUT_SECONDS in a report with the argument timeout=, if its time-out is this group's."""
        limit = f"fails after {self._seconds:g} s ("
        return report.replace(f"{limit}RINGLET_TIMEOUT_SECONDS", f"{limit}timeout= of init_process_group or new_group")

    def set_timeout(self, timeout: timedelta) -> None:
        raise NotImplementedError(
            "the ringlet backend cannot change the time-out of a group: pass timeout= to init_process_group or "
            "new_group."
        )

    _set_default_timeout = set_timeout

    # --- shutdown -----------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Leave the group once its operations have finished; after the time-out, abort them. Idempotent."""
        self._leave(self._seconds)

    def _leave(self, seconds: float) -> None:
        pid, self._pid = self._pid, None
        _live.discard(self)
        if pid != os.getpid():
            return
        if not self._operations.drain(seconds):
            self._abort("left while its operations were running")
            self._operations.drain(_LAST_SECONDS)
        has_failed = self._member._core.group.failure is not None
        self._member._close(0 if has_failed else seconds)

    def abort(self) -> None:
        """End all operations of this group on all ranks with an error."""
        self._abort("called abort()")

    def _abort(self, reason: str) -> None:
        # Receives are aborted first: once the group is aborted, other ranks may exit, and receives would report their
        # exits as the cause.
        self._inbox.abort(DistBackendError(f"rank {self._global_ranks[self._rank]} {reason}: start the job again."))
        if self._size > 1:
            self._member._core.group.abort(f"rank {self._rank} {reason}")

    def _messages(self, call: str) -> Inbox:
        self._check_usable(call)
        return self._inbox

    def _check_usable(self, call: str) -> None:
        if self._pid != os.getpid():
            reason = "was destroyed" if self._pid is None else f"belongs to the parent, process {self._pid}"
            raise DistBackendError(
                f"{call}: the process group {reason}. Call torch.distributed.init_process_group in this process."
            )

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """Wait for all ranks; after the time-out, raise an error that names the late ranks. The group stays usable.

        Without `wait_all_ranks`, the error names only the first late rank.
        """
        self._check_usable("monitored_barrier")
        self._barriers += 1
        keys = [f"monitored_barrier/{self._key}/{self._barriers}/{rank}" for rank in range(self._size)]
        self._store.set(keys[self._rank], "")
        timeout = timeout or timedelta(seconds=self._seconds)
        try:
            self._store.wait(keys, timeout)
        except RuntimeError as error:
            missing = [rank for rank, key in zip(self._global_ranks, keys, strict=True) if not self._store.check([key])]
            raise DistBackendError(
                f"rank {self._global_ranks[self._rank]} waited {timeout.total_seconds():g} s in monitored_barrier for "
                f"ranks {missing if wait_all_ranks else missing[:1]}. Check what they execute, or allow more time with "
                "timeout=."
            ) from error

    # --- point to point -----------------------------------------------------------------------------------------------

    def send(self, tensors: Any, target: int, tag: int = 0) -> RingletWork:
        """Start sending a tensor to a rank."""
        inbox = self._messages("send")
        (tensor,) = checked(listed(tensors), "send")
        data = Flat(tensor, as_bytes=True).array.data
        sent = inbox.send(data, described(tensor), target, tag)
        return RingletWork(stored_by(sent, lambda _: None, self._as_error), [tensor], self._seconds)

    def recv(self, tensors: Any, source: int | None, tag: int = 0) -> RingletWork:
        """Start receiving a tensor from a rank."""
        inbox = self._messages("recv")
        check_writable(listed(tensors), "recv")
        (tensor,) = checked(listed(tensors), "recv")
        flat = Flat(tensor, as_bytes=True)
        received = inbox.receive(flat.array.data, described(tensor), source, tag)

        def store(source: int) -> int:
            flat.store()
            return source

        withdraw = partial(inbox.withdraw, received)
        return RingletWork(stored_by(received, store, self._as_error), [tensor], self._seconds, withdraw)

    def recv_anysource(self, tensors: Any, tag: int = 0) -> RingletWork:
        """Start receiving a tensor from any rank."""
        return self.recv(tensors, None, tag)


def _leave_at_exit() -> None:
    """Register `_leave_groups` to run at exit; unlike `atexit`, this also works in multiprocessing children."""
    global _registered_pid
    if _registered_pid != os.getpid():
        _registered_pid = os.getpid()
        multiprocessing.util.Finalize(
            None,
            _leave_groups,
            exitpriority=1,
            # runs before the exit handler of operation_queue, which waits for calls
        )


def _leave_groups() -> None:
    """Leave the groups that a program did not destroy, so that other ranks finish or raise an error with the reason."""
    error = sys.exc_info()[1]
    is_interactive = hasattr(sys, "ps1") or sys.flags.interactive or "IPython" in sys.modules
    if error is None and not is_interactive:  # in an interactive session, last_value belongs to an earlier input
        error = getattr(sys, "last_value", None)
    reason = None if error is None else f"raised {class_and_text(error)}"
    if isinstance(error, SystemExit):
        reason = f"exited with status {error.code}" if error.code else None
    for group in list(_live):
        if reason is not None and group._pid == os.getpid():
            group._abort(reason)
        group._leave(_LAST_SECONDS)
