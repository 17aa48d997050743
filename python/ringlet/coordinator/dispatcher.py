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
from ringlet.coordinator.closure_queue import MOST_QUEUED, ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.link import Link
from ringlet.coordinator.remote_value import CANCELLED
from ringlet.coordinator.sending import Payload
from ringlet.engine import Channel, ChannelClosed
from ringlet.errors import CancelledError, DeadlineExceededError, WorkerLostError
from ringlet.processes.sockets import pair

__all__ = ["Dispatcher"]

_log = logging.getLogger(__name__)

# A closure that was running on so many workers when they ended is held to be the reason.
_MOST_LOSSES = 8
# A worker whose processes end so often before they have told anything is not started again.
_MOST_FAILED_STARTS = 5
_LOOK_MILLISECONDS = 10  # after closures that may be stuck behind another one
_SLOW_LOOK_MILLISECONDS = 1000  # after closures that run
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
        self.queue = ClosureQueue(self._wake, most_queued)
        self.links = [Link(index, self.queue) for index in range(len(tasks.workers))]
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
        self._parting: BaseException | None = None
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

    def call_soon(self, call: Callable[[], object]) -> None:
        """Have the thread call something; call it here once that has ended."""
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
        """End the thread, and let the workers go; another coordinator may have the cluster then."""
        if self._is_stopping or self._pid != os.getpid():
            return
        self._is_stopping = True
        self._wake()
        if threading.current_thread() is self._thread:
            self._parting = error  # the collector calls, and this thread may hold any lock: it parts when it is done
        else:
            self._thread.join(timeout_seconds)
            self._part(error)

    def _part(self, error: BaseException) -> None:
        for link in self.links:
            if link.channel is not None:
                link.channel.close()
        self._end(error, CancelledError(CANCELLED))
        self._has_ended = True
        self._make_calls()
        if threading.current_thread() is self._thread or not self._thread.is_alive():
            self._bell.close()
            self._button.close()

    # --- the loop -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._is_stopping:
                self._turn()
        except BaseException as error:  # a mistake of ours; nobody shall wait for ever
            if not self._is_stopping:
                _log.exception("the thread of the coordinator has ended")
                self._end(error, error)
                self._has_ended = True
                self._make_calls()
        if self._parting is not None:
            self._part(self._parting)

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
        connected = [link for link in self.links if link.channel is not None]
        self._hand_out(connected)
        for link in connected:
            self._post(link)

    def _sleep_milliseconds(self) -> int | None:
        if self._has_work:
            return 0
        most_in_flight = max(len(link.in_flight) for link in self.links)
        if most_in_flight > 1:  # some may be stuck behind another one
            return _LOOK_MILLISECONDS
        return _SLOW_LOOK_MILLISECONDS if most_in_flight else None

    def _hand_out(self, links: list[Link]) -> None:
        now = time.monotonic()
        for link in links:
            if self.queue.is_cancelling or link.is_stuck(now):
                link.recall()
            link.tell_if_slow(now)
        for link in sorted(links, key=lambda link: len(link.in_flight)):
            num_queued = len(self.queue)
            if not num_queued:
                break
            link.give(self.queue.take(link.appetite(), math.ceil(num_queued / len(links))))

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
        self._descriptors[link] = channel.fileno()
        self._register(channel.fileno(), functools.partial(self._hear, link), select.POLLIN)
        link.connect(channel, self._strategy)

    def _hear(self, link: Link) -> None:
        try:
            link.hear()
        except ChannelClosed:
            self._lose(link)

    def _disconnect(self, link: Link) -> None:
        descriptor = self._descriptors.pop(link, None)
        if descriptor is not None:
            del self._readers[descriptor]
            with contextlib.suppress(KeyError, OSError), contextlib.suppress(KeyError):
                self._poll.unregister(descriptor)

    def _lose(self, link: Link) -> None:
        """Queue what a worker was given again, and wait for its next process."""
        reason = self._tasks.ending_of("worker", link.index) or "has closed its connection"
        error = WorkerLostError(
            f"{link.name} {reason}", link.index, pid=self._tasks.pid_of("worker", link.index), reason=reason
        )
        self._disconnect(link)
        closures = link.lose(error)
        if closures and self._is_to_blame(closures[0], error):
            del closures[0]
        self.queue.put_back(closures)
        if link.num_failed_starts >= _MOST_FAILED_STARTS:
            self._give_up(link, error)
        elif not self._is_stopping:
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
        self.queue.fail(blame)
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
        error = self._on_server_lost(index)
        _log.error("%s", error)
        self._end(error, error)

    def _end(self, error: BaseException, error_of_closures: BaseException) -> None:
        """Do nothing any more; everybody who waits is told why."""
        self.queue.end(error, error_of_closures)
        for link in self.links:
            self._disconnect(link)
            for closure in link.end(error_of_closures):
                closure.fail(error_of_closures)
        for descriptor in [descriptor for descriptor in self._readers if descriptor != self._bell.fileno()]:
            del self._readers[descriptor]
            self._poll.unregister(descriptor)
