"""Client of the parameter servers of a cluster: the coordinator's requests for the memory of variables."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import errno
import itertools
import logging
import math
import os
import resource
import select
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ringlet import _core
from ringlet.cluster import ClusterResolver, start_tasks
from ringlet.cluster.worker_job_key import task_name
from ringlet.collectives.timeouts import default_timeout_seconds
from ringlet.errors import DeadlineExceededError, FailedPreconditionError, PSUnavailableError
from ringlet.ipc import Channel, ChannelClosed, Message, pack, unpack
from ringlet.ipc.deadline import Deadline
from ringlet.ipc.remote_exception import exception_of
from ringlet.observe.stall_reports import stall_seconds
from ringlet.values.variables.table_storage import TableForm, TableStorage, new_table_key

_log = logging.getLogger(__name__)

# Free file descriptors for a new table: one in the message, one to keep, and some for other threads.
_SPARE_FILES = 8


class ParameterServers:
    """Creates tables on the parameter servers of a cluster; thread-safe. No other object communicates with them."""

    def __init__(self, tasks: Any) -> None:
        self.tasks = tasks
        self._loss: tuple[str, int, str] | None = None
        self._lock = threading.Lock()
        # For each parameter server, the keys of tables whose variables were freed; appended by finalizers.
        self._freed: list[collections.deque[int]] = [collections.deque() for _ in tasks.ps]
        self._numbers = itertools.count()  # ids of requests

    @property
    def lost(self) -> PSUnavailableError | None:
        """The first loss of a parameter server, after which no tables are created; existing tables stay readable.

        Each call returns a new exception, because a stored exception would keep its frames alive, and so the whole
        job.
        """
        return None if self._loss is None else PSUnavailableError(*self._loss)

    def create(self, index: int, form: TableForm, array_type: type[Any]) -> TableStorage:
        """Create a table of zeros on a server; its memory lives as long as the result or another mapping of it.

        Raises PSUnavailableError if any server has exited, and FailedPreconditionError if the cluster was stopped.
        """
        key = new_table_key()
        try:
            storage = TableStorage(key, _uninterrupted(self._new_table, index, key, form), form, array_type)
        except BaseException:  # free the table, which the server may have created
            self._freed[index].append(key)
            raise
        # A finalizer may run in any thread, so it must not take a lock.
        weakref.finalize(storage, self._freed[index].append, key).atexit = False
        return storage

    def _new_table(self, index: int, key: int, form: TableForm) -> _core.Table:
        with self._lock:
            _reserve_files()
            self._free_tables(index)
            (descriptor,) = self._ask(index, ("create", key, *form.stored_as_text())).descriptors
        try:
            return _core.Table(descriptor)
        finally:
            os.close(descriptor)

    def _free_tables(self, index: int) -> None:
        """Send a parameter server the keys of tables to free; the caller holds the lock."""
        freed = self._freed[index]
        if keys := [freed[i] for i in range(len(freed))]:
            self._ask(index, ("forget", keys))
            for _ in keys:  # removed only after the reply, because an interrupted request is repeated
                freed.popleft()

    def mark_lost(self, index: int) -> PSUnavailableError | FailedPreconditionError:
        """Record that a parameter server has exited; return the error of the first recorded loss."""
        if self._loss is None:
            reason = self.tasks.ending_of("ps", index) or "has closed its connection"
            # If all channels are closed, this process has stopped the cluster; no server was lost.
            if all(channel.fileno() < 0 for channel in (*self.tasks.ps, *self.tasks.workers)):
                return _stopped()
            self._loss = (
                f"parameter server {index} ({task_name('ps', index)}, pid {self.tasks.pid_of('ps', index)}) {reason}: "
                "the job has failed. Its variables can still be read and saved; create a new strategy to continue",
                index,
                reason,
            )
        return PSUnavailableError(*self._loss)

    def _ask(self, index: int, request: tuple[Any, ...]) -> Message:
        """Send a request to a parameter server and wait for its reply; the caller holds the lock."""
        if (lost := self.lost) is not None:
            raise lost
        channel = self.tasks.ps[index]
        if channel.fileno() < 0:
            raise _stopped()
        number = next(self._numbers)
        try:
            channel.send(*pack((number, request)))
            message, reply = _reply_to(number, channel, Deadline.after(default_timeout_seconds()))
        except ChannelClosed as error:
            raise self.mark_lost(index) from error
        if reply[0] == "failed":
            raise exception_of(reply[1], task_name("ps", index))
        return message


def _uninterrupted(call: Callable[..., _core.Table], *args: Any) -> _core.Table:
    """Call a function in a thread other than the main thread, so that no signal handler interrupts a message."""
    if threading.current_thread() is not threading.main_thread():
        return call(*args)
    future: concurrent.futures.Future[_core.Table] = concurrent.futures.Future()
    threading.Thread(target=_fulfil, args=(future, call, args), name="ringlet-table", daemon=True).start()
    try:
        return future.result()
    finally:
        del future  # the exception of the result refers to this frame


def _fulfil(future: concurrent.futures.Future[Any], call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        future.set_result(call(*args))
    except BaseException as error:
        future.set_exception(error)


def _stopped() -> FailedPreconditionError:
    return FailedPreconditionError(
        "the cluster of this strategy was stopped: create another strategy, which restarts the cluster"
    )


def _reply_to(number: int, channel: Channel, deadline: Deadline) -> tuple[Message, tuple[Any, ...]]:
    while True:
        message = _receive(channel, deadline)
        its_number, reply = unpack(message.header, message.buffers)
        if its_number == number:
            return message, reply
        for descriptor in message.descriptors:  # reply to an earlier request that was interrupted
            os.close(descriptor)


def _receive(channel: Channel, deadline: Deadline) -> Message:
    poller = select.poll()
    with contextlib.suppress(ValueError):  # the channel was closed in the meantime, which `poll` detects
        poller.register(channel.fileno(), select.POLLIN)
    while (message := channel.poll()) is None:
        if deadline.is_over():
            raise DeadlineExceededError(
                f"{channel.peer} has not answered for {deadline}: check whether its process is stopped. Allow more "
                "time with RINGLET_TIMEOUT_SECONDS"
            )
        limit = stall_seconds()
        seconds = deadline.left(limit)
        is_late = not poller.poll(None if math.isinf(seconds) else seconds * 1000)
        if is_late and not deadline.is_over():
            _log.warning("%s has not answered for %g s: check whether its process is stopped", channel.peer, limit)
    return message


def _reserve_files() -> None:
    """Raise the limit on open files of this process if it is reached: each variable is an open file."""
    opened: list[int] = []
    try:
        for _ in range(_SPARE_FILES):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        _allow_more_files()
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _allow_more_files() -> None:
    most, ceiling = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == ceiling:
        raise OSError(
            errno.EMFILE,
            f"each variable on parameter servers is an open file, but this process may open at most {most}: raise the "
            "limit with `ulimit -n`, or create fewer, larger variables",
        )
    wanted = 4 * most if ceiling == resource.RLIM_INFINITY else min(4 * most, ceiling)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, ceiling))


_known: weakref.WeakKeyDictionary[ClusterResolver, ParameterServers] = weakref.WeakKeyDictionary()
_starting = threading.Lock()


def servers_of(resolver: ClusterResolver) -> ParameterServers:
    """Return the parameter servers of a cluster, after starting its processes if necessary.

    All strategies that use this resolver share the object until its cluster is stopped.
    """
    with _starting:
        known = _known.get(resolver)
        if known is None or all(channel.fileno() < 0 for channel in known.tasks.ps):
            tasks = start_tasks(resolver, default_timeout_seconds())
            if known is None or tasks is not known.tasks:
                known = _known[resolver] = ParameterServers(tasks)
        return known
