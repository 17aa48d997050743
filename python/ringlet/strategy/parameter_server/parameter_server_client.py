"""The parameter servers of a cluster, as their coordinator asks them for the memory of variables."""

from __future__ import annotations

import collections
import concurrent.futures
import contextlib
import errno
import itertools
import logging
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
from ringlet.values.variables.table_storage import TableForm, TableStorage, new_table_key

__all__ = ["ParameterServers", "servers_of"]

_log = logging.getLogger(__name__)

# One for the message that brings a table, one to keep, and some for other threads.
_SPARE_FILES = 8
# An answer takes no longer, unless something is wrong that a person can see to.
_SLOW_SECONDS = 30.0


class ParameterServers:
    """Makes tables on the parameter servers of a cluster. Every method may be called by any thread.

    Parameters
    ----------
    tasks : Tasks
        The processes of the cluster. Nobody else writes to those of its parameter servers, or reads what they send.

    Attributes
    ----------
    tasks : Tasks
    """

    def __init__(self, tasks: Any) -> None:
        self.tasks = tasks
        self._loss: tuple[str, int, str] | None = None
        self._lock = threading.Lock()
        # For each parameter server, keys of tables that it holds and whose variables are gone; finalizers append.
        self._gone: list[collections.deque[int]] = [collections.deque() for _ in tasks.ps]
        self._numbers = itertools.count()  # of requests

    @property
    def lost(self) -> PSUnavailableError | None:
        """The first loss of a parameter server. No more tables are made then; those that exist stay readable.

        A new exception each time: one that is kept keeps the frames that it was raised in, and with them the whole job.
        """
        return None if self._loss is None else PSUnavailableError(*self._loss)

    def create(self, index: int, form: TableForm, array_type: type[Any]) -> TableStorage:
        """Have a parameter server make a table of zeros.

        Parameters
        ----------
        index : int
            Which parameter server.
        form : TableForm
        array_type : type
            What reads are of.

        Returns
        -------
        TableStorage
            The table is given back to the system once this and the mappings of other processes are gone.

        Raises
        ------
        PSUnavailableError
            If that one, or another one, has ended.
        FailedPreconditionError
            If the cluster was stopped.
        DeadlineExceededError
            If it does not answer in time.
        SharedMemoryFullError
            If there is no memory left.
        OSError
            If this process may open no more files.
        """
        key = new_table_key()
        try:
            storage = TableStorage(key, _undisturbed(self._new_table, index, key, form), form, array_type)
        except BaseException:  # it may have been made
            self._gone[index].append(key)
            raise
        # A finalizer runs wherever the last reference goes: it takes no lock.
        weakref.finalize(storage, self._gone[index].append, key).atexit = False
        return storage

    def _new_table(self, index: int, key: int, form: TableForm) -> _core.Table:
        with self._lock:
            _make_room()
            self._forget(index)
            (descriptor,) = self._ask(index, ("create", key, *form.stored_as_text())).descriptors
        try:
            return _core.Table(descriptor)
        finally:
            os.close(descriptor)

    def _forget(self, index: int) -> None:
        """Tell a parameter server which of its tables nobody needs any more; the lock is held."""
        gone = self._gone[index]
        if keys := [gone[i] for i in range(len(gone))]:
            self._ask(index, ("forget", keys))
            for _ in keys:  # not before it has answered: it is told again if this was interrupted
                gone.popleft()

    def mark_lost(self, index: int) -> PSUnavailableError | FailedPreconditionError:
        """Note that a parameter server has ended.

        Parameters
        ----------
        index : int

        Returns
        -------
        PSUnavailableError
            What was noticed first, which may be about another one.
        FailedPreconditionError
            If the cluster was stopped, which is no loss.
        """
        if self._loss is None:
            reason = self.tasks.ending_of("ps", index) or "has closed its connection"
            if all(channel.fileno() < 0 for channel in (*self.tasks.ps, *self.tasks.workers)):  # by this process
                return _stopped()
            self._loss = (
                f"parameter server {index} ({task_name('ps', index)}, pid {self.tasks.pid_of('ps', index)}) {reason}: "
                "this ends the job. Its variables can still be read, and saved; start again with a new strategy",
                index,
                reason,
            )
        return PSUnavailableError(*self._loss)

    def _ask(self, index: int, request: tuple[Any, ...]) -> Message:
        """Send a request to a parameter server, and wait for its reply; the lock is held."""
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


def _undisturbed(call: Callable[..., _core.Table], *args: Any) -> _core.Table:
    """Call something where no handler of signals can raise, which would tear a message: not in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        return call(*args)
    future: concurrent.futures.Future[_core.Table] = concurrent.futures.Future()
    threading.Thread(target=_fulfil, args=(future, call, args), name="ringlet-table", daemon=True).start()
    try:
        return future.result()
    finally:
        del future  # its exception refers to this frame


def _fulfil(future: concurrent.futures.Future[Any], call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        future.set_result(call(*args))
    except BaseException as error:
        future.set_exception(error)


def _stopped() -> FailedPreconditionError:
    return FailedPreconditionError(
        "the cluster of this strategy was stopped: make another strategy, which starts it again"
    )


def _reply_to(number: int, channel: Channel, deadline: Deadline) -> tuple[Message, tuple[Any, ...]]:
    """Wait for the reply to a request."""
    while True:
        message = _receive(channel, deadline)
        its_number, reply = unpack(message.header, message.buffers)
        if its_number == number:
            return message, reply
        for descriptor in message.descriptors:  # to a request whose sender was interrupted, and waits no longer
            os.close(descriptor)


def _receive(channel: Channel, deadline: Deadline) -> Message:
    poller = select.poll()
    with contextlib.suppress(ValueError):  # it was closed meanwhile, as `poll` tells
        poller.register(channel.fileno(), select.POLLIN)
    while (message := channel.poll()) is None:
        if deadline.is_over():
            raise DeadlineExceededError(
                f"{channel.peer} has not answered for {deadline}: look whether its process is stopped. Allow more with "
                "RINGLET_TIMEOUT_SECONDS"
            )
        if not poller.poll(deadline.left(_SLOW_SECONDS) * 1000) and not deadline.is_over():
            _log.warning(
                "%s has not answered for %g s: look whether its process is stopped", channel.peer, _SLOW_SECONDS
            )
    return message


def _make_room() -> None:
    """Let this process open more files if it has as many as it may: each variable is one.

    Raises
    ------
    OSError
        If the system allows no more.
    """
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
            f"each variable on parameter servers is an open file, and this process may have {most}: allow more with "
            "`ulimit -n`, or make fewer and larger variables",
        )
    wanted = 4 * most if ceiling == resource.RLIM_INFINITY else min(4 * most, ceiling)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, ceiling))


_known: weakref.WeakKeyDictionary[ClusterResolver, ParameterServers] = weakref.WeakKeyDictionary()
_starting = threading.Lock()


def servers_of(resolver: ClusterResolver) -> ParameterServers:
    """Give the parameter servers of a cluster, whose processes are started if they do not run.

    Parameters
    ----------
    resolver : ClusterResolver

    Returns
    -------
    ParameterServers
        The same for every strategy over this resolver, until its cluster is stopped.

    Raises
    ------
    DeadlineExceededError, FailedPreconditionError, OSError
        As of :func:`ringlet.cluster.start_tasks`.
    """
    with _starting:
        known = _known.get(resolver)
        if known is None or all(channel.fileno() < 0 for channel in known.tasks.ps):
            tasks = start_tasks(resolver, default_timeout_seconds())
            if known is None or tasks is not known.tasks:
                known = _known[resolver] = ParameterServers(tasks)
        return known
