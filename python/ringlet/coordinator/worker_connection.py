"""One worker as its coordinator sees it."""

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
from ringlet.coordinator.protocol import Batch, Item, Order, Report, items_of
from ringlet.coordinator.remote_value import RemoteFailure, RemoteValue, RemoteValueStatus
from ringlet.coordinator.worker_resource import Resource
from ringlet.ipc import Channel, ChannelClosed

__all__ = ["Link"]

_log = logging.getLogger(__name__)

# A worker is given several short closures at a time, which it runs one after the other: as many as it is thought to run
# within this time, so that neither it nor the coordinator waits for each single message.
_BATCH_SECONDS = 0.004
_MOST_IN_FLIGHT = 256
# Those behind one that takes longer than was thought are called back.
_STUCK_SECONDS = 0.02
# After so long a message names what runs.
_SLOW_SECONDS = 30.0


class Link:
    """What a worker was given, and what it has of what it needs. Belongs to the thread of the dispatcher.

    Parameters
    ----------
    index : int
        Of the worker.
    queue : ClosureQueue
        Where closures come from, and go back to.

    Attributes
    ----------
    channel : Channel or None
        None while the worker is lost.
    in_flight : dict of int to Closure
        In the order in which the worker runs them.
    heard_at : float
        When it has told last what it has done, or was given something while it had nothing.
    asked_at : float
        When it has shown last that it lives, or was asked whether it does.
    num_unanswered : int
        How often it was asked since it has shown that.
    num_failed_starts : int
        How often in a row its process has ended before it has told anything.
    """

    def __init__(self, index: int, queue: ClosureQueue) -> None:
        self.index = index
        self.channel: Channel | None = None
        self.in_flight: dict[int, Closure] = {}
        self.heard_at = self.asked_at = 0.0
        self.num_unanswered = 0
        self.num_failed_starts = 0
        self._queue = queue
        self._resources: dict[int, weakref.ref[Resource]] = {}
        self._final: BaseException | None = None
        self._forget()

    def _forget(self) -> None:
        self.in_flight.clear()
        self._batch = Batch()
        self._is_recalled = self._is_slow = False
        self._expected: dict[int, float] = {}  # seconds for each closure in flight
        self._expected_seconds = 0.0
        self._requests: dict[int, list[RemoteValue]] = collections.defaultdict(list)
        # What the process has, by kind and number; gone from it are those whose objects here are gone.
        self._known: dict[tuple[str, int], weakref.ref[Any]] = {}
        self._gone: collections.deque[tuple[str, int]] = collections.deque()

    @property
    def has_ended(self) -> bool:
        """Whether no process will come any more."""
        return self._final is not None

    # --- a process comes and goes -------------------------------------------------------------------------------------

    def connect(self, channel: Channel, strategy: Payload) -> None:
        """Greet a new process, and have it make what the last one had."""
        self.channel = channel
        self.heard_at = self.asked_at = time.monotonic()
        self.num_unanswered = 0
        self.num_failed_starts += 1  # until it tells something
        self._batch.add(Order.ENTER, None, strategy.header, strategy.buffers)
        for resource in self._living_resources():
            resource._unsettle()
            self._tell_to_make(resource)

    def lose(self, error: BaseException) -> list[Closure]:
        """Heed that the process is gone; give the closures that it had, in their order."""
        return self._drop(error, RemoteValueStatus.ABORTED)

    def end(self, error: BaseException) -> list[Closure]:
        """Let the process go, for good; give the closures that it had. What is asked for later fails with the error."""
        self._final = copy_of(error)  # not what values raise: see ClosureQueue.end
        return self._drop(error, RemoteValueStatus.READY)

    def _drop(self, error: BaseException, status: RemoteValueStatus) -> list[Closure]:
        closures = list(self.in_flight.values())
        requests = [copy for copies in self._requests.values() for copy in copies]
        for value in [*self._living_resources(), *requests]:
            value._settle(error=error, status=status)
        if self.channel is not None:
            self.channel.close()
        self.channel = None
        self._forget()
        return closures

    # --- what it is told ----------------------------------------------------------------------------------------------

    def appetite(self) -> Callable[[Closure], bool]:
        """Give what tells of one closure after another whether it is to be given that one, too."""
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
        """Give it closures to run, behind those that it has."""
        if not self.in_flight:
            self.heard_at = time.monotonic()
        for closure in closures:
            try:
                self._tell_to_call(Order.CALL, closure.number, closure.function, closure.arguments)
            except Exception as error:  # an argument that was the value of another function
                closure.fail(error)
                self._queue.fail(error)
            else:
                expected = _expected_seconds_of(closure)
                self.in_flight[closure.number] = closure
                self._expected[closure.number] = expected
                self._expected_seconds += expected

    def make(self, resource: Resource) -> None:
        """Have it make something, now and whenever its process is another one."""
        number = resource._number
        self._resources[number] = weakref.ref(resource, lambda _: self._resources.pop(number, None))
        if self._final is not None:
            resource._settle(error=copy_of(self._final))
        elif self.channel is not None:
            self._tell_to_make(resource)

    def request(self, resource: Resource, copy: RemoteValue) -> None:
        """Have it send a copy of what it has made."""
        if self._final is not None:
            copy._settle(error=copy_of(self._final))
        elif self.channel is None:
            copy._settle(error=None, status=RemoteValueStatus.ABORTED)
        else:
            self._requests[resource._number].append(copy)
            self._batch.add(Order.FETCH, resource._number)

    def is_stuck(self, now: float) -> bool:
        """Whether closures wait behind one that takes longer than was thought."""
        return len(self.in_flight) > 1 and not self._is_recalled and now - self.heard_at > _STUCK_SECONDS

    def tell_if_slow(self, now: float) -> None:
        """Log what the worker runs, once, if that takes very long."""
        if self.in_flight and not self._is_slow and now - self.heard_at > _SLOW_SECONDS:
            self._is_slow = True
            running = next(iter(self.in_flight.values()))
            _log.warning("%s has run %s for %.0f s", self.name, running.function.name, now - self.heard_at)

    def ask(self, now: float, timeout_seconds: float) -> None:
        """Ask it to say something at once, whatever it runs."""
        if self.num_unanswered == 1:
            _log.warning(
                "%s has not answered for %.0f s: its process is stopped, or what it runs lets no other thread run. It "
                "counts as lost after %g s (RINGLET_TIMEOUT_SECONDS)",
                self.name,
                now - self.asked_at,
                timeout_seconds,
            )
        self.asked_at = now
        self.num_unanswered += 1
        self._batch.add(Order.RECALL)

    def recall(self, now: float) -> None:
        """Have it give back the closures that it has not begun."""
        if self.channel is not None and len(self.in_flight) > 1 and not self._is_recalled:
            self._is_recalled = True
            running = next(iter(self.in_flight.values()))
            running.function.took(now - self.heard_at)
            self._batch.add(Order.RECALL)

    def post(self) -> bool:
        """Send what it is to be told, without waiting; tell whether everything has been sent."""
        if self.channel is None:
            return True
        if self._gone:
            gone = [self._gone.popleft() for _ in range(len(self._gone))]
            self._batch.add(Order.FORGET, None, gone)
            for key in gone:
                self._known.pop(key, None)
        return self.channel.post(*self._batch.take()) if len(self._batch) else self.channel.flush()

    def _tell_to_make(self, resource: Resource) -> None:
        self._knows("value", resource._number, resource)
        self._tell_to_call(Order.MAKE, resource._number, resource._function, resource._arguments)

    def _tell_to_call(self, order: Order, number: int, function: SentFunction, arguments: Payload | None) -> None:
        if not self._knows("function", function.number, function):
            self._prepare(function.payload)
            content = function.name, function.digest, function.payload.header
            self._say(Order.DEFINE, function.number, content, function.payload.buffers)
        if arguments is None:
            self._say(order, number, (function.number, None))
        else:
            self._prepare(arguments)
            self._say(order, number, (function.number, arguments.header), arguments.buffers)

    def _prepare(self, payload: Payload) -> None:
        """See to it that it has what a payload refers to."""
        for variable in payload.variables:
            if not self._knows("variable", variable.table_key, variable):
                self._say(Order.TABLE, variable.table_key, file=variable)
        for values in payload.values:
            value = values._values[self.index]
            if not value._stays_there and not self._knows("value", value._number, value):
                held = pack_value(value.get())
                self._say(Order.HOLD, value._number, held.header, held.buffers)

    def _say(self, order: Order, number: int, content: Any = None, buffers: Sequence[Any] = (), **more: Any) -> None:
        """Tell it something, and before that what has been gathered, if that is much."""
        if self._batch.is_full:
            with contextlib.suppress(ChannelClosed):  # the next one to send is told, too
                self.post()
        self._batch.add(order, number, content, buffers, **more)

    def _knows(self, kind: str, number: int, owner: Any) -> bool:
        """Whether it has something; it will from now on, until that is gone here."""
        key = kind, number
        if key in self._known:
            return True
        gone = self._gone
        self._known[key] = weakref.ref(owner, lambda _: gone.append(key))
        return False

    def _living_resources(self) -> Iterator[Resource]:
        for reference in list(self._resources.values()):
            resource = reference()
            if resource is not None:
                yield resource

    # --- what it tells ------------------------------------------------------------------------------------------------

    def hear(self) -> None:
        """Heed everything that it has told.

        It lives: this is called when some of a message has come from it, or has been taken by it.

        Raises
        ------
        ChannelClosed
            If it is gone.
        """
        channel = self.channel
        self.asked_at = time.monotonic()
        self.num_unanswered = num_finished = 0
        try:
            while channel is not None and (message := channel.poll()) is not None:
                self.num_failed_starts = 0
                for item in items_of(message):
                    num_finished += self._heed(item)
        finally:
            if num_finished:
                self._queue.finish(num_finished)

    def _heed(self, item: Item) -> int:
        """Heed one report; tell how many closures have returned."""
        if item.kind == Report.RETURNED:  # which says nothing of what it runs
            returned = [self._landed(number, None) for number in item.content]
            self._queue.put_back(closure for closure in returned if closure is not None)
            return 0
        self.heard_at = self.asked_at
        self._is_slow = False
        if item.kind == Report.RESULT:
            return self._heed_result(item)
        if item.kind == Report.FAILURE:
            closure = self._landed(item.number, item.content[0])
            if closure is not None:
                failure = RemoteFailure(item.content[1], self.name)
                closure.fail(failure)
                self._queue.fail(failure)
        elif item.kind == Report.READY:
            pass
        elif item.kind in (Report.MADE, Report.NOT_MADE):
            reference = self._resources.get(item.number)
            resource = None if reference is None else reference()
            if resource is not None:
                resource._settle(error=item.content and RemoteFailure(item.content, self.name))
        else:
            for copy in self._requests.pop(item.number, []):
                if item.kind == Report.FETCHED:
                    copy._settle((item.content, item.buffers))
                else:
                    copy._settle(error=RemoteFailure(item.content, self.name))
        return 0

    def _heed_result(self, item: Item) -> int:
        seconds, header = item.content
        closure = self._landed(item.number, seconds)
        if closure is None:
            return 0
        closure.finish(None if header is None else (header, item.buffers))
        return 1

    def _landed(self, number: int, seconds: float | None) -> Closure | None:
        closure = self.in_flight.pop(number, None)
        if closure is not None:
            self._expected_seconds -= self._expected.pop(number, 0.0)
            if seconds is not None:
                self._is_recalled = False  # not before: those that it gets now would have to come back, too
                closure.function.took(seconds)
        return closure

    @property
    def name(self) -> str:
        """How messages name the worker."""
        return "" if self.channel is None else self.channel.peer


def _expected_seconds_of(closure: Closure) -> float:
    seconds = closure.function.seconds
    return _BATCH_SECONDS if seconds is None else seconds
