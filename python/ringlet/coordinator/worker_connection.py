"""Worker connection: the coordinator's record of one worker, and its channel."""

from __future__ import annotations

import collections
import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy as copy_of
from typing import Any

from ringlet.coordinator.argument_codec import Payload, SentFunction, pack_value
from ringlet.coordinator.closure_queue import ClosureQueue
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.protocol import Batch, Command, Item, Reply, items_of
from ringlet.coordinator.remote_value import RemoteFailure, RemoteValue, RemoteValueStatus
from ringlet.coordinator.worker_resource import Resource
from ringlet.ipc import Channel, ChannelClosed
from ringlet.observe.stacks import call_site

_log = logging.getLogger(__name__)

# Expected run time of the short closures that are sent together, so that the worker does not wait for a message after
# each closure.
_BATCH_SECONDS = 0.004
_MOST_IN_FLIGHT = 256
# If a worker with several closures sends no reply for this long, the closures that it has not begun are recalled.
_STUCK_SECONDS = 0.02


class WorkerConnection:
    """The closures, resources and functions of a worker. Not thread-safe."""

    def __init__(self, index: int, queue: ClosureQueue) -> None:
        self.index = index
        self.channel: Channel | None = None
        self.in_flight: dict[int, Closure] = {}
        self.replied_at = self.asked_at = 0.0
        self.num_unanswered = 0
        self.num_failed_starts = 0
        self._queue = queue
        self._resources: dict[int, weakref.ref[Resource]] = {}
        self._final: BaseException | None = None
        self._forget()

    def _forget(self) -> None:
        self.in_flight.clear()
        self._batch = Batch()
        self._is_recalled = self._is_reported = self._is_cancelled = False
        self._expected: dict[int, float] = {}  # estimated seconds of each closure in flight
        self._expected_seconds = 0.0
        self._requests: dict[int, list[RemoteValue]] = collections.defaultdict(list)
        # Local owners of the worker's objects, by kind and number. `_gone` lists objects whose owners were collected;
        # the next batch releases them on the worker.
        self._held: dict[tuple[str, int], weakref.ref[Any]] = {}
        self._gone: collections.deque[tuple[str, int]] = collections.deque()

    @property
    def has_ended(self) -> bool:
        """Whether `end` was called."""
        return self._final is not None

    # --- connecting and losing processes ------------------------------------------------------------------------------

    def connect(self, channel: Channel, strategy: Payload) -> None:
        """Send a new process the strategy, and create the resources again."""
        self.channel = channel
        self.replied_at = self.asked_at = time.monotonic()
        self.num_unanswered = 0
        self.num_failed_starts += 1  # reset to 0 when the worker sends its first message
        self._batch.add(Command.ENTER, None, strategy.header, strategy.buffers)
        for resource in self._live_resources():
            resource._unsettle()
            self._send_make(resource)

    def lose(self, error: BaseException) -> list[Closure]:
        """Disconnect from a process that is lost; return the closures in flight, in order."""
        return self._drop(error, RemoteValueStatus.ABORTED)

    def end(self, error: BaseException) -> list[Closure]:
        """Disconnect permanently; return the closures in flight. Later requests fail with the error."""
        self._final = copy_of(error)  # a copy, as in ClosureQueue.end
        return self._drop(error, RemoteValueStatus.READY)

    def _drop(self, error: BaseException, status: RemoteValueStatus) -> list[Closure]:
        closures = list(self.in_flight.values())
        requests = [copy for copies in self._requests.values() for copy in copies]
        for value in [*self._live_resources(), *requests]:
            value._settle(error=error, status=status)
        if self.channel is not None:
            self.channel.close()
        self.channel = None
        self._forget()
        return closures

    # --- sending ------------------------------------------------------------------------------------------------------

    def acceptor(self) -> Callable[[Closure], bool]:
        """Return a predicate that accepts closures, one after another, until the worker has enough."""
        count, seconds = len(self.in_flight), self._expected_seconds

        def is_wanted(closure: Closure) -> bool:
            nonlocal count, seconds
            expected = _expected_seconds_of(closure)
            if count and (self._is_recalled or count >= _MOST_IN_FLIGHT or seconds + expected > _BATCH_SECONDS):
                return False
            count += 1
            seconds += expected
            return True

        return is_wanted

    def give(self, closures: Iterable[Closure]) -> None:
        """Send closures, to run after the closures in flight."""
        if not self.in_flight:
            self.replied_at = time.monotonic()
            self._is_cancelled = False
        for closure in closures:
            try:
                self._send_call(Command.CALL, closure.number, closure.function, closure.arguments)
            except Exception as error:  # raised by an argument that is the value of another function
                closure.fail(error)
                self._queue.fail(error)
            else:
                expected = _expected_seconds_of(closure)
                self.in_flight[closure.number] = closure
                self._expected[closure.number] = expected
                self._expected_seconds += expected

    def make(self, resource: Resource) -> None:
        """Create a resource in the worker's process, and again in each process that replaces it."""
        number = resource._number
        self._resources[number] = weakref.ref(resource, lambda _: self._resources.pop(number, None))
        if self._final is not None:
            resource._settle(error=copy_of(self._final))
        elif self.channel is not None:
            self._send_make(resource)

    def request(self, resource: Resource, copy: RemoteValue) -> None:
        """Request the current value of a resource, which becomes the value of `copy`."""
        if self._final is not None:
            copy._settle(error=copy_of(self._final))
        elif self.channel is None:
            copy._settle(error=None, status=RemoteValueStatus.ABORTED)
        else:
            self._requests[resource._number].append(copy)
            self._batch.add(Command.FETCH, resource._number)

    def is_stuck(self, now: float) -> bool:
        """Return whether closures have waited too long behind the running closure."""
        return len(self.in_flight) > 1 and not self._is_recalled and now - self.replied_at > _STUCK_SECONDS

    def is_slow(self, now: float, limit: float) -> bool:
        """Return whether a function has been running for longer than `limit` and has not been reported."""
        return bool(self.in_flight) and not self._is_reported and now - self.replied_at > limit

    def report(self, now: float, is_stopped: bool) -> None:
        """Log the running function, and request its stack."""
        self._is_reported = True
        running = next(iter(self.in_flight.values()))
        state = "; its process is stopped, by a signal or a debugger" if is_stopped else ""
        # This thread belongs to Ringlet, so call_site() describes the main thread, which is probably waiting.
        place = call_site()
        state += f"; in the coordinator, {place.removeprefix('while ')}" if place else ""
        _log.warning(
            "%s has been running %s for %.0f s%s", self.name, running.function.name, now - self.replied_at, state
        )
        self._batch.add(Command.DESCRIBE)

    def ask(self, now: float, timeout_seconds: float) -> None:
        """Send a heartbeat request, which is answered even while a function runs."""
        if self.num_unanswered == 1:
            _log.warning(
                "%s has not answered for %.0f s: its process is stopped, or its function blocks all other threads. The "
                "worker counts as lost after %g s (RINGLET_TIMEOUT_SECONDS)",
                self.name,
                now - self.asked_at,
                timeout_seconds,
            )
        self.asked_at = now
        self.num_unanswered += 1
        self._batch.add(Command.RECALL)

    def recall(self, now: float) -> None:
        """Recall the closures that the worker has not begun."""
        if self.channel is not None and len(self.in_flight) > 1 and not self._is_recalled:
            self._is_recalled = True
            running = next(iter(self.in_flight.values()))
            running.function.took(now - self.replied_at)
            self._batch.add(Command.RECALL)

    def cancel(self) -> None:
        """Cancel the closures in flight, each at its next check for cancellation."""
        if self.channel is not None and self.in_flight and not self._is_cancelled:
            self._is_cancelled = True
            self._batch.add(Command.CANCEL, None, list(self.in_flight))

    def post(self) -> bool:
        """Send the pending commands without waiting; return whether all have been sent."""
        if self.channel is None:
            return True
        if self._gone:
            gone = [self._gone.popleft() for _ in range(len(self._gone))]
            self._batch.add(Command.FORGET, None, gone)
            for key in gone:
                self._held.pop(key, None)
        return self.channel.post(*self._batch.take()) if len(self._batch) else self.channel.flush()

    def _send_make(self, resource: Resource) -> None:
        self._has("value", resource._number, resource)
        self._send_call(Command.MAKE, resource._number, resource._function, resource._arguments)

    def _send_call(self, command: Command, number: int, function: SentFunction, arguments: Payload | None) -> None:
        if not self._has("function", function.number, function):
            self._prepare(function.payload)
            content = function.name, function.digest, function.payload.header
            self._add(Command.DEFINE, function.number, content, function.payload.buffers)
        if arguments is None:
            self._add(command, number, (function.number, None))
        else:
            self._prepare(arguments)
            self._add(command, number, (function.number, arguments.header), arguments.buffers)

    def _prepare(self, payload: Payload) -> None:
        """Send the variables and values that a payload refers to, unless the worker has them."""
        for variable in payload.variables:
            if not self._has("variable", variable.table_key, variable):
                index = variable.server_index
                self._add(Command.TABLE, variable.table_key, index, file=variable if index is None else None)
        for values in payload.values:
            value = values._values[self.index]
            if not value._stays_there and not self._has("value", value._number, value):
                held = pack_value(value.get())
                self._add(Command.HOLD, value._number, held.header, held.buffers)

    def _add(
        self, command: Command, number: int, content: Any = None, buffers: Sequence[Any] = (), **more: Any
    ) -> None:
        """Add a command; first send the batch if it is full."""
        if self._batch.is_full:
            with contextlib.suppress(ChannelClosed):  # the next post() raises the error again
                self.post()
        self._batch.add(command, number, content, buffers, **more)

    def _has(self, kind: str, number: int, owner: Any) -> bool:
        """Return whether the worker has an object, and record that it keeps the object while `owner` exists."""
        key = kind, number
        if key in self._held:
            return True
        gone = self._gone
        self._held[key] = weakref.ref(owner, lambda _: gone.append(key))
        return False

    def _live_resources(self) -> Iterator[Resource]:
        for reference in list(self._resources.values()):
            resource = reference()
            if resource is not None:
                yield resource

    # --- receiving ----------------------------------------------------------------------------------------------------

    def receive(self) -> None:
        """Process all received replies, and record that the worker is alive."""
        channel = self.channel
        self.asked_at = time.monotonic()
        self.num_unanswered = num_finished = 0
        try:
            while channel is not None and (message := channel.poll()) is not None:
                self.num_failed_starts = 0
                for item in items_of(message):
                    num_finished += self._handle(item)
        finally:
            if num_finished:
                self._queue.finish(num_finished)

    def _handle(self, item: Item) -> int:
        """Process one reply; return 1 if it is the result of a closure or its cancellation, otherwise 0."""
        if item.kind == Reply.RETURNED:  # the reply to a heartbeat, which does not show progress
            returned = [self._take_in_flight(number, None) for number in item.content]
            self._queue.put_back(closure for closure in returned if closure is not None)
            return 0
        if item.kind == Reply.DESCRIBED:
            _log.warning("%s%s", self.name, item.content)
            return 0
        self.replied_at = self.asked_at
        self._is_reported = False
        if item.kind in (Reply.RESULT, Reply.CANCELLED):
            return self._handle_result(item)
        if item.kind == Reply.FAILURE:
            closure = self._take_in_flight(item.number, item.content[0])
            if closure is not None:
                failure = RemoteFailure(item.content[1], self.name)
                closure.fail(failure)
                self._queue.fail(failure)
        elif item.kind == Reply.READY:
            pass
        elif item.kind in (Reply.MADE, Reply.NOT_MADE):
            reference = self._resources.get(item.number)
            resource = None if reference is None else reference()
            if resource is not None:
                resource._settle(error=item.content and RemoteFailure(item.content, self.name))
        else:
            for copy in self._requests.pop(item.number, []):
                if item.kind == Reply.FETCHED:
                    copy._settle((item.content, item.buffers))
                else:
                    copy._settle(error=RemoteFailure(item.content, self.name))
        return 0

    def _handle_result(self, item: Item) -> int:
        is_cancelled = item.kind == Reply.CANCELLED
        seconds, header = (None, None) if is_cancelled else item.content
        closure = self._take_in_flight(item.number, seconds)
        if closure is None:
            return 0
        if is_cancelled:
            closure.cancel()
        else:
            closure.finish(None if header is None else (header, item.buffers))
        return 1

    def _take_in_flight(self, number: int, seconds: float | None) -> Closure | None:
        closure = self.in_flight.pop(number, None)
        if closure is not None:
            self._expected_seconds -= self._expected.pop(number, 0.0)
            if seconds is not None:
                # Reset only now: after an earlier reset, closures sent before this reply would also be recalled.
                self._is_recalled = False
                closure.function.took(seconds)
        return closure

    @property
    def name(self) -> str:
        """Name of the worker in messages; empty while it is disconnected."""
        return "" if self.channel is None else self.channel.peer


def _expected_seconds_of(closure: Closure) -> float:
    # A closure that may have caused the exit of a worker is sent alone. A worker's unsent results are lost with the
    # worker, so the closure that it was running could not be identified among several closures in flight.
    seconds = closure.function.seconds
    return _BATCH_SECONDS if seconds is None or closure.num_losses else seconds
