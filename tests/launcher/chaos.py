"""Random jobs of ``ringlet run``, whose launcher or workers are disturbed (`tests.chaos`).

Workers train together; some ignore signals, some have a child that would outlive them. The launcher's exit status and
output must name the worker that failed, or the signal that it was sent; no process may be left.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.launcher.jobs import Job, Launcher
from tests.processes.harness import PATIENCE_SECONDS

__all__ = ["EVENTS", "run_round"]

# The time-out of jobs in which a worker stays stopped, or hangs: longer than workers start one after the other.
STALL_SECONDS = 10.0
# Longer than all have from the first failure to their end, on a machine that is busy with other work.
END_SECONDS = 20.0

SCRIPT = """
import atexit
import numpy as np
import ringlet

plan = json.loads(sys.argv[1])
me, deaf = plan["workers"][index], plan["workers"][index]["is_deaf"]
if deaf:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
if me["has_child"]:
    subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(300)"])
strategy = ringlet.MultiWorkerMirroredStrategy()
end = time.monotonic() + plan["seconds"]

def step():
    context = ringlet.get_replica_context()
    return context.all_reduce("SUM", np.array([1.0, index, time.monotonic() > end]))

def misbehave(way):
    if way == "exit":
        sys.exit(7)
    if way == "exit at once":
        os._exit(8)
    if way == "abort":
        os.abort()
    if way == "hang":
        time.sleep(300)
    if way == "raise and hang":
        atexit.register(time.sleep, 300)
    raise ValueError("chaos")

def fail_in_replica():
    misbehave(me["way"])

size, total = len(plan["workers"]), sum(range(len(plan["workers"])))
for number in range(10**9):
    if me["way"] and number == me["step"]:
        (strategy.run if me["is_inside"] else lambda call: call())(fail_in_replica)
    told = strategy.experimental_local_results(strategy.run(step))[0]
    if told[0] != strategy.num_replicas_in_sync or told[1] * size != told[0] * total:
        print("wrong", told)
        os._exit(99)
    if number == 0:
        print("ready", os.getpid())
    if told[2]:
        break
print("done")
"""


@dataclass
class Round:
    """One job, with its random choices."""

    chance: random.Random
    size: int
    job: Job
    victims: list[int]
    pids: list[int] = field(default_factory=list)

    def send(self, *numbers: int) -> None:
        """Send signals to the victims."""
        for number in numbers:
            for victim in self.victims:
                os.kill(self.pids[victim], number)

    def pause(self, pids: list[int]) -> None:
        """Stop and continue some processes several times."""
        for _ in range(5):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):  # it is done
                        os.kill(pid, number)
                time.sleep(self.chance.uniform(0, 0.2))

    def wait_to_be_ready(self) -> None:
        """Wait until all workers have made a step; read their pids."""
        guard = threading.Timer(PATIENCE_SECONDS, self.job.popen.kill)
        guard.start()
        try:
            self.job.wait_for_lines(self.size)
        finally:
            guard.cancel()
            guard.join()
        words = sorted(line.split() for line in self.job.lines)
        assert [word[:2] for word in words] == [[f"[w{index}]", "ready"] for index in range(self.size)], words
        self.pids = [int(word[2]) for word in words]


@dataclass(frozen=True)
class Event:
    """A disturbance of a job, and how `ringlet run` must then end."""

    status: int
    act: Callable[[Round], None] = lambda each: None
    way: str = ""  # in which a worker fails by itself
    says: str = ""  # on standard error, with {victim}, {size} and {pid}
    victims: int = 1
    seconds: float = 300.0  # until all workers end by themselves
    timeout_seconds: float = 60.0
    may_be_early: bool = False  # before all workers are there


def _signal(*numbers: int) -> Callable[[Round], None]:
    """Send signals to the launcher."""

    def act(each: Round) -> None:
        for number in numbers:
            if each.job.popen.poll() is None:
                each.job.send(number)
            time.sleep(0.05)

    return act


def _kill_stopped(each: Round) -> None:
    each.send(signal.SIGSTOP)
    time.sleep(each.chance.uniform(0, 0.3))
    each.send(signal.SIGKILL)


def _kill_all(each: Round) -> None:
    _signal(signal.SIGKILL)(each)
    for pid in each.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _kill_beside_a_stopped_launcher(each: Round) -> None:
    each.job.send(signal.SIGSTOP)
    each.send(signal.SIGKILL)
    time.sleep(each.chance.uniform(0, 1.0))
    each.job.send(signal.SIGCONT)


def _then(*acts: Callable[[Round], None]) -> Callable[[Round], None]:
    def act(each: Round) -> None:
        for one in acts:
            one(each)

    return act


def _stop(each: Round) -> None:
    each.send(signal.SIGSTOP)


KILLED = "ringlet run: worker {victim} of {size} was killed by SIGKILL (signal 9)"
RAISED = "ringlet run: worker {victim} of {size} exited with status 1"
ALL_ENDED = "all {size} workers have ended"
TABLE = {
    "kill": Event(137, lambda each: each.send(signal.SIGKILL), says=KILLED),
    "kill launcher": Event(-9, _signal(signal.SIGKILL), may_be_early=True),
    "SIGTERM": Event(143, _signal(signal.SIGTERM), says=f"SIGTERM: {ALL_ENDED}", may_be_early=True),
    "SIGHUP": Event(129, _signal(signal.SIGHUP), says=f"SIGHUP: {ALL_ENDED}", may_be_early=True),
    "SIGINT": Event(130, _signal(signal.SIGINT), says=f"Ctrl-C: {ALL_ENDED}", may_be_early=True),
    "raise": Event(1, way="raise", says=RAISED),
    "pause": Event(0, lambda each: each.pause([each.pids[victim] for victim in each.victims]), seconds=1.0),
    "kill two": Event(137, lambda each: each.send(signal.SIGKILL), says=KILLED, victims=2),
    "kill stopped": Event(137, _kill_stopped, says=KILLED),
    "kill beside a stopped launcher": Event(137, _kill_beside_a_stopped_launcher, says=KILLED),
    "kill launcher beside stopped": Event(-9, _then(_stop, _signal(signal.SIGKILL))),
    "kill all": Event(-9, _kill_all),
    "SIGINT twice": Event(130, _signal(signal.SIGINT, signal.SIGINT), says=f"Ctrl-C: {ALL_ENDED}"),
    "SIGTERM beside stopped": Event(143, _then(_stop, _signal(signal.SIGTERM)), says=f"SIGTERM: {ALL_ENDED}"),
    "stall": Event(1, _stop, says="(pid {pid}, stopped", timeout_seconds=STALL_SECONDS),
    "pause launcher": Event(0, lambda each: each.pause([each.job.popen.pid]), seconds=1.0),
    "raise and hang": Event(1, way="raise and hang", says=RAISED),
    "exit": Event(7, way="exit", says="ringlet run: worker {victim} of {size} exited with status 7"),
    "exit at once": Event(8, way="exit at once", says="ringlet run: worker {victim} of {size} exited with status 8"),
    "abort": Event(134, way="abort", says="ringlet run: worker {victim} of {size} was killed by SIGABRT (signal 6)"),
    "hang": Event(1, way="hang", says="worker/task:{victim}", timeout_seconds=STALL_SECONDS),
}
EVENTS = list(TABLE)


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Run one job; return its faults."""
    launcher = Launcher(folder)
    try:
        return _run(random.Random(f"{seed} {event}"), TABLE[event], launcher)
    finally:
        launcher.close()


def _run(chance: random.Random, event: Event, launcher: Launcher) -> list[str]:
    size = chance.randint(2, 3)
    victims = chance.sample(range(size), event.victims)
    # A worker that ignores signals ends all the same where it is killed, or where its group fails.
    workers = [
        {"is_deaf": chance.random() < 0.2, "has_child": chance.random() < 0.3, "way": "", "step": 0, "is_inside": False}
        for _ in range(size)
    ]
    if event.way:
        for victim in victims:
            workers[victim] |= {"way": event.way, "step": chance.randint(1, 300), "is_inside": chance.random() < 0.5}
    is_early = event.may_be_early and chance.random() < 0.3
    options = ["-n", size, "--replicas", chance.choice([1, 1, 2]), "--grace-seconds", chance.choice([0, 0.2, 1])]
    job = launcher.start(
        SCRIPT,
        *options,
        arguments=[json.dumps({"workers": workers, "seconds": event.seconds})],
        environ={"RINGLET_TIMEOUT_SECONDS": str(event.timeout_seconds), "PYTHONPATH": ""},
    )
    each = Round(chance, size, job, victims)
    if is_early:
        time.sleep(chance.uniform(0, 1.5))
    else:
        each.wait_to_be_ready()
        time.sleep(chance.uniform(0, 0.2))
    event.act(each)
    job.end()
    return [
        f"{text}; workers {workers}, options {options}, early {is_early}, pids {each.pids}: status {job.status} after "
        f"{job.seconds:.1f} s, said {job.out.decode()!r} and {job.err.decode()!r}"
        for text in _wrong(each, event, is_early)
    ]


def _wrong(each: Round, event: Event, is_early: bool) -> list[str]:
    """Return the faults of how a job has ended."""
    job, wrong = each.job, []
    text = job.err.decode()
    statuses = {event.status, 128 - event.status} if is_early and event.status > 128 else {event.status}
    if is_early and "Fatal Python error: init_import_site" in text:
        statuses = {1}  # Ctrl-C while the interpreter was starting, before any code of the launcher
    if job.status not in statuses:
        wrong.append(f"the status is not {statuses}")
    says = [
        event.says.format(victim=victim, size=each.size, pid=each.pids[victim] if each.pids else "")
        for victim in each.victims
    ]
    if not is_early and not any(words in text for words in says):
        wrong.append(f"does not say {says}")
    if event.status == 0 and (text or len(job.lines) != 2 * each.size):
        wrong.append("not all are done, in silence")
    if event.way.startswith("raise") and f"[w{each.victims[0]}] ValueError: chaos" not in job.errors:
        wrong.append("does not show the traceback of the first failure")
    may_be_several = "raise" in event.way and "During handling" in text
    # While modules load, NumPy and, before 3.12, Python make an error of their own of a Ctrl-C.
    loading = ("Importing the numpy C-extensions failed", "Error calling __set_name__")
    may_be_several = may_be_several or (is_early and any(words in text for words in loading))
    if text.count("Traceback") > 1 and not may_be_several:
        wrong.append("shows several tracebacks")
    if "wrong" in job.out.decode():
        wrong.append("a wrong value was returned")
    if job.seconds > END_SECONDS + (STALL_SECONDS if event.timeout_seconds == STALL_SECONDS else 0.0):
        wrong.append("took too long")
    if not job.leaves_nothing(END_SECONDS):
        wrong.append(f"left the processes {job.processes()}")
    return wrong
