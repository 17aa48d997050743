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
from typing import Any, TypeAlias, TypeVar

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

T = TypeVar("T")
# A message, and the reply decoded from it.
_Answer: TypeAlias = tuple[Message, tuple[Any, ...]]

# Free file descriptors required to create a table: two for the table, and a reserve for other threads.
_SPARE_FILES = 8


class RemoteTable:
    """A table on a parameter server of another host, read and changed by methods like those of `_core.Table`.

    Each call is one request, which the server executes once; a call that raises an error may still have an effect.
    """

    __slots__ = ("_key", "_servers", "index")

    def __init__(self, servers: ParameterServers, index: int, key: int) -> None:
        self._servers, self.index, self._key = servers, index, key

    def read(self, begin: int = 0, end: int | None = None, out: Any = None) -> Any:
        """Return rows, in `out` if given."""
        rows = self._call("read", begin, end)
        if out is None:
            return rows
        out[...] = rows
        return out

    def gather(self, indices: Any) -> Any:
        """Return a row for each index."""
        return self._call("gather", indices)

    def update(self, op: int, value: Any) -> None:
        """Apply the operation with the core's number `op` to all rows."""
        self._call("update", op, value)

    def scatter(self, op: int, indices: Any, values: Any) -> None:
        """Apply the operation with the core's number `op` to the rows at `indices`."""
        self._call("scatter", op, indices, values)

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._servers.ask(self.index, (method, self._key, *arguments))[1]


class ParameterServers:
    """Creates tables on the parameter servers of a cluster, and accesses tables on other hosts; thread-safe.

    No other object communicates with the servers.
    """

    def __init__(self, tasks: Any) -> None:
        self.tasks = tasks
        self._loss: tuple[str, int, str] | None = None
        # One lock for each parameter server, held from a request to its reply.
        self._locks = [threading.Lock() for _ in tasks.ps]
        # For each parameter server, the keys of tables whose variables were freed; appended by finalizers.
        self._freed: list[collections.deque[int]] = [collections.deque() for _ in tasks.ps]
        self._numbers = itertools.count()  # ids of requests

    @property
    def lost(self) -> PSUnavailableError | None:
        """The first known loss of a parameter server, or None; afterwards no tables are created, but local tables stay.

        Each access returns a new exception: a stored exception would keep its frames, and through them the job, alive.
        """
        return None if self._loss is None else PSUnavailableError(*self._loss)

    def create(self, index: int, form: TableForm, array_type: type[Any]) -> TableStorage:
        """Create a table of zeros on a server; its memory is freed once no process maps it.

        Raises PSUnavailableError if a server is known to be lost, FailedPreconditionError if the cluster was stopped.
        """
        key = new_table_key()
        try:
            table = _uninterrupted(self._new_table, index, key, form)
            storage = TableStorage(key, table or RemoteTable(self, index, key), form, array_type)
        except BaseException:  # free the table, which the server may have created
            self._freed[index].append(key)
            raise
        # A finalizer may run at any point, also in a thread that holds a lock, so it must not take one.
        weakref.finalize(storage, self._freed[index].append, key).atexit = False
        return storage

    def ask(self, index: int, request: tuple[Any, ...]) -> tuple[Any, ...]:
        """Send a request to a parameter server, and return its reply.

        Raises PSUnavailableError if this server has exited, and FailedPreconditionError if the cluster was stopped.
        """
        _, reply = _uninterrupted(self._locked, index, self._ask, index, request)
        return reply

    def _locked(self, index: int, call: Callable[..., _Answer], *args: Any) -> _Answer:
        if self.tasks.ps[index].fileno() < 0:  # closed; always in a forked child, whose lock may never be released
            raise self.mark_lost(index)
        with self._locks[index]:
            return call(*args)

    def _new_table(self, index: int, key: int, form: TableForm) -> _core.Table | None:
        if (lost := self.lost) is not None:
            raise lost
        message, _ = self._locked(index, self._ask_for_table, index, key, form)
        if not message.descriptors:  # the parameter server is on another host
            return None
        (descriptor,) = message.descriptors
        try:
            return _core.Table(descriptor)
        finally:
            os.close(descriptor)

    def _ask_for_table(self, index: int, key: int, form: TableForm) -> _Answer:
        _reserve_files()
        self._free_tables(index)
        return self._ask(index, ("create", key, *form.stored_as_text()))

    def _free_tables(self, index: int) -> None:
        """Send a parameter server the keys of tables to free; the caller holds the lock."""
        freed = self._freed[index]
        if keys := [freed[i] for i in range(len(freed))]:
            self._ask(index, ("forget", keys))
            for _ in keys:  # removed only after the reply, because an interrupted request is repeated
                freed.popleft()

    def mark_lost(self, index: int) -> PSUnavailableError | FailedPreconditionError:
        """Record that a parameter server has exited; return the error of the first recorded loss.

        If this process has stopped the cluster, record nothing, and return the error that says so.
        """
        channel = self.tasks.ps[index]
        if self._loss is None:
            if channel.was_closed_here:  # this process has stopped the cluster; no server was lost
                return _stopped()
            reason = self.tasks.ending_of("ps", index) or "has closed its connection"
            name = channel.peer if channel.is_remote else task_name("ps", index)
            values = (
                "The values of its variables are lost. Start the job again, from a checkpoint"
                if channel.is_remote
                else "Its variables can still be read and saved; create a new strategy to continue"
            )
            pid = self.tasks.pid_of("ps", index)
            text = f"parameter server {index} ({name}, pid {pid}) {reason}: the job has failed. {values}"
            self._loss = text, index, reason
        return PSUnavailableError(*self._loss)

    def _ask(self, index: int, request: tuple[Any, ...]) -> _Answer:
        """Send a request to a parameter server and wait for its reply; the caller holds the lock."""
        channel = self.tasks.ps[index]
        number = next(self._numbers)
        try:
            channel.send(*pack((number, request)))
            message, reply = _reply_to(number, channel, Deadline.after(default_timeout_seconds()))
        except ChannelClosed as error:
            raise self.mark_lost(index) from error
        if reply[0] == "failed":
            raise exception_of(reply[1], task_name("ps", index))
        return message, reply


def _uninterrupted(call: Callable[..., T], *args: Any) -> T:
    """Call a function in a thread other than the main thread, so that no signal handler interrupts a message."""
    if threading.current_thread() is not threading.main_thread():
        return call(*args)
    future: concurrent.futures.Future[T] = concurrent.futures.Future()
    threading.Thread(target=_fulfil, args=(future, call, args), name="ringlet-table", daemon=True).start()
    try:
        return future.result()
    finally:
        del future  # break a cycle: the exception of the future refers to this frame


def _fulfil(future: concurrent.futures.Future[Any], call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        future.set_result(call(*args))
    except BaseException as error:
        future.set_exception(error)


def _stopped() -> FailedPreconditionError:
    return FailedPreconditionError(
        "the cluster of this strategy was stopped: create another strategy, which restarts the cluster"
    )


def _reply_to(number: int, channel: Channel, deadline: Deadline) -> _Answer:
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
