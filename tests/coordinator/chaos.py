"""Random jobs of a coordinator with parameter servers, whose processes are disturbed (`tests.chaos`).

Every closure adds one to a row of its own, and returns the square of its number. However workers are killed or stopped,
each has its effect at least once and returns its result; an error names a lost parameter server; all other processes
end if the coordinator is killed.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ringlet
import ringlet.coordinator
import ringlet.data
from ringlet.errors import DeadlineExceededError, PSUnavailableError
from ringlet.strategy.parameter_server.parameter_server_client import ParameterServers
from tests.coordinator.in_forks import ForkTasks, Spring
from tests.coordinator.in_servers import Servers
from tests.processes.forked import Job, footprint
from tests.processes.harness import descriptors_of, eventually, threads_of

__all__ = ["EVENTS", "run_round"]

# Longer than this, an answer counts as a hang, however busy the machine is.
PATIENCE_SECONDS = 120.0
# The time-out of jobs in which a process stays stopped: longer than a worker takes to start on a busy machine.
STALL_SECONDS = 10.0
CALLS = 40
BATCHES = 3


def square(counts: Any, number: int, seconds: float) -> int:
    """Add one to a row, and return the square of its number."""
    time.sleep(seconds)
    counts.scatter_add(ringlet.IndexedSlices(np.ones((1, 3)), np.array([number])))
    return number * number


class Round:
    """The coordinator's part of one round."""

    def __init__(self, seed: int, event: str) -> None:
        self.chance = random.Random(f"{seed} {event}")
        self.event = event
        self.num_workers, self.num_ps = self.chance.randint(1, 3), self.chance.randint(1, 2)
        self.spring, self.servers, self.is_remote = None, None, False
        self.strategy = self._new_strategy()
        with self.strategy.scope():
            self.counts = ringlet.Variable(np.zeros((CALLS, 3)))
            self.others = [ringlet.Variable(0) for _ in range(self.num_ps)]  # one at least on each
        if "stall" in event:
            os.environ["RINGLET_TIMEOUT_SECONDS"] = str(STALL_SECONDS)
        self.coordinator = ringlet.coordinator.ClusterCoordinator(self.strategy)
        self.tasks = self.strategy.extended._cluster()
        self.victim = -1
        self.begin_anew()

    def _new_strategy(self) -> ringlet.ParameterServerStrategy:
        """Create a strategy whose tasks are interpreters, forks, which start faster, or separately started servers."""
        # Forks and servers end with their connection: not while they are stopped.
        # Functions that use variables of a stopped server by messages wait for its answer.
        remote = ["remote"] * (self.event != "stall ps")
        kinds = ["interpreters"] if self.event in _ONLY_INTERPRETERS else ["interpreters", "forks", "servers", *remote]
        kind = self.chance.choice(kinds if self.event != "kill coordinator" else ["interpreters", "servers", "remote"])
        if kind == "remote":
            os.environ["RINGLET_SECRET"] = "a secret of this round"
            self.is_remote = True
        if kind in ("servers", "remote"):
            self.servers = Servers(self.num_workers, self.num_ps)
            resolver = ringlet.cluster_resolver.SimpleClusterResolver(self.servers.spec, task_type="chief", task_id=0)
            return ringlet.ParameterServerStrategy(resolver)
        resolver = ringlet.cluster_resolver.LocalClusterResolver(workers=self.num_workers, ps=self.num_ps)
        strategy = ringlet.ParameterServerStrategy(resolver)
        if kind == "forks":
            self.spring = Spring(is_fork=True)
            tasks = ForkTasks(self.spring, self.num_workers, self.num_ps)
            strategy.extended._known_servers = ParameterServers(tasks)
        return strategy

    def close(self) -> str:
        """End the job; return the fault of its end."""
        begin = time.monotonic()
        self.coordinator.shutdown()
        seconds = time.monotonic() - begin
        if self.spring is not None:
            self.spring.close()
        if self.servers is not None:
            # One that has been killed has come again, perhaps after the end: it waits for the next coordinator.
            is_killed = self.event.startswith("kill")
            left = self.servers.close(0.2 if is_killed else PATIENCE_SECONDS)
            if left and not is_killed:
                return f"the servers {left} have not ended with their coordinator"
        # 2 s where the machine is not busy.
        return f"shutdown took {seconds:.0f} s" if seconds > 20.0 else ""

    def begin_anew(self) -> None:
        """Reset the counts to 0."""
        self.counts.assign(np.zeros((CALLS, 3)))
        dataset = ringlet.data.Dataset.range(10**9)
        self.numbers = iter(self.coordinator.create_per_worker_dataset(dataset))

    # --- disturbances -------------------------------------------------------------------------------------------------

    def disturb(self) -> None:
        """Disturb the tasks as the event defines, after a short delay."""
        time.sleep(self.chance.uniform(0, 0.05))
        if self.event in _ACTS:
            _ACTS[self.event](self)

    def pid(self, task_type: str) -> int:
        """Draw a task; return the pid of its process."""
        self.victim = self.chance.randrange(self.num_workers if task_type == "worker" else self.num_ps)
        return int(self.tasks.pid_of(task_type, self.victim))

    def send(self, task_type: str, *numbers: int) -> None:
        """Send signals to one task."""
        pid = self.pid(task_type)
        for number in numbers:
            _send(pid, number)
            time.sleep(self.chance.uniform(0, 0.05))

    def pause(self, task_type: str) -> None:
        """Stop and continue tasks, one after the other."""
        for _ in range(5):
            self.send(task_type, signal.SIGSTOP, signal.SIGCONT)

    def stop_ps(self) -> None:
        """Stop one parameter server, the same in all batches."""
        if self.victim < 0:
            self.send("ps", signal.SIGSTOP)

    # --- what the program does ----------------------------------------------------------------------------------------

    def run_batch(self, number: int) -> str:
        """Run closures during a disturbance; return the fault."""
        disturber = threading.Thread(target=self.disturb)
        pause = self.chance.choice([0, 0, 0.002])
        values = [self.coordinator.schedule(square, args=(self.counts, i, pause)) for i in range(CALLS)]
        disturber.start()
        try:
            own = self.coordinator.schedule(next, args=(self.numbers,))
            self.coordinator.join()
            got = self.coordinator.fetch(values)
            seen = int(own.fetch())
        finally:
            disturber.join()
        if got != [i * i for i in range(CALLS)]:
            return f"wrong results {got}"
        if not 0 <= seen <= number:
            return f"the element {seen} of a dataset that was read {number} times before"
        found = np.asarray(self.counts)
        if found.min() < number + 1:
            return "a closure has had no effect"
        return "" if (found == found[:, :1]).all() else "a row is half written"

    def run(self) -> str:
        """Run all batches; return the fault."""
        for number in range(1 if "stall" in self.event else BATCHES):
            if self.event == "raise" and (wrong := self._raise()):
                return wrong
            if wrong := self.run_batch(number):
                return wrong
        return self._stall() if self.event == "stall ps" else ""

    def _raise(self) -> str:
        values = []
        try:
            for i in range(CALLS):  # raises, too, if the error comes before the last call
                values.append(self.coordinator.schedule(divmod, args=(1, 0 if i == 20 else 1)))
            self.coordinator.join()
        except ZeroDivisionError as error:
            for value in values:
                try:
                    value.fetch()
                except (ZeroDivisionError, ringlet.errors.CancelledError):
                    continue
            return "" if "worker" in str(error.__cause__) + str(getattr(error, "__notes__", "")) else "no worker named"
        return "the error was lost"

    def _stall(self) -> str:
        """Create variables while a parameter server is stopped; return the fault unless this times out."""
        begin = time.monotonic()
        try:
            with self.strategy.scope():
                made = [ringlet.Variable(0) for _ in range(self.num_ps)]
        except DeadlineExceededError as error:
            expected = f"ps/task:{self.victim} has not answered for {STALL_SECONDS:g} s"
            return "" if expected in str(error) else f"raised {error!r}"
        finally:
            _send(self.tasks.pid_of("ps", self.victim), signal.SIGCONT)
        return f"a stopped parameter server has made {made} in {time.monotonic() - begin} s"

    def lost(self, error: PSUnavailableError) -> str:
        """Return the fault of the error about a lost parameter server, and of later calls."""
        # Of a server, which is not a child of this process, the system does not tell how it ended.
        reason = error.reason if self.servers is None else "was killed by SIGKILL (signal 9)"
        name = f"/job:ps/task:{self.victim}"
        if self.is_remote:
            name += f" at localhost:{30000 + self.victim}"
            reason = reason if error.reason == "has closed its connection" else error.reason
        if error.task_index != self.victim or reason != "was killed by SIGKILL (signal 9)":
            return f"blamed parameter server {error.task_index}, not {self.victim}: {error}"
        if f"parameter server {self.victim} ({name}, pid " not in str(error):
            return f"does not name the parameter server: {error}"
        for call in (self.coordinator.join, self.coordinator.done, lambda: self.coordinator.schedule(os.getpid)):
            try:
                call()
            except PSUnavailableError as later:
                if str(later) != str(error):
                    return f"{error!r}, and later {later!r}"
            else:
                return f"{call} returned after the loss"
        try:
            found = np.asarray(self.counts)
        except PSUnavailableError as later:
            return "" if self.is_remote else f"cannot be read: {later!r}"
        return "" if (found == found[:, :1]).all() else "a row is half written"


def _times(times: int, *numbers: int) -> Callable[[Round], None]:
    """Send signals to a number of workers."""

    def act(job: Round) -> None:
        for _ in range(times):
            job.send("worker", *numbers)

    return act


def _kill_ps_and_worker(job: Round) -> None:
    job.send("worker", signal.SIGKILL)
    job.send("ps", signal.SIGKILL)


# What happens to the tasks in the middle of each batch.
_ACTS: dict[str, Callable[[Round], None]] = {
    "kill worker": _times(1, signal.SIGKILL),
    "kill workers": _times(2, signal.SIGKILL),  # one that is killed five times before it has started is given up
    "kill stopped worker": _times(1, signal.SIGSTOP, signal.SIGKILL),
    "pause worker": lambda job: job.pause("worker"),
    "pause ps": lambda job: job.pause("ps"),
    "stall worker": _times(1, signal.SIGSTOP),
    "stall ps": Round.stop_ps,
    "kill ps": lambda job: job.send("ps", signal.SIGKILL),
    "kill stopped ps": lambda job: job.send("ps", signal.SIGSTOP, signal.SIGKILL),
    "kill worker and ps": _kill_ps_and_worker,
}
_ONLY_INTERPRETERS = ("stall worker", "kill coordinator beside stopped")
# What happens to the coordinator, or in it.
EVENTS = [*_ACTS, "raise", "interrupt", "pause coordinator", "kill coordinator", "kill coordinator beside stopped"]


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it was killed before
        return


def body_of(seed: int, event: str) -> Callable[[int, Callable[[Any], None]], None]:
    def coordinate(tell: Callable[[Any], None]) -> str:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        job = Round(seed, event)
        is_lost = event.startswith("kill") and " ps" in event
        wrong = ""
        try:
            places = [("worker", i) for i in range(job.num_workers)] + [("ps", i) for i in range(job.num_ps)]
            tell(["started", [job.tasks.pid_of(*place) for place in places]])
            wrong = job.run()
            while not wrong and (event.startswith("kill coordinator") or event == "interrupt"):
                job.begin_anew()
                wrong = job.run()
            if is_lost:
                wrong = wrong or "the loss was not raised"
        except PSUnavailableError as error:
            wrong = job.lost(error) if is_lost else f"raised {error!r}"
        except KeyboardInterrupt:
            job.coordinator.join()
            job.begin_anew()
            wrong = job.run()
        end = job.close()
        return wrong or end

    def body(index: int, tell: Callable[[Any], None]) -> None:
        descriptors, threads = descriptors_of(), threads_of()
        tell(["ended", coordinate(tell)])

        def is_clean() -> bool:
            gc.collect()
            # The core's own threads end by themselves when they are idle.
            return descriptors_of() <= descriptors and threads_of() <= threads

        if not eventually(is_clean):
            tell(["left", f"{descriptors}, {threads} -> {descriptors_of()}, {threads_of()}: {footprint()}"])
        tell(["clean", ""])

    return body


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run one job; return its faults."""
    chance = random.Random(f"{event} {seed}")
    job = Job(1, body_of(seed, event))

    def told() -> Any:
        return job.told(0, time.monotonic() + PATIENCE_SECONDS)

    killed = event.startswith("kill coordinator")
    wrong = []
    try:
        answer = told()
        if not (isinstance(answer, list) and answer[0] == "started"):
            return [f"did not start: {answer}"]
        time.sleep(chance.uniform(0, 0.3))
        _disturb(job, event, answer[1], chance)
        for expected in [] if killed else [["ended", ""], ["clean", ""]]:
            if not wrong and (answer := told()) != expected:
                wrong.append(f"told {answer}")
    finally:
        status = job.wait(0.0 if wrong else PATIENCE_SECONDS)[0]
    if status != (-signal.SIGKILL if killed else 0) and not wrong:
        wrong.append(f"the exit status is {status}")
    return wrong


def _disturb(job: Job, event: str, tasks: list[int], chance: random.Random) -> None:
    """Disturb the coordinator as the event defines."""
    if "beside stopped" in event:
        for pid in chance.sample(tasks, 2):
            _send(pid, signal.SIGSTOP)
    if event.startswith("kill coordinator"):
        job.kill(0)
    elif event == "interrupt":
        job.kill(0, signal.SIGINT)
    elif event == "pause coordinator":
        for _ in range(5):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                job.kill(0, number)
                time.sleep(chance.uniform(0, 0.2))
