"""Supervisor of a job's processes: reads their streams, detects their exits, and stops all of them after a failure."""

from __future__ import annotations

import contextlib
import selectors
import signal
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from ringlet.ipc.worker_process import Worker, WorkerProcessGroup

if TYPE_CHECKING:
    from ringlet.launcher.output_relay import OutputChannel
    from ringlet.launcher.result_channel import ResultChannel

# The receiving end of a non-blocking pipe from one worker.
Channel: TypeAlias = "OutputChannel | ResultChannel"

# Delay between the first failure and stopping the other workers: workers that fail because of it can clean up, and
# independent failures are detected.
_FOLLOW_SECONDS = 0.3
# Time for the workers' children to exit after all workers have exited.
_REST_SECONDS = 0.3
# Polling interval on systems without pidfds.
_LOOK_SECONDS = 0.02
# Maximum number of reads from a stream after its worker's exit: enough for a full pipe; bounded, because children may
# continue to write.
_LAST_READINGS = 64
_LONGEST_TURN_SECONDS = 1.0


class Supervisor:
    """Supervises the workers of one job; owns its workers and channels.

    Workers may run for `grace_seconds` after a terminating signal. `has_failed` takes an exited worker and returns
    whether to stop the other workers. While `is_held_up` returns True, reading pauses, as back-pressure on the workers.
    """

    def __init__(
        self,
        process_group: WorkerProcessGroup,
        workers: Sequence[Worker],
        channels: Sequence[Channel],
        *,
        grace_seconds: float,
        has_failed: Callable[[Worker], bool],
        is_held_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._process_group = process_group
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
        # Streams have a separate selector, so that all of them can be paused at once.
        self._streams = selectors.DefaultSelector()
        self._selector = selectors.DefaultSelector()
        self._selector.register(_fileno_of(self._streams), selectors.EVENT_READ)
        self._pidfds: dict[int, Worker] = {}
        self._can_see_ends = True
        self.add(workers, channels)

    # --- requests between two steps -----------------------------------------------------------------------------------

    def watch(self, descriptor: int) -> None:
        """Make `turn` return when the descriptor is readable; the caller reads it."""
        self._selector.register(descriptor, selectors.EVENT_READ)

    def add(self, workers: Sequence[Worker], channels: Sequence[Channel]) -> None:
        """Supervise more workers."""
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
        """Whether all workers were sent a terminating signal."""
        return self._kill_at is not None

    def ask_to_end(self, number: int) -> None:
        """Send all workers a terminating signal, and kill them after the grace period.

        The children of workers do not receive the signal, so that workers can stop them, and tracebacks are not mixed.
        """
        now = time.monotonic()
        for worker in self._living:
            worker.asked_at = worker.asked_at or now
            worker.signal(number)
        self._ask_at = None
        self._kill_at = min(now + self._grace_seconds, self._kill_at or now + self._grace_seconds)

    def ask_to_end_after(self, seconds: float) -> None:
        """Send all workers SIGTERM after a delay, unless they were stopped before."""
        if self._kill_at is None:
            at = time.monotonic() + seconds
            self._ask_at = min(at, self._ask_at or at)

    def kill(self) -> None:
        """Kill all workers."""
        now = time.monotonic()
        for worker in self._living:
            worker.asked_at = worker.asked_at or now
            worker.signal(signal.SIGKILL)

    def pass_on(self, number: int) -> None:
        """Forward a non-terminating signal to all workers."""
        for worker in self._living:
            worker.signal(number)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def is_at_work(self) -> bool:
        """Return whether workers are running or more output may follow."""
        return bool(self._living) or (bool(self._channels) and time.monotonic() < self._rest_ends_at)

    def turn(self, longest_seconds: float = _LONGEST_TURN_SECONDS) -> None:
        """Wait for an event for up to `longest_seconds`, and process it."""
        if self._is_held_up() != self._was_held_up:
            self._was_held_up = not self._was_held_up
            change = self._selector.unregister if self._was_held_up else self.watch
            change(_fileno_of(self._streams))
        seconds = min(longest_seconds, self._seconds_to_wait())
        ready = [key.fd for key, _ in self._selector.select(seconds)]
        # Exits are processed before output, in the order of `ready`, which is their order of occurrence: if this
        # process was delayed, workers that failed because of the first failure may also have exited.
        ended = [self._pidfds[descriptor] for descriptor in ready if descriptor in self._pidfds]
        self._note_ends(ended if self._can_see_ends else self._living)
        if _fileno_of(self._streams) in ready:
            self._read_streams()
        self._keep_deadlines()

    def close(self) -> None:
        """Kill the remaining processes, and close all descriptors."""
        self.kill()
        self._process_group.close()
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
