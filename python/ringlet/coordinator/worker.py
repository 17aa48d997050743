"""A worker: runs what its coordinator schedules, one function after another."""

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

from ringlet.coordinator.code_digest import code_digest
from ringlet.coordinator.current_worker import as_worker
from ringlet.coordinator.protocol import Batch, Item, Order, Report, check_size, items_of
from ringlet.errors import ClosureInputError, FailedPreconditionError, OutOfRangeError
from ringlet.ipc import Channel, ChannelClosed, pack, unpack
from ringlet.ipc.call_codec import Unsendable
from ringlet.ipc.pickle_diagnostics import named
from ringlet.ipc.remote_exception import Failure, failure_of
from ringlet.values import Variable
from ringlet.values.variables.sharded_variable import ShardedVariable
from ringlet.values.variables.table_variable import attach_table, forget_tables

__all__ = ["Worker"]

_log = logging.getLogger(__name__)

# Reports are gathered for so long while there is more to do; and sent by the reader if what comes then takes longer.
_GATHER_SECONDS = 0.001
_LOOK_MILLISECONDS = 20
# How long a function may take to end once the coordinator is gone.
_END_SECONDS = 1.0


class Worker:
    """One worker.

    One thread runs functions; another one reads what the coordinator says, and so can give back what was not begun
    while a function runs. Functions have the main thread of the process, if that is the one that calls `run`.

    Parameters
    ----------
    channel : Channel
        Leads to the coordinator.
    index : int
    """

    def __init__(self, channel: Channel, index: int) -> None:
        self._channel = channel
        self._index = index
        self._pid = os.getpid()
        self._inbox: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # of the reports
        self._waiting: dict[int, bool] = {}  # calls that were not begun; who removes one has it
        self._reports = Batch()
        self._reported_at = 0.0
        self._functions: dict[int, Callable[..., Any]] = {}
        self._values: dict[int, Any] = {}
        self._variables: set[int] = set()
        self._unusable: dict[int, Exception] = {}  # why a variable cannot be used here
        self._scope = contextlib.ExitStack()
        self._do = {
            Order.DEFINE: self._define,
            Order.CALL: self._call,
            Order.MAKE: self._make,
            Order.HOLD: self._hold,
            Order.FETCH: self._fetch,
            Order.TABLE: self._attach,
            Order.FORGET: self._forget,
            Order.ENTER: self._enter,
        }

    def run(self) -> None:
        """Serve the coordinator until it is gone; where this is not the main thread, what runs then is left alone."""
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
        # However this ends: the coordinator then knows, and the reader ends, too.
        with contextlib.closing(self._channel), as_worker(self._index), self._scope, contextlib.suppress(ChannelClosed):
            while (item := self._next()) is not None:
                self._do[Order(item.kind)](item)

    def _next(self) -> Item | None:
        """Give the next order; None at the end."""
        try:
            return self._inbox.get_nowait()
        except queue.Empty:
            self._send_reports()
            return self._inbox.get()

    # --- what it tells ------------------------------------------------------------------------------------------------

    def _report(
        self, kind: Report, number: int | None = None, content: Any = None, buffers: Sequence[Any] = ()
    ) -> None:
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
            if not _tells_of_the_end(error):
                what = str(error) or type(error).__name__
                _log.error("worker %d ends, as it cannot take what it is sent: %s", self._index, what)
        finally:
            self._inbox.put(None)

    def _take_in(self, item: Item) -> None:
        if item.kind == Order.RECALL:
            self._give_back()
        else:
            if item.kind == Order.CALL:
                self._waiting[item.number] = True
            self._inbox.put(item)

    def _give_back(self) -> None:
        """Return the calls that were not begun. All orders stay in their places: those of what calls need, too."""
        returned = [number for number in list(self._waiting) if self._has_claimed(number)]
        with self._lock:
            self._reports.add(Report.RETURNED, None, returned)
        self._send_reports()

    def _has_claimed(self, number: int) -> bool:
        """Take a call, to run it or to return it; False if the other thread has."""
        return self._waiting.pop(number, False)

    # --- what it is told ----------------------------------------------------------------------------------------------

    def _call(self, item: Item) -> None:
        if not self._has_claimed(item.number):
            return
        began = time.perf_counter()
        try:
            value = self._apply(item)
            header, buffers = (None, ()) if value is None else self._packed(value, item)
        except BaseException as error:
            self._leave_child(error)
            failure = self._failure_of(error, item)
            self._report(Report.FAILURE, item.number, (time.perf_counter() - began, failure))
        else:
            self._report(Report.RESULT, item.number, (time.perf_counter() - began, header), buffers)

    def _make(self, item: Item) -> None:
        try:
            self._values[item.number] = self._apply(item)
        except BaseException as error:
            self._leave_child(error)
            self._values[item.number] = _NotMade(error)
            self._report(Report.NOT_MADE, item.number, self._failure_of(error, item))
        else:
            self._report(Report.MADE, item.number)

    def _apply(self, item: Item) -> Any:
        """Call a function with the arguments that came along."""
        number, header = item.content
        args, kwargs = ((), {}) if header is None else unpack(header, item.buffers, self._resolve)
        try:
            value = self._functions[number](*args, **kwargs)
            self._leave_child(SystemExit())
            return value
        except StopIteration as error:  # of next(iterator), which programs catch as TensorFlow's class
            raise OutOfRangeError(
                "End of sequence: the iterator that the function reads has no more elements"
            ) from error

    def _leave_child(self, error: BaseException) -> None:
        """End a process that a function has forked, and that comes back from it: there is one worker."""
        if os.getpid() != self._pid:
            raise error

    def _packed(self, value: Any, item: Item) -> tuple[bytes, Sequence[Any]]:
        try:
            header, buffers = pack(value, _value_in_place)
            check_size(header, buffers)
        except Unsendable as error:
            name = named(self._functions[item.content[0]])
            cause = error.__cause__ or error
            raise Unsendable(
                f"cannot send the result of {name} back: {str(cause) or type(cause).__name__}. Return arrays or plain "
                "objects"
            ) from error
        return header, buffers

    def _failure_of(self, error: BaseException, item: Item) -> Failure:
        if not isinstance(error, Exception):
            name = named(self._functions[item.content[0]])
            wrapped = RuntimeError(f"{name} has asked to end its worker: {error!r}")
            error = wrapped.with_traceback(error.__traceback__)
        return failure_of(error, {__file__})

    def _define(self, item: Item) -> None:
        name, digest, header = item.content
        try:
            function = unpack(header, item.buffers, self._resolve)
        except (ClosureInputError, FailedPreconditionError) as error:  # they say it all
            self._functions[item.number] = _refusing(error)
            return
        except Exception as error:
            refusal = FailedPreconditionError(
                f"{name} cannot be loaded on worker {self._index}: {type(error).__name__}: {error}. A module that it "
                "needs is missing there, or is another version than the coordinator has"
            )
            refusal.__cause__ = error
            self._functions[item.number] = _refusing(refusal)
            return
        own = code_digest(function)
        if digest and own and own != digest:
            function = _refusing(
                FailedPreconditionError(
                    f"{name} is other code on worker {self._index} than in the coordinator: {function.__module__} has "
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
            self._report(Report.UNFETCHED, item.number, failure_of(error, {__file__}))
        else:
            self._report(Report.FETCHED, item.number, header, buffers)

    def _attach(self, item: Item) -> None:
        for descriptor in item.descriptors:
            try:
                attach_table(item.number, descriptor)
                self._variables.add(item.number)
            except Exception as error:  # functions that use it say so
                self._unusable[item.number] = error
            finally:
                os.close(descriptor)

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
        self._report(Report.READY)

    # --- what stands for something else -------------------------------------------------------------------------------

    def _resolve(self, token: tuple[Any, ...]) -> Any:
        kind, *rest = token
        if kind == "use":
            name, function, args = rest
            error = self._unusable.get(args[0])
            if error is not None:
                raise FailedPreconditionError(
                    f"variable '{name}' cannot be used on worker {self._index}: {error}"
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
    """Stands where a value would be."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


_NEVER_MADE = _NotMade(FailedPreconditionError("it belongs to another worker, or was given up by the coordinator"))


def _tells_of_the_end(error: Exception) -> bool:
    """Whether an exception means no more than that the coordinator is gone, or the channel was closed here."""
    is_unread = error.__cause__ is not None or getattr(error, "errno", None) == errno.EMFILE
    return isinstance(error, (ChannelClosed, ValueError, OSError)) and not is_unread


def _refusing(error: Exception) -> Callable[..., Any]:
    """Give what stands for a function that is not there."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error.with_traceback(None)

    return refuse


def _value_in_place(part: Any) -> Any:
    """Variables do not travel back: their values do."""
    if isinstance(part, Variable):
        return "value", part.read_value()
    if isinstance(part, ShardedVariable):
        return "value", np.asarray(part)
    return None
