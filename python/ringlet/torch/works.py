"""Work: the handle that torch receives for an operation, and the errors of operations."""

from __future__ import annotations

import concurrent.futures
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistBackendError

from ringlet.collectives.operation_queue import Finished
from ringlet.errors import WorkerLostError

__all__ = ["RingletWork", "backend_error"]

Future = concurrent.futures.Future


class _Failure:
    """The value of a failed future, which raises the error wherever it is used.

    This includes torch's C++ code, which pickles the value to find the tensors in it.
    """

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error


def _value(value: Any) -> Any:
    if isinstance(value, _Failure):
        raise value.error
    return value


class RingletWork(torch.distributed.Work):  # type: ignore[misc]
    """An operation that ends when `future` is done; `results` are its outputs, in torch's order."""

    def __init__(
        self,
        future: Future[Any] | Finished,
        results: Sequence[Any],
        seconds: float | None = None,
        withdraw: Callable[[Exception], bool] | None = None,
    ) -> None:
        super().__init__()
        self._done = future
        self._results = results
        self.seconds = seconds
        self._withdraw = withdraw  # fails a waiting receive; returns False if its message is arriving

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is done and return True; raise its error, or DistBackendError after the time-out."""
        seconds = timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else self.seconds
        try:
            self._done.result(seconds)
        except concurrent.futures.TimeoutError as error:
            if self._done.done():
                raise
            late = DistBackendError(
                f"the operation did not complete within {seconds:g} s: another rank has not made its call. Check what "
                "the other ranks execute, or allow more time with timeout=."
            )
            if self._withdraw is None or self._withdraw(late):
                raise late from error
            self._done.result()  # waits for the message, which is already arriving
        return True

    def synchronize(self) -> None:
        """Wait until the operation is done, as `wait` does."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the operation has finished, with or without an error."""
        return self._done.done()

    def is_success(self) -> bool:
        """Return whether the operation has succeeded."""
        return self._done.done() and self._done.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error of a failed operation; None if it is running or has succeeded."""
        return self._done.exception() if self._done.done() else None

    def result(self) -> list[Any]:
        """Wait until the operation is done, and return its outputs."""
        self.wait()
        return list(self._results)

    def get_future(self) -> Any:
        """Return a future of the outputs."""
        if not self.is_success() and torch._C._current_graph_task_id() != -1:
            # Runs before the C++ code of DistributedDataParallel, which would lose the type of an error.
            torch.autograd.Variable._execution_engine.queue_callback(self.wait)
        future: Any = torch.futures.Future()
        future._set_unwrap_func(_value)

        def finish(done: Any) -> None:
            error = done.exception()
            future.set_result(list(self._results) if error is None else _Failure(error))

        self._done.add_done_callback(finish)
        return future

    def _source_rank(self) -> int:
        return int(self._done.result())

    source_rank = _source_rank


def backend_error(error: BaseException, global_ranks: Sequence[int] | None = None) -> BaseException:
    """Return an error as users of torch expect it: a `DistBackendError` if a group has failed, else the error itself.

    A documented error of Ringlet becomes the `__context__`, which is not printed: the text has its name and message.
    Any other error becomes the `__cause__`. `global_ranks` lists the global rank of each rank of the group; None if
    ranks and global ranks are equal.
    """
    if not isinstance(error, (RuntimeError, OSError)) or isinstance(error, (DistBackendError, NotImplementedError)):
        return error  # an invalid argument of this rank, not a failure of the group
    text = re.sub(r", out=(?=[,)])", "", str(error)).replace(
        "timeout_seconds= or RINGLET_TIMEOUT_SECONDS", "timeout= of init_process_group or new_group"
    )
    facts = (
        {name: getattr(error, name) for name in ("rank", "host", "pid", "reason")}
        if isinstance(error, WorkerLostError)
        else {}
    )
    if global_ranks is not None:
        text = f"in the group of the global ranks {list(global_ranks)}: {text}"
        if facts:
            facts["rank"] = global_ranks[facts["rank"]]
            text = f"lost global rank {facts['rank']}, {text}"
    is_documented = type(error).__module__ == "ringlet.errors"
    found: BaseException = DistBackendError(f"{type(error).__name__}: {text}" if is_documented else text)
    vars(found).update(facts)
    found.__context__, found.__cause__ = error, None if is_documented else error  # assigning a cause hides the context
    return found
