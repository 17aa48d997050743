"""The thread that hands closures to workers, takes what they tell, and brings lost ones back."""

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

from ringlet.cluster import Tasks
from ringlet.collectives.timeouts import default_timeout_seconds
from ringlet.coordinator.argument_codec import Payload
from ringlet.coordinator.closure_queue import MOST_QUEUED, ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import CANCELLED
from ringlet.coordinator.worker_connection import Link
from ringlet.errors import CancelledError, DeadlineExceededError, FailedPreconditionError, WorkerLostError
from ringlet.ipc import Channel, ChannelClosed
from ringlet.ipc.unix_sockets import pair

__all__ = ["Dispatcher"]

_log = logging.getLogger(__name__)

# A closure that was running on so many workers when they ended is held to be the reason.
_MOST_LOSSES = 8
# A worker whose processes end so often before they have told anything is not started again.
_MOST_FAILED_STARTS = 5
_LOOK_MILLISECONDS = 10  # after closures that may be stuck behind another one
_SLOW_LOOK_MILLISECONDS = 1000  # after closures that run
# A worker that says nothing is asked whether it is there, so often, and at least so often before it counts as lost: how
# many questions are open tells how long it is silent while this process runs, which may be stopped together with it.
_ASK_SECONDS = 30.0
_LEAST_ASKS = 4
_HANGUP = getattr(select, "POLLRDHUP", 0)  # POLLHUP is always told


class Dispatcher:
    """Serves one coordinator, until it is stopped or a parameter server is lost.

    Parameters
    ----------
    tasks : Tasks
        The processes of the cluster. Stopped together with this.
    strategy : Payload
        What workers make their strategy of.
    on_server_lost : callable
        Takes the index of a parameter server that is gone; gives the error that says so.
    most_queued : int
        How many closures may wait for a worker.
    """

    def __init__(
        self,
        tasks: Tasks,
        strategy: Payload,
        on_server_lost: Callable[[int], BaseException],
        most_queued: int = MOST_QUEUED,
    ) -> None:
        self._queue = ClosureQueue(self._wake, most_queued)
        self.links = [Link(index, self._queue) for index in range(len(tasks.workers))]
        self._tasks = tasks
        self._strategy = strategy
        self._on_server_lost = on_server_lost
        self._pid = os.getpid()
        self._calls: collections.deque[Callable[[], object]] = collections.deque()
        self._bell, self._button = pair(socket.SOCK_STREAM)
        self._bell.setblocking(False)
        self._button.setblocking(False)
        self._is_asleep = self._has_work = self._is_stopping = self._has_ended = False
        self._poll = select.poll()
        self._readers: dict[int, Callable[[], None]] = {}
        self._descriptors: dict[Link, int] = {}
        self._num_given_up = 0
        self._timeout_seconds = default_timeout_seconds()
        self._ask_seconds = min(_ASK_SECONDS, self._timeout_seconds / _LEAST_ASKS)
        self._parting: BaseException = CancelledError(CANCELLED)  # until somebody says why this ends
        self._thread = threading.Thread(target=self._run, name="ringlet-coordinator", daemon=True)

    def start(self) -> None:
        """Connect to all tasks, and begin."""
        self._register(self._bell.fileno(), self._drain, select.POLLIN)
        for index, channel in enumerate(self._tasks.ps):
            self._register(channel.fileno(), functools.partial(self._lose_server, index), _HANGUP)
        for link, channel in zip(self.links, self._tasks.workers, strict=True):
            if channel.fileno() >= 0:
                self._connect(link, channel)
            else:  # another coordinator had this cluster
                self._start_again(link)
        self._thread.start()

    @property
    def queue(self) -> ClosureQueue:
        """Where closures go."""
        self._check_process()
        return self._queue

    def call_soon(self, call: Callable[[], object]) -> None:
        """Have the thread call something; call it here once that has ended."""
        self._check_process()
        self._calls.append(call)
        if self._has_ended:
            self._make_calls()
        self._wake()

    def stop(self, error: BaseException, timeout_seconds: float) -> None:
        """End the thread and all processes. What was not run is cancelled; whatever is asked later raises the error."""
        ends_at = time.monotonic() + timeout_seconds
        if self._pid == os.getpid():  # a forked child has no part in this
            self.leave(error, timeout_seconds / 4)
            self._tasks.stop(max(ends_at - time.monotonic(), 0.0))

    def leave(self, error: BaseException, timeout_seconds: float) -> None:
        """End the thread, which lets the workers go; another coordinator may have the cluster then.

        Takes no lock: a signal handler or the collector may call this while its thread holds any. What does not end in
        time ends later.
        """
        if self._pid != os.getpid():
            return
        if not self._is_stopping:
            self._parting = error
            self._is_stopping = True
            self._wake()
        if threading.current_thread() is not self._thread and self._thread.is_alive():
            self._thread.join(timeout_seconds)

    def _check_process(self) -> None:
        if self._pid != os.getpid():
            raise FailedPreconditionError(
                f"this coordinator belongs to process {self._pid}, which has forked this one (pid {os.getpid()}): use "
                "it there"
            )

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        error_of_closures: BaseException = CancelledError(CANCELLED)
        try:
            while not self._is_stopping:
                self._turn()
        except BaseException as error:  # a mistake of ours; nobody shall wait for ever
            if not self._is_stopping:
                _log.exception("the thread of the coordinator has ended")
                self._parting = error_of_closures = error
        self._is_asleep = False
        self._end(self._parting, error_of_closures)
        self._has_ended = True
        self._make_calls()
        self._readers.clear()  # nothing refers back to this now: it goes with its coordinator, and the cluster with it
        self._bell.close()
        self._button.close()

    def _make_calls(self) -> None:
        while True:
            try:
                call = self._calls.popleft()
            except IndexError:
                return
            call()

    def _turn(self) -> None:
        self._is_asleep = True  # before looking whether there is work: who brings some later rings
        ready = self._poll.poll(self._sleep_milliseconds())
        self._is_asleep = self._has_work = False
        for descriptor, _ in ready:
            if descriptor in self._readers:  # else it went with another one
                self._readers[descriptor]()
        self._make_calls()
        self._look_after()
        connected = [link for link in self.links if link.channel is not None]
        self._hand_out(connected)
        for link in connected:
            self._post(link)

    def _sleep_milliseconds(self) -> int:
        if self._has_work:
            return 0
        most_in_flight = max(len(link.in_flight) for link in self.links)
        if most_in_flight > 1:  # some may be stuck behind another one
            return _LOOK_MILLISECONDS
        ask_milliseconds = math.ceil(1000 * self._ask_seconds)
        return min(_SLOW_LOOK_MILLISECONDS, ask_milliseconds) if most_in_flight else ask_milliseconds

    def _look_after(self) -> None:
        """Call back what is stuck, and ask workers that say nothing whether they are there."""
        now = time.monotonic()
        for link in self.links:
            if self._queue.is_cancelling or link.is_stuck(now):
                link.recall(now)
            link.tell_if_slow(now)
            if now - link.asked_at >= self._ask_seconds and link.channel is not None:
                if link.num_unanswered * self._ask_seconds >= self._timeout_seconds:
                    self._lose(link, f"has not answered for {self._timeout_seconds:g} s")
                else:
                    link.ask(now, self._timeout_seconds)

    def _hand_out(self, links: list[Link]) -> None:
        for link in sorted(links, key=lambda link: len(link.in_flight)):
            num_queued = len(self._queue)
            if not num_queued:
                break
            link.give(self._queue.take(link.appetite(), math.ceil(num_queued / len(links))))

    def _post(self, link: Link) -> None:
        try:
            is_sent = link.post()
        except ChannelClosed:
            self._lose(link)
            return
        if link in self._descriptors:
            self._poll.modify(self._descriptors[link], select.POLLIN | (0 if is_sent else select.POLLOUT))

    def _wake(self) -> None:
        self._has_work = True
        if self._is_asleep:
            self._is_asleep = False
            with contextlib.suppress(OSError):  # it rings already, or the end has come
                self._button.send(b".")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._bell.recv(4096):
                pass

    def _register(self, descriptor: int, reader: Callable[[], None], events: int) -> None:
        self._readers[descriptor] = reader
        self._poll.register(descriptor, events)

    # --- workers come and go ------------------------------------------------------------------------------------------

    def _connect(self, link: Link, channel: Channel) -> None:
        if link.has_ended:  # while this one came
            channel.close()
            return
        link.connect(channel, self._strategy)
        descriptor = channel.fileno()
        if descriptor < 0:  # the cluster was stopped meanwhile
            self._lose(link)
        else:
            self._descriptors[link] = descriptor
            self._register(descriptor, functools.partial(self._hear, link), select.POLLIN)

    def _hear(self, link: Link) -> None:
        try:
            link.hear()
        except ChannelClosed as error:
            # What could not be read is a reason of its own; else the end of its process tells more.
            self._lose(link, str(error.__cause__ or ""))

    def _disconnect(self, link: Link) -> None:
        descriptor = self._descriptors.pop(link, None)
        if descriptor is not None:
            del self._readers[descriptor]
            with contextlib.suppress(KeyError, OSError), contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)

    def _lose(self, link: Link, reason: str = "") -> None:
        """Queue what a worker was given again, and wait for its next process."""
        if self._is_stopping:
            return
        reason = reason or self._tasks.ending_of("worker", link.index) or "has closed its connection"
        if all(channel.fileno() < 0 for channel in self._tasks.ps):  # the cluster was stopped
            self._lose_server(0)
            return
        error = WorkerLostError(
            f"{link.name} {reason}", link.index, pid=self._tasks.pid_of("worker", link.index), reason=reason
        )
        self._disconnect(link)
        closures = link.lose(error)
        if closures and self._is_to_blame(closures[0], error):
            del closures[0]
        self._queue.put_back(closures)
        if link.num_failed_starts >= _MOST_FAILED_STARTS:
            self._give_up(link, error)
        else:
            count = len(closures)
            queued = f"{count} function{' that it had is' if count == 1 else 's that it had are'} queued again, and "
            _log.warning("%s: %sits next process is awaited", error, queued if count else "")
            self._start_again(link)

    def _is_to_blame(self, closure: Closure, error: WorkerLostError) -> bool:
        """Give a closure up that seems to end every worker that runs it."""
        closure.num_losses += 1
        if closure.num_losses < _MOST_LOSSES:
            return False
        blame = WorkerLostError(
            f"{closure.function.name} was running on {closure.num_losses} workers when they ended, so it is not run "
            f"again. The last one: {error}",
            error.rank,
            reason=error.reason,
        )
        closure.fail(blame)
        self._queue.fail(blame)
        return True

    def _start_again(self, link: Link) -> None:
        name = f"ringlet-worker-{link.index}-start"
        threading.Thread(target=self._bring_back, args=(link,), name=name, daemon=True).start()

    def _bring_back(self, link: Link) -> None:
        """Wait for the next process of a worker, in a thread of its own."""
        while not self._is_stopping:
            try:
                channel = self._tasks.restart("worker", link.index)
            except DeadlineExceededError as error:
                _log.warning("still without worker %d: %s", link.index, error)
                if any(other.channel is not None for other in self.links):
                    continue
                self.call_soon(functools.partial(self._give_up, link, error))
            except Exception as error:
                self.call_soon(functools.partial(self._give_up, link, error))
            else:
                self.call_soon(functools.partial(self._connect, link, channel))
            break

    def _give_up(self, link: Link, error: Exception) -> None:
        """Do without a worker; the last one is missed."""
        self._num_given_up += 1
        if self._is_stopping:
            return
        link.end(error)
        _log.error("worker %d cannot be started, and is done without: %s", link.index, error)
        if self._num_given_up == len(self.links):
            lost = WorkerLostError(f"no worker is left. The last one cannot be started: {error}", link.index)
            self._end(lost, lost)

    # --- the end ------------------------------------------------------------------------------------------------------

    def _lose_server(self, index: int) -> None:
        if self._is_stopping:
            return
        error = self._on_server_lost(index)
        if not isinstance(error, FailedPreconditionError):  # not where the cluster was stopped
            _log.error("%s", str(error))  # handlers may keep what they are given
        self._end(error, error)

    def _end(self, error: BaseException, error_of_closures: BaseException) -> None:
        """Do nothing any more; everybody who waits is told why."""
        self._queue.end(error, error_of_closures)
        for link in self.links:
            self._disconnect(link)
            for closure in link.end(error_of_closures):
                closure.fail(error_of_closures)
        for descriptor in [descriptor for descriptor in self._readers if descriptor != self._bell.fileno()]:
            del self._readers[descriptor]
            self._poll.unregister(descriptor)
