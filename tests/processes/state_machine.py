"""Random programs of processes against a model of one process (`test_state_machine.py`).

Hypothesis draws the steps: processes join groups, call, split, close, save, are paused, stopped and killed. After each
step, the results and errors of every process are compared with NumPy and the documentation. Results that a process
keeps are compared again later, even after their group was closed and the process that allocated them has exited.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import os
import shutil
import signal
import tempfile
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import ringlet
from ringlet.collectives import Member, Op, init_process_group
from ringlet.train import Checkpoint
from tests.processes.forked import Job

__all__ = ["run"]

Array = np.ndarray[Any, Any]

WORKERS = 3
PATIENCE_SECONDS = 30.0  # longer than this, an answer counts as a hang
STALL_SECONDS = 1.0  # the time-out of a group with a stopped rank
KEPT = 4  # results that a process keeps
OPS = {"SUM": np.add, "MIN": np.minimum, "MAX": np.maximum}
DTYPES = ["int8", "uint16", "int32", "float16", "float32", "float64"]
KINDS = ["all_reduce", "many", "reduce", "reduce_scatter", "scan", "all_gather", "gather", "broadcast", "scatter"]
KINDS += ["all_to_all", "permute", "barrier"]
# What one rank may do otherwise than the others, and the calls in which they notice.
MISTAKES = {
    "kind": KINDS,
    "dtype": [kind for kind in KINDS if kind not in ("barrier", "broadcast", "scatter")],
    "count": ["all_reduce", "many", "reduce", "reduce_scatter", "scan", "permute"],
    "op": ["all_reduce", "many", "reduce", "reduce_scatter"],
    "root": ["reduce", "gather", "broadcast", "scatter"],
}


NUMBER = st.integers(0, 99)
ODD = st.integers(0, WORKERS - 1)
ORDER = st.permutations(range(WORKERS))


@dataclass
class Call:
    """A collective; its sizes are multiples of the number of ranks if necessary."""

    kind: str
    dtype: str
    count: int
    op: str
    root: int
    extra: int  # the elements that each rank has more than the rank before, in a gather
    seed: int

    @classmethod
    def draw(cls) -> st.SearchStrategy[Call]:
        counts = st.sampled_from([0, 1, 3, 64, 1000, 5000, 40_000, 300_000])
        small = st.integers(0, 2)
        numbers = st.integers(0, 2**12 - 1)
        return st.builds(
            cls, st.sampled_from(KINDS), st.sampled_from(DTYPES), counts, st.sampled_from([*OPS]), small, small, numbers
        )

    def input_of(self, rank: int, num_ranks: int) -> Array:
        """Return small whole numbers, so that sums are exact."""
        count = self.count
        if self.kind in ("reduce_scatter", "all_to_all", "scatter"):
            count *= num_ranks
        if self.kind in ("all_gather", "gather"):
            count += rank * self.extra
        return ((np.arange(count) + self.seed) % 5 + rank).astype(self.dtype)

    def expected(self, num_ranks: int) -> list[Array | None]:
        """Return the result of each rank."""
        xs = [self.input_of(rank, num_ranks) for rank in range(num_ranks)]
        root = self.root % num_ranks
        total = OPS[self.op].reduce(xs, dtype=self.dtype) if len({len(x) for x in xs}) == 1 else xs[0]
        zeros = np.zeros_like(xs[0])
        results: dict[str, Callable[[int], Array | None]] = {
            "all_reduce": lambda rank: total,
            "many": lambda rank: np.concatenate([total, total[:1]]),
            "reduce": lambda rank: total if rank == root else None,
            "reduce_scatter": lambda rank: np.split(total, num_ranks)[rank],
            "scan": lambda rank: np.add.reduce([zeros, *xs[:rank]], dtype=self.dtype),
            "all_gather": lambda rank: np.concatenate(xs),
            "gather": lambda rank: np.concatenate(xs) if rank == root else None,
            "broadcast": lambda rank: xs[root],
            "scatter": lambda rank: np.split(xs[root], num_ranks)[rank],
            "all_to_all": lambda rank: np.concatenate([np.split(x, num_ranks)[rank] for x in xs]),
            "permute": lambda rank: xs[rank - 1],
            "barrier": lambda rank: None,
        }
        return [results[self.kind](rank) for rank in range(num_ranks)]

    def make(self, member: Member) -> Array | None:
        """Make the call for one rank."""
        rank, size, root, op = member.rank, member.num_ranks, self.root % member.num_ranks, Op[self.op]
        values, expected = self.input_of(rank, size), self.expected(size)[rank]

        def array(like: Array, is_shared: int) -> Array:
            return ringlet.empty_shared(like.shape, like.dtype) if is_shared else np.empty_like(like)

        x = array(values, self.seed >> rank & 1)
        x[...] = values
        out = None
        if expected is not None and self.seed & 64 and self.kind != "many":
            out = x if self.kind == "all_reduce" and self.seed & 128 else array(expected, self.seed >> rank & 8)
        sent = x if rank == root else None
        calls: dict[str, Callable[[], Array | None]] = {
            "all_reduce": lambda: member.all_reduce(x, op, out=out),
            "many": lambda: np.concatenate(member.all_reduce_many([x, x[:1]], op)),
            "reduce": lambda: member.reduce(x, op, root, out=out),
            "reduce_scatter": lambda: member.reduce_scatter(x, op, out=out),
            "scan": lambda: member.exclusive_scan(x, out=out),
            "all_gather": lambda: member.all_gather(x, out=out),
            "gather": lambda: member.gather(x, root, out=out),
            "broadcast": lambda: member.broadcast(sent, root, out=out),
            "scatter": lambda: member.scatter(sent, root, out=out),
            "all_to_all": lambda: member.all_to_all(x, out=out),
            "permute": lambda: member.collective_permute(x, [(r, (r + 1) % size) for r in range(size)], out=out),
            "barrier": member.barrier,
        }
        return calls[self.kind]()

    def mistaken(self, mistake: str) -> Call:
        """Return the same call with a mistake that the ranks detect for every kind of call."""
        if self.kind not in MISTAKES[mistake] or mistake == "kind":
            return replace(self, kind="barrier" if self.kind != "barrier" else "all_reduce")
        other: dict[str, Any] = {
            "dtype": DTYPES[DTYPES.index(self.dtype) - 1],
            "count": self.count + 1,
            "op": "SUM" if self.op == "MAX" else "MAX",
            "root": self.root + 1,
        }
        return replace(self, **{mistake: other[mistake]})


BARRIER = Call("barrier", "int8", 0, "SUM", 0, 0, 0)


def digest(x: Array | None) -> Any:
    """Return the compared properties of a result."""
    return None if x is None else [str(x.dtype), list(x.shape), zlib.crc32(np.ascontiguousarray(x))]


# --- the processes ----------------------------------------------------------------------------------------------------


def _obey(commands: int, tell: Callable[[Any], None]) -> None:
    """Execute commands until the other end of the pipe is closed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a driver that is killed leaves no process
    members: dict[int, Member] = {}
    kept: list[Array] = []

    def join(team: int, name: str, rank: int, num_ranks: int, seconds: float) -> None:
        members[team] = init_process_group(rank, num_ranks, name=name, timeout_seconds=seconds)

    def call(team: int, arguments: list[Any]) -> Any:
        got = Call(*arguments).make(members[team])
        if got is not None:
            kept.append(got)
            del kept[:-KEPT]
        return digest(got)

    def invalid(team: int) -> None:
        members[team].reduce(np.ones(3), root=members[team].num_ranks)

    def split(team: int, color: int | None, key: int, new: int) -> Any:
        part = members[team].split(color, key)
        if part is None:
            return None
        members[new + (color or 0)] = part
        return [part.rank, part.num_ranks]

    def close(team: int) -> None:
        members[team].close()

    def look() -> list[Any]:
        return [digest(x) for x in kept]

    def forget() -> None:
        kept.clear()

    def save(path: str) -> None:
        Checkpoint(kept=list(kept)).write(path)

    def restore(path: str) -> list[Any]:
        found = Checkpoint(kept=[])
        found.restore(path)
        return [digest(x) for x in found.kept]

    def reset() -> None:
        while members:
            members.pop(min(members)).close()
        kept.clear()

    orders = {f.__name__: f for f in (join, call, invalid, split, close, look, forget, save, restore, reset)}
    for line in os.fdopen(commands):
        name, *arguments = json.loads(line)
        try:
            tell(["returned", orders[name](*arguments)])
        except Exception as error:
            tell([type(error).__name__, str(error), getattr(error, "rank", None), getattr(error, "pid", None)])


class HangError(BaseException):
    """A process does not answer: a BaseException, because Hypothesis should not shrink such slow programs."""


class Worker:
    """A process that executes commands."""

    sent: ClassVar[deque[Any]] = deque(maxlen=30)  # by all

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        self._job = Job(1, lambda index, tell: _obey(reader, tell))
        os.close(reader)
        self.pid = self._job.pids[0]
        self.is_alive = True
        self.awaited = 0  # answers to come
        self.kept: list[Any] = []  # digests

    def send(self, *command: Any) -> None:
        os.write(self._writer, json.dumps(command).encode() + b"\n")
        self.awaited += 1
        self.sent.append([self.pid, *command])

    def answer(self) -> list[Any]:
        found = self._job.told(0, time.monotonic() + PATIENCE_SECONDS)
        if found == "nothing":
            raise HangError(f"pid {self.pid} does not answer. The last commands: {[*self.sent]}")
        assert found is not None, f"pid {self.pid} ended with {self._job.wait(1)}"
        self.awaited -= 1
        return list(found)

    def kill(self, number: int) -> None:
        self._job.kill(0, number)

    def end(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.kill(signal.SIGKILL)
            os.close(self._writer)
            self._job.wait(PATIENCE_SECONDS)


class Pool:
    """The running workers; a worker that has exited is replaced."""

    def __init__(self) -> None:
        self.workers = [Worker() for _ in range(WORKERS)]

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self.workers:
            worker.end()

    def kill(self, worker: Worker) -> None:
        worker.end()
        self.workers[self.workers.index(worker)] = Worker()

    def reset(self) -> None:
        """Close all groups; end the processes that are executing a command."""
        for worker in [worker for worker in self.workers if worker.awaited]:
            self.kill(worker)
        for worker in self.workers:
            worker.send("reset")
        for worker in self.workers:
            assert worker.answer() == ["returned", None]
            worker.kept = []


# --- the model --------------------------------------------------------------------------------------------------------


@dataclass
class Cause:
    """The expected error of calls on a failed group."""

    kinds: tuple[str, ...]
    words: str
    rank: int | None = None
    pid: int | None = None

    def explains(self, answer: list[Any]) -> bool:
        return answer[0] in self.kinds and self.words in answer[1] and answer[2:] == [self.rank, self.pid]


@dataclass(eq=False)
class Team:
    """The state of a group that all its ranks share."""

    key: int
    workers: list[Worker]  # by rank
    parent: Team | None = None
    parts: list[Team] = field(default_factory=list)
    closed: set[Worker] = field(default_factory=set)
    cause: Cause | None = None

    @property
    def callers(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.is_alive and worker not in self.closed]

    @property
    def root(self) -> Team:
        return self if self.parent is None else self.parent.root

    def causes(self) -> list[Cause]:
        """Return the reasons why a call cannot take place."""
        if self.cause is not None:
            return [self.cause]
        found = []
        for rank, worker in enumerate(self.workers):
            if worker in self.closed:
                found.append(Cause(("CollectiveMismatchError",), f"rank {rank} (closed its group"))
            elif not worker.is_alive:
                found.append(Cause(("WorkerLostError",), "SIGKILL", self.root.workers.index(worker), worker.pid))
        return found

    def close(self, worker: Worker) -> None:
        self.closed.add(worker)
        for part in self.parts:
            if worker in part.workers:
                part.close(worker)

    def spreading(self) -> list[Cause]:
        """Return why the groups failed from which this one was split: it fails soon, too."""
        found, team = [], self.parent
        while team is not None:
            # Ranks of other processes raise the same; those of the process that noticed it are released.
            found += [
                replace(cause, kinds=(*cause.kinds, "CollectiveAborted"))
                for cause in team.causes()
                if team.cause is not None or "WorkerLostError" in cause.kinds
            ]
            team = team.parent
        return found


def only_if(condition: Callable[[Any], Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Skip a step unless a condition holds. Preconditions must be reproducible, and these conditions depend on time."""

    def decorate(step: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(step)
        def make(self: Machine, **drawn: Any) -> None:
            if condition(self):
                step(self, **drawn)

        return make

    return decorate


class Machine(RuleBasedStateMachine):
    """The steps, and their expected outcomes."""

    pool: Pool
    numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.teams: list[Team] = []
        self.folder = tempfile.mkdtemp()
        self.saved: dict[str, list[Any]] = {}
        self.has_stalled = False

    # --- helpers ---

    def team(self, number: int) -> Team:
        usable = [team for team in self.teams if team.callers]
        return usable[number % len(usable)]

    def has_teams(self) -> bool:
        return any(team.callers for team in self.teams)

    def teams_to_fail(self) -> list[Team]:
        return [team for team in self.teams if team.callers and team.cause is None and team.spreading()]

    def start(self, numbers: list[int], seconds: float, is_wrong: bool = False) -> Team:
        """Form a new group of some of the workers."""
        team = Team(1000 * next(self.numbers), [self.pool.workers[number] for number in numbers])
        size, name = len(numbers), f"machine {os.getpid()} {team.key}"
        if is_wrong:  # both must raise, and may come again
            pair = (team.workers[0], 0, size), (team.workers[-1], size - 1, size + 1)
            for worker, rank, num_ranks in pair:
                worker.send("join", team.key, name, rank, num_ranks, seconds)
            for worker, _, _ in pair:
                kind, text, *_ = worker.answer()
                assert (kind, f"num_ranks={size + 1}" in text) == ("FailedPreconditionError", True), text
        for rank, worker in enumerate(team.workers):
            worker.send("join", team.key, name, rank, size, seconds)
        return team

    def check(
        self,
        team: Team,
        answers: dict[Worker, list[Any]],
        results: dict[Worker, Any],
        also: Iterable[Cause] = (),
        may_complete: bool = False,
    ) -> bool:
        """Compare answers with the expected results or errors; return whether the call took place."""
        causes = [*team.causes(), *also]
        spreading = team.spreading() if team.cause is None else []
        raised = [answer for answer in answers.values() if answer[0] != "returned"]
        for worker, answer in answers.items():
            if answer[0] == "returned":
                assert answer[1] == results.get(worker), f"{answer} is not {results.get(worker)}"
        assert not raised or len(raised) == len(answers) or spreading or may_complete, f"some returned: {answers}"
        assert raised or not causes or may_complete, f"{causes} are ignored: {answers}"
        for answer in raised:
            known = [team.cause] if team.cause is not None else [*causes, *spreading]
            explained = [cause for cause in known if cause.explains(answer)]
            assert explained, f"{answer} is none of {known}"
            team.cause = team.cause or replace(explained[0], kinds=(answer[0],))  # all ranks raise the first one
        return not raised

    def make(self, team: Team, call: Call, odd: Worker | None = None, mistake: str = "kind") -> list[Worker]:
        """Send a call to all ranks that can make it; return their processes."""
        for worker in team.callers:
            made = call if worker is not odd else call.mistaken(mistake)
            worker.send("call", team.key, list(vars(made).values()))
        return team.callers

    def finish(
        self, team: Team, call: Call, callers: list[Worker], also: Iterable[Cause] = (), may_complete: bool = False
    ) -> None:
        """Receive and check the answers to a call."""
        answers = {worker: worker.answer() for worker in callers}
        results = dict(zip(team.workers, map(digest, call.expected(len(team.workers))), strict=True))
        self.check(team, answers, results, also, may_complete)
        for worker, answer in answers.items():
            if answer[0] == "returned" and answer[1] is not None:
                worker.kept = [*worker.kept, answer[1]][-KEPT:]

    # --- the steps ---

    @rule(order=ORDER, size=st.integers(2, WORKERS), is_wrong=st.booleans())
    def join(self, order: list[int], size: int, is_wrong: bool) -> None:
        team = self.start(order[:size], 10 * PATIENCE_SECONDS, is_wrong)
        answers = [worker.answer() for worker in team.workers]
        assert answers == [["returned", None]] * size, answers
        self.teams.append(team)

    @initialize(order=ORDER, size=st.integers(2, WORKERS))
    def join_first(self, order: list[int], size: int) -> None:
        self.join(order, size, False)

    @rule(number=NUMBER, calls=st.lists(Call.draw(), min_size=1, max_size=4))
    @only_if(has_teams)
    def call(self, number: int, calls: list[Call]) -> None:
        team = self.team(number)
        callers = team.callers
        for call in calls:
            self.make(team, call)
        for call in calls:
            self.finish(team, call, callers)

    @rule(number=NUMBER)
    @only_if(lambda self: self.teams_to_fail())
    def call_until_a_failure_has_spread(self, number: int) -> None:
        team = self.teams_to_fail()[number % len(self.teams_to_fail())]
        end = time.monotonic() + PATIENCE_SECONDS / 4
        while team.cause is None:
            if time.monotonic() > end:
                raise HangError(f"a group that has failed does not fail its parts: {[*Worker.sent]}")
            self.finish(team, BARRIER, self.make(team, BARRIER))

    @rule(number=NUMBER, call=Call.draw(), odd=ODD, mistake=st.sampled_from([*MISTAKES]))
    @only_if(has_teams)
    def call_with_a_mistake(self, number: int, call: Call, odd: int, mistake: str) -> None:
        team = self.team(number)
        worker = team.callers[odd % len(team.callers)]
        if len(team.workers) > 1:
            callers = self.make(team, call, worker, mistake)
            cause = Cause(("CollectiveMismatchError",), f"rank {team.workers.index(worker)}: ")
            self.finish(team, call, callers, [cause] if callers == team.workers and team.cause is None else [])

    @rule(number=NUMBER, odd=ODD)
    @only_if(has_teams)
    def call_in_vain(self, number: int, odd: int) -> None:
        """Pass arguments that are invalid on one rank, or call after closing: nothing changes for the others."""
        team = self.team(number)
        worker = team.workers[odd % len(team.workers)]
        if worker in team.closed:
            kind, order = "FailedPreconditionError", ["split", team.key, 0, 0, 0]
        else:
            kind, order = "InvalidArgumentError", ["invalid", team.key]
        if worker.is_alive:
            worker.send(*order)
            assert (answer := worker.answer())[0] == kind, answer

    @rule(number=NUMBER, colors=st.tuples(*[st.sampled_from([0, 0, 1, None])] * WORKERS), keys=ORDER)
    @only_if(has_teams)
    def split(self, number: int, colors: tuple[int | None, ...], keys: list[int]) -> None:
        team = self.team(number)
        new, callers = 1000 * next(self.numbers), team.callers
        for worker in callers:
            rank = team.workers.index(worker)
            worker.send("split", team.key, colors[rank], keys[rank], new)
        order = sorted(range(len(team.workers)), key=keys.__getitem__)
        parts = [
            Team(new + color, [team.workers[rank] for rank in order if colors[rank] == color], team) for color in (0, 1)
        ]
        places = {worker: [part.workers.index(worker), len(part.workers)] for part in parts for worker in part.workers}
        if self.check(team, {worker: worker.answer() for worker in callers}, places):
            team.parts += [part for part in parts if part.workers]
            self.teams += [part for part in parts if part.workers]

    @rule(number=NUMBER, odd=ODD)
    @only_if(has_teams)
    def close(self, number: int, odd: int) -> None:
        team = self.team(number)
        worker = team.callers[odd % len(team.callers)]
        worker.send("close", team.key)
        assert worker.answer() == ["returned", None]
        team.close(worker)

    @rule(number=st.integers(0, WORKERS - 1))
    def kill(self, number: int) -> None:
        self.pool.kill(self.pool.workers[number])

    @rule(number=NUMBER, call=Call.draw(), odd=ODD, pause=st.floats(0, 0.003), is_stopped=st.booleans())
    @only_if(has_teams)
    def kill_in_a_call(self, number: int, call: Call, odd: int, pause: float, is_stopped: bool) -> None:
        team = self.team(number)
        callers = self.make(team, call)
        victim = callers[odd % len(callers)]
        if is_stopped:
            victim.kill(signal.SIGSTOP)
        time.sleep(pause)
        self.pool.kill(victim)
        self.finish(team, call, team.callers, may_complete=True)

    @rule(number=NUMBER, call=Call.draw(), odd=ODD, pause=st.floats(0, 0.01))
    @only_if(has_teams)
    def pause_in_a_call(self, number: int, call: Call, odd: int, pause: float) -> None:
        team = self.team(number)
        callers = self.make(team, call)
        for signal_number in (signal.SIGSTOP, signal.SIGCONT):
            callers[odd % len(callers)].kill(signal_number)
            time.sleep(pause)
        self.finish(team, call, callers)

    @precondition(lambda self: not self.has_stalled)
    @rule(order=ORDER, call=Call.draw(), is_in_call=st.booleans(), is_skipped=st.sampled_from([False, *[True] * 9]))
    def stop_for_long(self, order: list[int], call: Call, is_in_call: bool, is_skipped: bool) -> None:
        if is_skipped:  # mostly, as it takes the time-out
            return
        self.has_stalled = True
        team = self.start(order, STALL_SECONDS)
        if [worker.answer()[0] for worker in team.workers] != ["returned"] * WORKERS:
            return  # the machine is too busy for the time-out
        victim, *others = team.workers
        if not is_in_call:
            victim.kill(signal.SIGSTOP)
        self.make(team, call)
        if is_in_call:
            time.sleep(0.0005)
            victim.kill(signal.SIGSTOP)
        cause = Cause(("DeadlineExceededError",), f"pid {victim.pid}, stopped")
        self.finish(team, call, others, [cause], may_complete=True)
        victim.kill(signal.SIGCONT)
        self.finish(team, call, [victim], [cause], may_complete=True)
        for worker in team.workers:  # no later call may be too slow
            worker.send("close", team.key)
            assert worker.answer() == ["returned", None]
            team.close(worker)

    @rule(number=st.integers(0, WORKERS - 1), is_killed=st.booleans(), pause=st.floats(0, 0.005))
    def save(self, number: int, is_killed: bool, pause: float) -> None:
        worker, path = self.pool.workers[number], f"{self.folder}/{number}"
        worker.send("save", path)
        possible = [worker.kept]
        if is_killed:
            time.sleep(pause)
            possible.append(self.saved.get(path))
            self.pool.kill(worker)
        else:
            assert worker.answer() == ["returned", None]
        worker = self.pool.workers[number]
        worker.send("restore", path)
        kind, found, *_ = worker.answer()
        assert (found if kind == "returned" else None) in possible, (kind, found, possible)
        if kind == "returned":
            self.saved[path] = found

    @rule(odd=ODD)
    def look_and_forget(self, odd: int) -> None:
        for worker in self.pool.workers:
            worker.send("look")
        for worker in self.pool.workers:
            answer = worker.answer()
            assert answer == ["returned", worker.kept], (answer, worker.kept)
        forgetful = self.pool.workers[odd]
        forgetful.send("forget")  # its memory is used again, where no other process keeps a result in it
        assert forgetful.answer() == ["returned", None]
        forgetful.kept = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)
        self.pool.reset()


def run(examples: int, steps: int) -> None:
    """Run programs; raise an error with the shortest program found that deviates from the model."""
    with Pool() as pool:
        Machine.pool = pool
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=steps,
                deadline=None,
                suppress_health_check=[*HealthCheck],
                print_blob=True,
            ),
        )
