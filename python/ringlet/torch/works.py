"""Work objects, on which torch waits, and the queue that runs the operations of a group."""

from __future__ import annotations

import concurrent.futures
import queue
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistBackendError

from ringlet.errors import WorkerLostError

__all__ = ["OperationQueue", "RingletWork", "backend_error"]

Future = concurrent.futures.Future


class _Failure:
    """Value of a failed future: each use raises the error. C++ code pickles a value to find its tensors."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        raise self.error


def _value(value: Any) -> Any:
    if isinstance(value, _Failure):
        raise value.error
    return value


class _Finished:
    """A finished future, which is much cheaper than a `concurrent.futures.Future`."""

    __slots__ = ("_error", "_value")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value = value
        self._error = error

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def done(self) -> bool:
        return True

    def exception(self) -> BaseException | None:
        return self._error

    def add_done_callback(self, call: Callable[[_Finished], None]) -> None:
        call(self)


class RingletWork(torch.distributed.Work):  # type: ignore[misc]
    """An operation, which ends when `future` is done; `results` are its outputs, in torch's order."""

    def __init__(
        self,
        future: Future[Any] | _Finished,
        results: Sequence[Any],
        seconds: float | None = None,
        withdraw: Callable[[Exception], bool] | None = None,
    ) -> None:
        super().__init__()
        self._done = future
        self._results = results
        self._seconds = seconds
        self._withdraw = withdraw  # cancels an operation that has not begun; returns whether it was cancelled

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is done; raise its error."""
        seconds = timeout.total_seconds() if timeout is not None and timeout > timedelta(0) else self._seconds
        try:
            self._done.result(seconds)
        except concurrent.futures.TimeoutError as error:
            if self._done.done():
                raise
            late = DistBackendError(
                f"the operation did not finish within {seconds:g} s because another rank has not made its call. Allow "
                "more time with timeout=, or check the other ranks."
            )
            if self._withdraw is None or self._withdraw(late):
                raise late from error
            self._done.result()  # the message is already arriving
        return True

    def synchronize(self) -> None:
        """Wait until the operation is done, like `wait`."""
        self.wait()

    def is_completed(self) -> bool:
        """Return whether the operation has succeeded or failed."""
        return self._done.done()

    def is_success(self) -> bool:
        """Return whether the operation has succeeded."""
        return self._done.done() and self._done.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error of a failed operation."""
        return self._done.exception() if self._done.done() else None

    def result(self) -> list[Any]:
        """Return the outputs of a finished operation."""
        self.wait()
        return list(self._results)

    def get_future(self) -> Any:
        """Return a future of the outputs."""
        if not self.is_success() and torch._C._current_graph_task_id() != -1:
            # Runs before DistributedDataParallel's C++ code, which would report the failure without its type.
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


class OperationQueue:
    """Runs the operations of one group in order, in a thread of its own or, if that is idle, a synchronous caller's."""

    def __init__(self, as_error: Callable[[BaseException], BaseException]) -> None:
        self._as_error = as_error  # converts the exception of a call to the error for the caller
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._turn = threading.RLock()  # held while an operation runs
        self._lock = threading.Lock()
        self._unfinished = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def run(self, call: Callable[[], Any], is_async: bool) -> Future[Any] | _Finished:
        """Run a call; if `is_async`, start it and return immediately."""
        if not (is_async or self._unfinished) or threading.current_thread() is self._thread:
            try:
                with self._turn:
                    return _Finished(call(), None)
            except Exception as error:
                return _Finished(None, self._as_error(error))
        done: Future[Any] = Future()
        with self._lock:
            if self._is_closed:  # the thread has ended or is about to end
                return _Finished(
                    None,
                    DistBackendError("the process group was destroyed: make no calls after destroy_process_group."),
                )
            self._unfinished += 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="ringlet.torch", daemon=True)
                self._thread.start()
            self._queue.put((done, call))
        if not is_async:
            done.exception()  # waits for the call
        return done

    def close(self, seconds: float | None) -> bool:
        """Wait up to `seconds` for running operations; return whether they are done."""
        with self._lock:
            self._is_closed = True
            self._queue.put(None)
        if self._thread is None or self._thread is threading.current_thread():
            return True
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            done, call = item
            with self._turn:
                try:
                    result, error = call(), None
                except BaseException as raised:
                    result, error = None, self._as_error(raised)
            done.set_result(result) if error is None else done.set_exception(error)
            with self._lock:
                self._unfinished -= 1
            del item, done, call, result, error  # frees the tensors before the next wait


def backend_error(error: BaseException, global_ranks: Sequence[int] | None = None) -> BaseException:
    """Return the failure of a group as a `DistBackendError` with the same attributes; other errors unchanged.

    `global_ranks` are the ranks in the default group, if they differ from the ranks in this group.
    """
    if not isinstance(error, (RuntimeError, OSError)) or isinstance(error, (DistBackendError, NotImplementedError)):
        return error  # an error in this rank's arguments
    text = str(error)
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
    found: BaseException = DistBackendError(text)
    vars(found).update(facts)
    found.__cause__ = error
    return found
