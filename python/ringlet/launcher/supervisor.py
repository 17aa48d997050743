"""Looks after the processes of a job: their streams, their ends, and that all end once one has failed."""

from __future__ import annotations

import contextlib
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from ringlet.ipc.worker_process import Keeper, Worker

__all__ = ["Channel", "Supervisor"]

# So long after the first failure the others go on, who may be about to fail because of it: they clean up in their own
# way, and it is seen who failed by itself.
_FOLLOW_SECONDS = 0.3
# What workers have started may end by itself in that time, once all workers have.
_REST_SECONDS = 0.3
# How often to look for ends where the system tells nobody.
_LOOK_SECONDS = 0.02
# Readings from a stream after its worker has ended: more than any pipe holds. Others may go on writing to it.
_LAST_READINGS = 64
_LONGEST_TURN_SECONDS = 1.0


class Channel(Protocol):
    """The receiving end of a pipe from one worker."""

    @property
    def worker(self) -> int:
        """Whose it is."""

    def fileno(self) -> int:
        """Give the descriptor, which is non-blocking."""

    def read(self, now: float) -> bool:
        """Read once; tell whether there may be more. Raises BlockingIOError if there is nothing now."""

    def worker_ended(self, now: float) -> None:
        """Heed that its worker has ended and has said all that it had to say."""

    def tick(self, now: float) -> float | None:
        """Do what is due; tell when something will be."""

    def close(self) -> None:
        """Give the descriptor back; nothing more is read."""


class Supervisor:
    """Looks after the workers of one job.

    Parameters
    ----------
    keeper : Keeper
        Of their group.
    workers : sequence of Worker
    channels : sequence of Channel
        Both are taken over. More may follow with `add`.
    grace_seconds : float
        How long workers that were asked to end may take until they are killed.
    has_failed : callable
        Takes a worker that has ended; tells whether the others shall end, too.
    is_held_up : callable
        Whether nothing shall be read for now, because nobody takes what is read.
    """

    def __init__(
        self,
        keeper: Keeper,
        workers: Sequence[Worker],
        channels: Sequence[Channel],
        *,
        grace_seconds: float,
        has_failed: Callable[[Worker], bool],
        is_held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._keeper = keeper
        self.workers: list[Worker] = []
        self._channels: list[Channel] = []
        self._grace_seconds = grace_seconds
        self._has_failed = has_failed
        self._is_held_up = is_held_up
        self._living: list[Worker] = []
        self._ask_at: float | None = None
        self._kill_at: float | None = None
        self._rest_ends_at = 0.0
        self._was_held_up = False
        # Streams are in a selector of their own, so that all of them can be left aside at once.
        self._streams = selectors.DefaultSelector()
        self._selector = selectors.DefaultSelector()
        self._selector.register(_fileno_of(self._streams), selectors.EVENT_READ)
        self._pidfds: dict[int, Worker] = {}
        self._can_see_ends = True
        self.add(workers, channels)

    # --- what others may ask for, between two turns -------------------------------------------------------------------

    def watch(self, descriptor: int) -> None:
        """End a turn when there is something to read here; the caller reads it."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def add(self, workers: Sequence[Worker], channels: Sequence[Channel]) -> None:
        """Look after some more."""
        self.workers += workers
        self._living += workers
        self._channels += channels
        for channel in channels:
            self._streams.register(channel, selectors.EVENT_READ)
        for worker in workers:
            if worker.pidfd is None:
                self._can_see_ends = False
            else:
                self._pidfds[worker.pidfd] = worker
                self._selector.register(worker.pidfd, selectors.EVENT_READ)

    @property
    def is_asked_to_end(self) -> bool:
        """Whether all workers were asked to end."""
        return self._kill_at is not None

    def ask_to_end(self, number: int) -> None:
        """Send all workers a signal, also if it is not the first one, and have them killed some time later.

        What workers have started does not get it: they end it in their way, and it cannot add tracebacks to theirs.
        """
        now = time.monotonic()
        for worker in self._living:
            worker.asked_at = worker.asked_at or now
            worker.signal(number)
        self._ask_at = None
        self._kill_at = min(now + self._grace_seconds, self._kill_at or now + self._grace_seconds)

    def ask_to_end_after(self, seconds: float) -> None:
        """Have all workers sent SIGTERM in some time, if nobody has asked them to end by then."""
        if self._kill_at is None:
            at = time.monotonic() + seconds
            self._ask_at = min(at, self._ask_at or at)

    def kill(self) -> None:
        """Have all workers killed."""
        now = time.monotonic()
        for worker in self._living:
            worker.asked_at = worker.asked_at or now
            worker.signal(signal.SIGKILL)

    def pass_on(self, number: int) -> None:
        """Send a signal to all workers, without meaning their end."""
        for worker in self._living:
            worker.signal(number)

    # --- the work -----------------------------------------------------------------------------------------------------

    def is_at_work(self) -> bool:
        """Tell whether there is anything left to wait for."""
        return bool(self._living) or (bool(self._channels) and time.monotonic() < self._rest_ends_at)

    def turn(self, longest_seconds: float = _LONGEST_TURN_SECONDS) -> None:
        """Wait until something happens, for a second at most, and deal with it."""
        if self._is_held_up() != self._was_held_up:
            self._was_held_up = not self._was_held_up
            change = self._selector.unregister if self._was_held_up else self.watch
            change(_fileno_of(self._streams))
        seconds = min(longest_seconds, self._seconds_to_wait())
        ready = [key.fd for key, _ in self._selector.select(seconds)]
        # Ends before words, and in the order of `ready`, which is that in which they came: where this process was kept
        # from its work, a worker that failed because another one had gone has said so meanwhile, and ended, too.
        ended = [self._pidfds[descriptor] for descriptor in ready if descriptor in self._pidfds]
        self._note_ends(ended if self._can_see_ends else self._living)
        if _fileno_of(self._streams) in ready:
            self._read_streams()
        self._keep_deadlines()

    def close(self) -> None:
        """End whatever is left, and give everything back. Neither process nor descriptor stays."""
        self.kill()
        self._keeper.close()
        for worker in self.workers:
            worker.close()
        for channel in self._channels:
            channel.close()
        self._channels.clear()
        self._living.clear()
        self._selector.close()
        self._streams.close()

    def _seconds_to_wait(self) -> float:
        now = time.monotonic()
        due = [channel.tick(now) for channel in self._channels]
        moments = [at for at in (*due, self._ask_at, self._kill_at) if at is not None]
        wait = min([_LONGEST_TURN_SECONDS, *(at - now for at in moments)])
        if not self._living:
            wait = min(wait, _REST_SECONDS)
        if self._was_held_up or not self._can_see_ends:
            wait = min(wait, _LOOK_SECONDS)
        return max(0.0, wait)

    def _read_streams(self) -> None:
        for key, _ in self._streams.select(0):
            channel: Channel = key.fileobj  # type: ignore[assignment]
            with contextlib.suppress(BlockingIOError):
                if not channel.read(time.monotonic()):
                    self._drop(channel)

    def _drop(self, channel: Channel) -> None:
        self._streams.unregister(channel)
        self._channels.remove(channel)
        channel.close()

    def _note_ends(self, workers: Sequence[Worker]) -> None:
        for worker in [worker for worker in workers if worker.has_ended()]:
            self._living.remove(worker)
            self._rest_ends_at = time.monotonic() + _REST_SECONDS
            if worker.pidfd is not None:
                self._selector.unregister(worker.pidfd)
            self._read_the_rest(worker)
            if self._has_failed(worker):
                self.ask_to_end_after(_FOLLOW_SECONDS)

    def _read_the_rest(self, worker: Worker) -> None:
        for channel in [channel for channel in self._channels if channel.worker == worker.index]:
            more = True
            with contextlib.suppress(BlockingIOError):
                for _ in range(_LAST_READINGS):
                    more = more and channel.read(time.monotonic())
            channel.worker_ended(time.monotonic())
            if not more:
                self._drop(channel)

    def _keep_deadlines(self) -> None:
        now = time.monotonic()
        if self._ask_at is not None and now >= self._ask_at:
            self.ask_to_end(signal.SIGTERM)
        if self._kill_at is not None and now >= self._kill_at:
            self.kill()
            self._kill_at = now + self._grace_seconds


def _fileno_of(selector: selectors.BaseSelector) -> int:
    return int(selector.fileno())  # type: ignore[attr-defined]
