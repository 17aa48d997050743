"""Dispatcher: the thread that sends closures to workers, receives results, and restarts lost workers."""

from __future__ import annotations

import collections
import contextlib
import functools
import logging
import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable

from ringlet import _core
from ringlet.cluster import Tasks
from ringlet.collectives.timeouts import default_timeout_seconds
from ringlet.coordinator.argument_codec import Payload
from ringlet.coordinator.closure_queue import MOST_QUEUED, ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import CANCELLED
from ringlet.coordinator.worker_connection import WorkerConnection
from ringlet.errors import CancelledError, DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc import Channel, ChannelClosed
from ringlet.ipc.unix_sockets import pair
from ringlet.observe.stall_reports import stall_seconds

_log = logging.getLogger(__name__)

# A closure fails after this many workers have exited while running it, because it is presumed to be the cause.
_MOST_LOSSES = 8
# A worker is not restarted after this many consecutive processes have exited before their first message.
_MOST_FAILED_STARTS = 5
_LOOK_MILLISECONDS = 10  # polling interval while closures may be stuck behind a running closure
_SLOW_LOOK_MILLISECONDS = 1000  # polling interval while closures run
# Interval of heartbeat requests to a silent worker, and their minimum number before it counts as lost. Requests are
# counted, because the clock also advances while this process and the worker are stopped together.
_ASK_SECONDS = 30.0
_LEAST_ASKS = 4
_HANGUP = getattr(select, "POLLRDHUP", 0)  # 0 on systems without POLLRDHUP, where poll() reports POLLHUP


class Dispatcher:
    """Serves one coordinator, until it is stopped, a parameter server is lost, or no worker is left.

    The dispatcher sends `strategy` to each worker. `on_server_lost` takes the index of a lost parameter server and
    returns the error.
    """

    def __init__(
        self,
        tasks: Tasks,
        strategy: Payload,
        on_server_lost: Callable[[int], BaseException],
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._queue = ClosureQueue(self._wake, most_queued)
        self.connections = [WorkerConnection(index, self._queue) for index in range(len(tasks.workers))]
        self._tasks = tasks
        self._strategy = strategy
        self._on_server_lost = on_server_lost
        self._pid = os.getpid()
        self._calls: collections.deque[Callable[[], object]] = collections.deque()
        self._wake_reader, self._wake_writer = pair(socket.SOCK_STREAM)
        self._wake_reader.setblocking(False)
        self._wake_writer.setblocking(False)
        self._is_asleep = self._has_work = self._is_stopping = self._has_ended = False
        self._poll = select.poll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._descriptors: dict[WorkerConnection, int] = {}
        self._num_given_up = 0
        self._timeout_seconds = default_timeout_seconds()
        self._stall_seconds = stall_seconds()
        self._ask_seconds = min(_ASK_SECONDS, self._timeout_seconds / _LEAST_ASKS)
        self._final_error: BaseException = CancelledError(CANCELLED)
        self._thread = threading.Thread(target=self._run, name="ringlet-coordinator", daemon=True)

    def start(self) -> None:
        """Connect to all tasks, and start the thread."""
        self._register(self._wake_reader.fileno(), self._drain, select.POLLIN)
        for index, channel in enumerate(self._tasks.ps):
            self._register(channel.fileno(), functools.partial(self._lose_server, index), _HANGUP)
        for connection, channel in zip(self.connections, self._tasks.workers, strict=True):
            if channel.fileno() >= 0:
                self._connect(connection, channel)
            else:  # the previous coordinator of this cluster has closed the channel
                self._restart(connection)
        self._thread.start()

    @property
    def queue(self) -> ClosureQueue:
        """The closure queue."""
        self._check_process()
        return self._queue

    def call_soon(self, call: Callable[[], object]) -> None:
        """Run a call in the dispatcher's thread, or in the calling thread if the dispatcher has ended."""
        self._check_process()
        self._calls.append(call)
        if self._has_ended:
            self._make_calls()
        self._wake()

    def stop(self, error: BaseException, timeout_seconds: float) -> None:
        """End the thread and all processes. Queued closures are cancelled; later requests raise the error."""
        ends_at = time.monotonic() + timeout_seconds
        if self._pid == os.getpid():  # a forked child has no thread to end
            self.leave(error, timeout_seconds / 4)
            self._tasks.stop(max(ends_at - time.monotonic(), 0.0))

    def leave(self, error: BaseException, timeout_seconds: float) -> None:
        """End the thread, which disconnects the workers; then another coordinator may use the cluster.

        Takes no lock, because signal handlers and finalizers may call this method. If the time-out expires, the thread
        ends later.
        """
        if self._pid != os.getpid():
            return
        if not self._is_stopping:
            self._final_error = error
            self._is_stopping = True
            self._wake()
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise FailedPreconditionError(
                f"this coordinator belongs to process {self._pid}, the parent of this process (pid {os.getpid()}): use "
                "it in the parent"
            )

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        error_of_closures: BaseException = CancelledError(CANCELLED)
        try:
            while not self._is_stopping:
                self._run_once()
        except BaseException as error:  # a bug in the dispatcher: report it to all waiting threads
            if not self._is_stopping:
                _log.exception("the dispatcher thread of the coordinator has failed")
                self._final_error = error_of_closures = error
        self._is_asleep = False
        self._end(self._final_error, error_of_closures)
        self._has_ended = True
        self._make_calls()
        self._readers.clear()  # breaks the reference cycle, so that coordinator and cluster can be collected
        self._wake_reader.close()
        self._wake_writer.close()

    def _make_calls(self) -> None:
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                return
            call()

    def _run_once(self) -> None:
        self._is_asleep = True  # set before polling, so that work that is added later ends the poll
        ready = self._poll.poll(self._sleep_milliseconds())
        self._is_asleep = self._has_work = False
        for descriptor, _ in ready:
            if descriptor in self._readers:  # an earlier reader may have removed the descriptor
                self._readers[descriptor]()
        self._make_calls()
        self._check_workers()
        connected = [connection for connection in self.connections if connection.channel is not None]
        self._distribute(connected)
        for connection in connected:
            self._post(connection)

    def _sleep_milliseconds(self) -> int:
        if self._has_work:
            return 0
        most_in_flight = max(len(connection.in_flight) for connection in self.connections)
        if most_in_flight > 1:  # closures may be stuck behind the running closure
            return _LOOK_MILLISECONDS
        ask_milliseconds = math.ceil(1000 * self._ask_seconds)
        return min(_SLOW_LOOK_MILLISECONDS, ask_milliseconds) if most_in_flight else ask_milliseconds

    def _check_workers(self) -> None:
        """Recall stuck or cancelled closures, log slow ones, and disconnect workers that do not answer heartbeats."""
        now = time.monotonic()
        for connection in self.connections:
            if self._queue.is_cancelling or connection.is_stuck(now):
                connection.recall(now)
            if self._queue.is_cancelling:
                connection.cancel()
            if connection.is_slow(now, self._stall_seconds):
                is_here = connection.channel is not None and not connection.channel.is_remote
                pid = self._tasks.pid_of("worker", connection.index)
                connection.report(now, is_here and _core.is_stopped(pid))
            if now - connection.asked_at >= self._ask_seconds and connection.channel is not None:
                if connection.num_unanswered * self._ask_seconds >= self._timeout_seconds:
                    self._lose(connection, f"has not answered for {self._timeout_seconds:g} s")
                else:
                    connection.ask(now, self._timeout_seconds)

    def _distribute(self, connections: list[WorkerConnection]) -> None:
        for connection in sorted(connections, key=lambda connection: len(connection.in_flight)):
            num_queued = len(self._queue)
            if not num_queued:
                break
            connection.give(self._queue.take(connection.acceptor(), math.ceil(num_queued / len(connections))))

    def _post(self, connection: WorkerConnection) -> None:
        try:
            is_sent = connection.post()
        except ChannelClosed:
            self._lose(connection)
            return
        if connection in self._descriptors:
            self._poll.modify(self._descriptors[connection], select.POLLIN | (0 if is_sent else select.POLLOUT))

    def _wake(self) -> None:
        self._has_work = True
        if self._is_asleep:
            self._is_asleep = False
            # If the socket is full, the thread wakes anyway; if it is closed, the thread has ended.
            with contextlib.suppress(OSError):
                self._wake_writer.send(b".")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._wake_reader.recv(4096):
                pass

    def _register(self, descriptor: int, reader: Callable[[], None], events: int) -> None:
        self._readers[descriptor] = reader
        self._poll.register(descriptor, events)

    # --- connecting and losing workers --------------------------------------------------------------------------------

    def _connect(self, connection: WorkerConnection, channel: Channel) -> None:
        if connection.has_ended:  # `end` was called while the process started
            channel.close()
            return
        connection.connect(channel, self._strategy)
        descriptor = channel.fileno()
        if descriptor < 0:  # the cluster was stopped concurrently
            self._lose(connection)
        else:
            self._descriptors[connection] = descriptor
            self._register(descriptor, functools.partial(self._receive, connection), select.POLLIN)

    def _receive(self, connection: WorkerConnection) -> None:
        try:
            connection.receive()
        except ChannelClosed as error:
            # An unreadable message is itself the reason; otherwise the exit status of the process is more specific.
            self._lose(connection, str(error.__cause__ or ""))

    def _disconnect(self, connection: WorkerConnection) -> None:
        descriptor = self._descriptors.pop(connection, None)
        if descriptor is not None:
            del self._readers[descriptor]
            with contextlib.suppress(KeyError, OSError), contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)

    def _lose(self, connection: WorkerConnection, reason: str = "") -> None:
        """Disconnect a lost worker, queue its closures again, and restart it; give up after several failed starts."""
        if self._is_stopping:
            return
        reason = reason or self._tasks.ending_of("worker", connection.index) or "has closed its connection"
        if all(channel.fileno() < 0 for channel in self._tasks.ps):  # the cluster was stopped
            self._lose_server(0)
            return
        error = WorkerLostError(
            f"{connection.name} {reason}",
            connection.index,
            pid=self._tasks.pid_of("worker", connection.index),
            reason=reason,
        )
        self._disconnect(connection)
        closures = connection.lose(error)
        if closures and self._has_failed(closures[0], error):
            del closures[0]
        self._queue.put_back(closures)
        if connection.num_failed_starts >= _MOST_FAILED_STARTS:
            self._give_up(connection, error)
        else:
            count = len(closures)
            queued = f"{count} function{' is' if count == 1 else 's are'} queued again; "
            _log.warning("%s: %swaiting until its process is restarted", error, queued if count else "")
            self._restart(connection)

    def _has_failed(self, closure: Closure, error: WorkerLostError) -> bool:
        """Count a loss of a closure; fail it and return True if too many workers exited while it ran."""
        closure.num_losses += 1
        if closure.num_losses < _MOST_LOSSES:
            return False
        blame = WorkerLostError(
            f"{closure.function.name} was running on {closure.num_losses} workers when they exited, so it is not run "
            f"again: check whether it ends its process. The last error: {error}",
            error.rank,
            reason=error.reason,
        )
        closure.fail(blame)
        self._queue.fail(blame)
        return True

    def _restart(self, connection: WorkerConnection) -> None:
        name = f"ringlet-worker-{connection.index}-start"
        threading.Thread(target=self._reconnect, args=(connection,), name=name, daemon=True).start()

    def _reconnect(self, connection: WorkerConnection) -> None:
        """Restart the process of a worker, and connect to it; runs in a separate thread."""
        while not self._is_stopping:
            try:
                channel = self._tasks.restart("worker", connection.index)
            except DeadlineExceededError as error:
                _log.warning("worker %d is still missing: %s", connection.index, error)
                if any(other.channel is not None for other in self.connections):
                    continue
                self.call_soon(functools.partial(self._give_up, connection, error))
            except Exception as error:
                self.call_soon(functools.partial(self._give_up, connection, error))
            else:
                self.call_soon(functools.partial(self._connect, connection, channel))
            break

    def _give_up(self, connection: WorkerConnection, error: Exception) -> None:
        """Continue without a worker; fail if no worker is left."""
        self._num_given_up += 1
        if self._is_stopping:
            return
        connection.end(error)
        _log.error("worker %d cannot be started; the job continues without it: %s", connection.index, error)
        if self._num_given_up == len(self.connections):
            lost = WorkerLostError(f"no worker is left. The last one cannot be started: {error}", connection.index)
            self._end(lost, lost)

    # --- shutdown -----------------------------------------------------------------------------------------------------

    def _lose_server(self, index: int) -> None:
        if self._is_stopping:
            return
        error = self._on_server_lost(index)
        if not isinstance(error, FailedPreconditionError):  # nothing is logged if the cluster was stopped
            _log.error("%s", str(error))  # as text: log handlers may keep their arguments alive
        self._end(error, error)

    def _end(self, error: BaseException, error_of_closures: BaseException) -> None:
        """Disconnect permanently; the queue then raises `error`, and unfinished closures raise `error_of_closures`."""
        self._queue.end(error, error_of_closures)
        for connection in self.connections:
            self._disconnect(connection)
            for closure in connection.end(error_of_closures):
                closure.fail(error_of_closures)
        for descriptor in [descriptor for descriptor in self._readers if descriptor != self._wake_reader.fileno()]:
            del self._readers[descriptor]
            self._poll.unregister(descriptor)
