"""Random jobs of random collectives, disturbed at random moments by SIGKILL, SIGSTOP and SIGCONT.

    python -m tests.processes.chaos --minutes 30 --seed 1

Every round is one job: ranks, arrays, calls and the disturbance are drawn from its seed. A job that is only paused must
return right values. Where ranks are killed, or stopped for longer than the time-out, the others must raise an error
that names one of them; they free their arrays, take the memory again and fill it; stopped ranks are then continued, and
must raise, end, and leave every byte of the reused memory as it was. Nothing may be left behind.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

import ringlet
from ringlet.collectives import Algorithm, Member, init_process_group
from ringlet.errors import CollectiveAborted, DeadlineExceededError, WorkerLostError
from tests.processes.forked import Job, left_behind

__all__ = ["main", "run_round"]

Array = np.ndarray[Any, Any]

# Longer than this, an answer counts as a hang.
PATIENCE_SECONDS = 30.0
STALL_SECONDS = 2.0  # the time-out of jobs in which a rank stays stopped
EVENTS = ["kill", "kill two", "pause", "stall", "stall two", "kill stopped", "kill beside stopped"]
DTYPES = ["int8", "uint16", "int32", "float16", "float32", "float64", "complex64", ml_dtypes.bfloat16]
OPERATIONS = ["all_reduce", "all_reduce", "many", "broadcast", "all_gather", "gather", "reduce_scatter"]
OPERATIONS += ["all_to_all", "permute", "scan", "reduce", "plan", "barrier"]
PATTERN = 0x77


@dataclass
class Plan:
    """What the ranks of one job do, and what happens to them."""

    seed: int
    event: str
    num_ranks: int
    dtype: np.dtype[Any]
    count: int
    crosses: str
    is_split: bool
    pause: float
    victims: list[int]

    @classmethod
    def draw(cls, seed: int, event: str = "") -> Plan:
        chance = random.Random(seed)
        event = event or chance.choice(EVENTS)
        num_ranks = chance.randint(3 if event.endswith("two") or "beside" in event else 2, 5)
        dtype = np.dtype(chance.choice(DTYPES))
        blocks = int(2 ** chance.uniform(0, 23)) // dtype.itemsize // num_ranks
        return cls(
            seed,
            event,
            num_ranks,
            dtype,
            max(blocks, 1) * num_ranks,
            chance.choice("110"),
            num_ranks > 2 and chance.random() < 0.4,
            chance.uniform(0, 0.05),
            chance.sample(range(num_ranks), 2 if event.endswith("two") or "beside" in event else 1),
        )

    @property
    def stops(self) -> list[int]:
        """The ranks that are stopped, and continued once the others have raised."""
        if "stall" in self.event:
            return self.victims
        return self.victims[:1] if "beside" in self.event else []

    @property
    def kills(self) -> list[int]:
        if self.event.startswith("kill two"):
            return self.victims
        return self.victims[-1:] if self.event.startswith("kill") else []


class Calls:
    """One rank's calls, each compared with what it has to return."""

    def __init__(self, plan: Plan, member: Member) -> None:
        self.plan, self.member = plan, member
        self.base = (np.arange(plan.count) % 5).astype(plan.dtype)
        ranks = list(range(plan.num_ranks))
        self.groups = [(member, ranks)]
        if plan.is_split:
            part = member.split(member.rank % 2)
            assert part is not None
            self.groups.append((part, ranks[member.rank % 2 :: 2]))
        self.plans: dict[Member, tuple[Array, Callable[[], Array]]] = {}

    def values(self, rank: int, step: int) -> Array:
        return self.base + self.plan.dtype.type(rank + step % 3)

    def array(self, chance: random.Random, values: Array) -> Array:
        """Values in a shared or in a private array."""
        x = ringlet.empty_shared(values.shape, values.dtype) if chance.random() < 0.5 else np.empty_like(values)
        x[...] = values
        return x

    def make(self, step: int) -> bool:
        """Make one call; return whether its result is right."""
        same = random.Random(f"{self.plan.seed} {step}")  # alike on all ranks
        own = random.Random(f"{self.plan.seed} {step} {self.member.rank}")
        member, ranks = same.choice(self.groups)
        name, root = same.choice(OPERATIONS), same.randrange(2) % len(ranks)
        x = self.array(own, self.values(ranks[member.rank], step))
        equal = x[: len(x) // len(ranks) * len(ranks)]
        calls: dict[str, Callable[[], Any]] = {
            "all_reduce": lambda: self.all_reduce(member, x, same, own),
            "plan": lambda: self.planned(member, self.values(ranks[member.rank], step)),
            "many": lambda: member.all_reduce_many([x, x[:1]])[0],
            "broadcast": lambda: member.broadcast(x if member.rank == root else None, root=root, out=out),
            "all_gather": lambda: member.all_gather(x, out=out),
            "gather": lambda: member.gather(x, root=root, out=out),
            "reduce_scatter": lambda: member.reduce_scatter(equal, out=out),
            "all_to_all": lambda: member.all_to_all(equal, out=out),
            "permute": lambda: member.collective_permute(
                x, [(source, (source + 1) % len(ranks)) for source in range(len(ranks))], out=out
            ),
            "scan": lambda: member.exclusive_scan(x, out=out),
            "reduce": lambda: member.reduce(x, root=root, out=out),
            "barrier": member.barrier,
        }
        expected = self.expected(name, step, ranks, member.rank, root)
        out = self.array(own, np.zeros_like(expected)) if expected is not None and same.random() < 0.5 else None
        got = calls[name]()
        return (got is None and expected is None) or np.array_equal(got, expected)

    def all_reduce(self, member: Member, x: Array, same: random.Random, own: random.Random) -> Array:
        out = own.choice([x, self.array(own, self.base)]) if same.random() < 0.6 else None
        return member.all_reduce(x, algorithm=same.choice([Algorithm.AUTO, Algorithm.DIRECT, Algorithm.RING]), out=out)

    def planned(self, member: Member, values: Array) -> Array:
        if member not in self.plans:
            x = values.copy()
            self.plans[member] = x, member.plan_all_reduce(x)
        x, run = self.plans[member]
        x[...] = values
        return run()

    def expected(self, name: str, step: int, ranks: list[int], index: int, root: int) -> Array | None:
        dtype, share = self.plan.dtype, self.plan.count // len(ranks)
        each = [self.values(rank, step) for rank in ranks]
        summed = each[:index] if name == "scan" else each
        total = sum((x.astype("complex128") for x in summed), np.zeros(self.plan.count, "complex128"))
        total = (total if dtype.kind == "c" else total.real).astype(dtype)
        others: dict[str, Array | None] = {
            "barrier": None,
            "broadcast": each[root],
            "all_gather": np.concatenate(each),
            "gather": np.concatenate(each) if index == root else None,
            "all_to_all": np.concatenate([x[index * share :][:share] for x in each]),
            "permute": each[index - 1],
            "reduce_scatter": total[index * share :][:share],
            "reduce": total if index == root else None,
        }
        return others.get(name, total)


def reused_memory(plan: Plan) -> Iterator[Array]:
    """Shared and private arrays as the calls had them, all bytes set."""
    for size in (1, 1, 1, 1, plan.num_ranks, plan.num_ranks):
        for make in (ringlet.empty_shared, np.empty):
            x = make(plan.count * plan.dtype.itemsize * size, np.uint8)
            x[...] = PATTERN
            yield x


def body_of(plan: Plan, phase: mmap.mmap) -> Callable[[int, Callable[[Any], None]], None]:
    def body(rank: int, tell: Callable[[Any], None]) -> None:
        os.environ["RINGLET_CROSS_MEMORY"] = plan.crosses
        seconds = STALL_SECONDS if "stall" in plan.event else 60.0
        member = init_process_group(rank, plan.num_ranks, name=f"chaos {os.getppid()}", timeout_seconds=seconds)
        calls = Calls(plan, member)
        tell("joined")
        step = 0
        try:
            # All ranks leave after the same call: rank 0 tells the others when.
            while step % 8 or not member.broadcast(np.array([phase[0] == 1]) if rank == 0 else None)[0]:
                if not calls.make(step):
                    tell(["wrong", step])
                    return
                step += 1
            tell(["done", step])
            return
        except (WorkerLostError, DeadlineExceededError, CollectiveAborted) as error:
            answer = [type(error).__name__, str(error), getattr(error, "rank", None)]
        del calls
        reused = list(reused_memory(plan))
        tell(answer)
        if rank in plan.stops:
            return
        end = time.monotonic() + PATIENCE_SECONDS
        while phase[0] != 2 and time.monotonic() < end:
            time.sleep(0.001)
        tell(["changed", sum(int((x != PATTERN).sum()) for x in reused)])

    return body


def run_round(plan: Plan) -> list[str]:
    """Run one job; return what was wrong with it."""
    phase = mmap.mmap(-1, 1)
    job = Job(plan.num_ranks, body_of(plan, phase))
    try:
        wrong = _disturb(plan, job, phase)
    finally:
        for rank in plan.stops:
            job.kill(rank, signal.SIGCONT)
        statuses = job.wait(PATIENCE_SECONDS)
    expected = [-signal.SIGKILL if rank in plan.kills else 0 for rank in range(plan.num_ranks)]
    return wrong if statuses == expected else [*wrong, f"the exit statuses are {statuses}"]


def _disturb(plan: Plan, job: Job, phase: mmap.mmap) -> list[str]:
    def told(rank: int) -> Any:
        return job.told(rank, time.monotonic() + PATIENCE_SECONDS)

    everyone = range(plan.num_ranks)
    joined = [told(rank) for rank in everyone]
    if joined != ["joined"] * plan.num_ranks:
        return [f"did not join: {joined}"]
    time.sleep(plan.pause)
    if plan.event == "pause":
        chance = random.Random(plan.seed)
        for _ in range(10):
            for number in (signal.SIGSTOP, signal.SIGCONT):
                job.kill(plan.victims[0], number)
                time.sleep(chance.uniform(0, 0.02))
        phase[0] = 1
        answers = [told(rank) for rank in everyone]
        return [] if all(a[0] == "done" and a == answers[0] for a in answers if a) and answers[0] else [f"{answers}"]
    for rank in plan.stops + (plan.kills if plan.event == "kill stopped" else []):
        job.kill(rank, signal.SIGSTOP)
    time.sleep(plan.pause / 4)
    for rank in plan.kills:
        job.kill(rank)
    survivors = [rank for rank in everyone if rank not in plan.victims]
    wrong = [text for rank in survivors if (text := _refused(plan, job.pids, rank, told(rank)))]
    for rank in plan.stops:
        job.kill(rank, signal.SIGCONT)
    wrong += [text for rank in plan.stops if (text := _refused(plan, job.pids, rank, told(rank)))]
    phase[0] = 2
    if not wrong:
        changed = [told(rank) for rank in survivors]
        if changed != [["changed", 0]] * len(survivors):
            wrong.append(f"bytes of reused memory: {changed}")
    return wrong


def _refused(plan: Plan, pids: list[int], rank: int, answer: Any) -> str:
    """Whatever is wrong with the error that a rank has raised."""
    if not isinstance(answer, list) or len(answer) != 3:
        return f"rank {rank} told {answer}"
    kind, text, lost = answer
    if plan.kills:
        right = kind == "WorkerLostError" and lost in plan.kills and "SIGKILL" in text
    else:
        # Ranks of a part have numbers of their own there: the pid tells them apart.
        right = kind == "DeadlineExceededError" and any(
            f"(pid {pids[victim]}, stopped" in text for victim in plan.stops
        )
    # A rank that was stopped may raise what its own clock says, or what the others have left.
    return "" if right or (rank in plan.stops and text) else f"rank {rank} raised {kind}: {text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the next ones follow")
    parser.add_argument("--event", choices=EVENTS, default="")
    options = parser.parse_args()
    before, failures, rounds = left_behind(), 0, Counter[str]()
    end = time.monotonic() + 60 * options.minutes
    seed = options.seed
    while time.monotonic() < end:
        plan = Plan.draw(seed, options.event)
        wrong = run_round(plan)
        rounds[plan.event] += 1
        failures += bool(wrong)
        for text in wrong:
            print(f"{plan}: {text[-2000:]}", flush=True)
        seed += 1
    after = left_behind()
    print(f"{dict(rounds)}: {failures} rounds failed; left behind {before} -> {after}")
    return int(failures > 0 or after != before)


if __name__ == "__main__":
    sys.exit(main())
