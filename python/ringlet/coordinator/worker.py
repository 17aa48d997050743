"""Worker: runs the functions that its coordinator schedules, in order."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import queue
import select
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ringlet.cancellation import checked_by
from ringlet.coordinator.code_digest import code_digest
from ringlet.coordinator.current_worker import as_worker
from ringlet.coordinator.protocol import Batch, Command, Item, Reply, check_size, items_of
from ringlet.coordinator.remote_value import CANCELLED
from ringlet.errors import CancelledError, ClosureInputError, FailedPreconditionError, OutOfRangeError
from ringlet.ipc import Channel, ChannelClosed, pack, unpack
from ringlet.ipc.pickle_codec import Unsendable
from ringlet.ipc.pickle_diagnostics import named
from ringlet.ipc.remote_exception import Failure, failure_of
from ringlet.observe.stacks import rank_stacks
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers, RemoteTable
from ringlet.values import Variable
from ringlet.values.variables.sharded_variable import ShardedVariable
from ringlet.values.variables.table_variable import attach_table, forget_tables

_log = logging.getLogger(__name__)

# Time for which replies are batched while commands are queued; the reader sends them if the next command takes longer.
_GATHER_SECONDS = 0.001
_LOOK_MILLISECONDS = 20
# After the channel has closed, the maximum wait for the other thread, which runs a function or reads commands.
_END_SECONDS = 1.0


class Worker:
    """One worker, which serves the coordinator at the other end of a channel.

    One thread runs functions; another thread reads commands, so that it can return closures while a function runs.
    Functions run in the main thread if it calls `run`.
    """

    def __init__(
        self, channel: Channel, index: int, connect_servers: Callable[[], ParameterServers] | None = None
    ) -> None:
        self._channel = channel
        self._index = index
        self._connect_servers = connect_servers
        self._servers: ParameterServers | None = None  # parameter servers on other hosts
        self._pid = os.getpid()
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the reports
        self._waiting: dict[int, bool] = {}  # calls that have not begun; a thread claims a call by removing it
        self._reports = Batch()
        self._reported_at = 0.0
        self._functions: dict[int, Callable[..., Any]] = {}
        self._values: dict[int, Any] = {}
        self._variables: set[int] = set()
        self._unusable: dict[int, Exception] = {}  # the reason why a variable cannot be used on this worker
        self._running: int | None = None  # number of the running call
        self._thread_id = 0  # id of the thread that runs functions
        self._cancelled: frozenset[int] = frozenset()  # numbers of calls to cancel at the next check
        self._scope = contextlib.ExitStack()
        self._do = {
            Command.DEFINE: self._define,
            Command.CALL: self._call,
            Command.MAKE: self._make,
            Command.HOLD: self._hold,
            Command.FETCH: self._fetch,
            Command.TABLE: self._attach,
            Command.FORGET: self._forget,
            Command.ENTER: self._enter,
        }

    def run(self) -> None:
        """Serve the coordinator until the channel closes, then wait for a running function.

        The wait has no limit if this thread, the main thread, runs functions; otherwise it takes at most one second.
        """
        mine, others = self._read, self._work
        if threading.current_thread() is threading.main_thread():
            mine, others = others, mine
        other = threading.Thread(target=others, name="ringlet-worker", daemon=True)
        other.start()
        mine()
        self._channel.close()
        other.join(_END_SECONDS)
        forget_tables(self._variables)

    def _work(self) -> None:
        # When this thread ends, closing the channel ends the reader and informs the coordinator.
        self._thread_id = threading.get_ident()
        with (
            contextlib.closing(self._channel),
            as_worker(self._index),
            checked_by(self._check_cancelled),
            self._scope,
            contextlib.suppress(ChannelClosed),
        ):
            while (item := self._next()) is not None:
                self._do[Command(item.kind)](item)

    def _next(self) -> Item | None:
        """Return the next command; None at the end."""
        try:
            return self._inbox.get_nowait()
        except queue.Empty:
            self._send_reports()
            return self._inbox.get()

    # --- replies ------------------------------------------------------------------------------------------------------

    def _report(self, kind: Reply, number: int | None = None, content: Any = None, buffers: Sequence[Any] = ()) -> None:
        with self._lock:
            self._reports.add(kind, number, content, buffers)
            is_due = self._reports.is_full or time.perf_counter() - self._reported_at > _GATHER_SECONDS
        if is_due:
            self._send_reports()

    def _send_reports(self) -> None:
        with self._lock:
            if len(self._reports):
                self._reported_at = time.perf_counter()
                self._channel.send(*self._reports.take())

    # --- the reader ---------------------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            poll = select.poll()
            poll.register(self._channel.fileno(), select.POLLIN)
            while True:
                while (message := self._channel.poll()) is not None:
                    for item in items_of(message):
                        self._take_in(item)
                is_busy = len(self._reports) or not self._inbox.empty()
                if not poll.poll(_LOOK_MILLISECONDS if is_busy else None):
                    self._send_reports()
        except Exception as error:
            if not _means_closed(error):
                what = str(error) or type(error).__name__
                _log.error("worker %d exits, because it cannot read its commands: %s", self._index, what)
        finally:
            self._inbox.put(None)

    def _take_in(self, item: Item) -> None:
        if item.kind == Command.RECALL:
            self._give_back()
        elif item.kind == Command.CANCEL:
            self._cancelled = frozenset(item.content)
        elif item.kind == Command.DESCRIBE:
            (text,) = rank_stacks([(self._index, self._thread_id, True)])
            with self._lock:
                self._reports.add(Reply.DESCRIBED, None, text)
            self._send_reports()
        else:
            if item.kind == Command.CALL:
                self._waiting[item.number] = True
            self._inbox.put(item)

    def _give_back(self) -> None:
        """Send back the calls that have not begun. Other commands stay queued."""
        returned = [number for number in list(self._waiting) if self._has_claimed(number)]
        with self._lock:
            self._reports.add(Reply.RETURNED, None, returned)
        self._send_reports()

    def _has_claimed(self, number: int) -> bool:
        """Claim a call, to run or return it; return False if the other thread has claimed it."""
        return self._waiting.pop(number, False)

    # --- commands -----------------------------------------------------------------------------------------------------

    def _call(self, item: Item) -> None:
        if not self._has_claimed(item.number):
            return
        began = time.perf_counter()
        self._running = item.number
        try:
            value = self._apply(item)
            self._running = None  # a later request to cancel this call has no effect
            header, buffers = (None, ()) if value is None else self._packed(value, item)
        except BaseException as error:
            self._leave_child(error)
            self._running = None
            if isinstance(error, CancelledError) and item.number in self._cancelled:
                self._report(Reply.CANCELLED, item.number)
                return
            failure = self._failure_of(error, item)
            self._report(Reply.FAILURE, item.number, (time.perf_counter() - began, failure))
        else:
            self._report(Reply.RESULT, item.number, (time.perf_counter() - began, header), buffers)

    def _check_cancelled(self) -> None:
        # Only the thread that runs functions cancels: dataset threads outlive the call that started them.
        if self._running in self._cancelled and threading.get_ident() == self._thread_id:
            raise CancelledError(CANCELLED)

    def _make(self, item: Item) -> None:
        try:
            self._values[item.number] = self._apply(item)
        except BaseException as error:
            self._leave_child(error)
            self._values[item.number] = _NotMade(error)
            self._report(Reply.NOT_MADE, item.number, self._failure_of(error, item))
        else:
            self._report(Reply.MADE, item.number)

    def _apply(self, item: Item) -> Any:
        number, header = item.content
        args, kwargs = ((), {}) if header is None else unpack(header, item.buffers, self._resolve)
        try:
            value = self._functions[number](*args, **kwargs)
            self._leave_child(SystemExit())
            return value
        except StopIteration as error:  # raised by next(iterator); TensorFlow programs catch OutOfRangeError
            raise OutOfRangeError(
                "End of sequence: the iterator that the function reads has no more elements. Create another iterator"
            ) from error

    def _leave_child(self, error: BaseException) -> None:
        """Raise `error` in a child that a function has forked, because only the parent is the worker."""
        if os.getpid() != self._pid:
            raise error

    def _packed(self, value: Any, item: Item) -> tuple[bytes, Sequence[Any]]:
        try:
            header, buffers = pack(value, _value_in_place)
            check_size(header, buffers)
        except Unsendable as error:
            name = named(self._functions[item.content[0]])
            text = f"cannot send the result of {name} back: "
            if (cause := error.__cause__) is None:
                raise Unsendable(f"{text}{error}") from error
            reason = str(cause) or type(cause).__name__
            raise Unsendable(f"{text}{reason}. Return arrays or plain objects") from error
        return header, buffers

    def _failure_of(self, error: BaseException, item: Item) -> Failure:
        if not isinstance(error, Exception):
            name = named(self._functions[item.content[0]])
            wrapped = RuntimeError(f"{name} tried to end its worker with {error!r}: raise an Exception instead")
            error = wrapped.with_traceback(error.__traceback__)
        return failure_of(error, {__file__})

    def _define(self, item: Item) -> None:
        name, digest, header = item.content
        try:
            function = unpack(header, item.buffers, self._resolve)
        except (ClosureInputError, FailedPreconditionError) as error:  # errors whose messages are complete
            self._functions[item.number] = _refusing(error)
            return
        except Exception as error:
            refusal = FailedPreconditionError(
                f"{name} cannot be loaded on worker {self._index}: {type(error).__name__}: {error}. Install the "
                "modules that it imports on that worker, in the coordinator's versions"
            )
            refusal.__cause__ = error
            self._functions[item.number] = _refusing(refusal)
            return
        own = code_digest(function)
        if digest and own and own != digest:
            function = _refusing(
                FailedPreconditionError(
                    f"{name} differs between worker {self._index} and the coordinator: {function.__module__} has "
                    "changed since the coordinator imported it. Start the job again"
                )
            )
        self._functions[item.number] = function

    def _hold(self, item: Item) -> None:
        try:
            self._values[item.number] = unpack(item.content, item.buffers, self._resolve)
        except Exception as error:
            self._values[item.number] = _NotMade(error)

    def _fetch(self, item: Item) -> None:
        try:
            header, buffers = pack(self._value(item.number), _value_in_place)
            check_size(header, buffers)
        except Exception as error:
            self._report(Reply.UNFETCHED, item.number, failure_of(error, {__file__}))
        else:
            self._report(Reply.FETCHED, item.number, header, buffers)

    def _attach(self, item: Item) -> None:
        try:
            attach_table(item.number, item.descriptors[0] if item.descriptors else self._remote_table(item))
            self._variables.add(item.number)
        except Exception as error:  # stored, and raised by functions that use the variable
            self._unusable[item.number] = error
        finally:
            for descriptor in item.descriptors:
                os.close(descriptor)

    def _remote_table(self, item: Item) -> RemoteTable:
        if self._servers is None:
            assert self._connect_servers is not None
            self._servers = self._connect_servers()
        return RemoteTable(self._servers, item.content, item.number)

    def _forget(self, item: Item) -> None:
        for kind, number in item.content:
            if kind == "function":
                self._functions.pop(number, None)
            elif kind == "value":
                self._values.pop(number, None)
            elif number in self._variables:
                self._variables.remove(number)
                forget_tables([number])
            else:
                self._unusable.pop(number, None)

    def _enter(self, item: Item) -> None:
        strategy = unpack(item.content, item.buffers, self._resolve)
        self._scope.enter_context(strategy.scope())
        self._report(Reply.READY)

    # --- references ---------------------------------------------------------------------------------------------------

    def _resolve(self, token: tuple[Any, ...]) -> Any:
        kind, *rest = token
        if kind == "use":
            name, function, args = rest
            error = self._unusable.get(args[0])
            if error is not None:
                raise FailedPreconditionError(
                    f"variable '{name}' is unusable on worker {self._index}: {error}"
                ) from error
            return function(*args)
        if kind == "make":
            function, args = rest
            return function(*args)
        (numbers,) = rest
        return self._value(numbers[self._index])

    def _value(self, number: int) -> Any:
        value = self._values.get(number, _NEVER_MADE)
        if isinstance(value, _NotMade):
            raise ClosureInputError(value.error)
        return value


class _NotMade:
    """Placeholder for a value that could not be created."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_NEVER_MADE = _NotMade(FailedPreconditionError("it belongs to another worker or was released: create it again"))


def _means_closed(error: Exception) -> bool:
    """Return whether an exception only means that the channel was closed."""
    is_unread = error.__cause__ is not None or getattr(error, "errno", None) == errno.EMFILE
    return isinstance(error, (ChannelClosed, ValueError, OSError)) and not is_unread


def _refusing(error: Exception) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error.with_traceback(None)

    return refuse


def _value_in_place(part: Any) -> Any:
    """Return a token with the value of a variable; None for other objects."""
    if isinstance(part, Variable):
        return "value", part.read_value()
    if isinstance(part, ShardedVariable):
        return "value", np.asarray(part)
    return None
