"""A rank that was stopped in the middle of a call writes nowhere when it is continued after the others have raised."""

from __future__ import annotations

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

ROUNDS = 2

# The victim is stopped at a random moment of a loop of large calls, most of which it spends in a chunk.
DRIVER = """
import mmap, random, signal
import numpy as np
import ringlet
from ringlet.collectives import init_process_group
from ringlet.errors import DeadlineExceededError
from tests.processes.forked import Job

call, kind, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
COUNT = 1 << 23
RANKS = 3 if call == "part" else 2
make = ringlet.empty_shared if kind == "shared" else np.empty


def step(member, x, out):
    if call == "broadcast":
        member.broadcast(x if member.rank == 0 else None, root=0, out=out)
    elif call == "gather":
        member.gather(x[: COUNT // member.num_ranks], root=0)
    elif call == "all_gather":
        member.all_gather(x[: COUNT // member.num_ranks], out=out[: COUNT // member.num_ranks * member.num_ranks])
    else:
        member.all_reduce(x, out=x if call == "in place" else out)


def body_of(phase):
    def body(rank, tell):
        member = init_process_group(rank, RANKS, name=f"stopped {os.getppid()}", timeout_seconds=1)
        if call == "part":
            part = member.split(0 if rank < 2 else 1)
            if rank == 2:
                tell("joined")
                while phase[0] != 2:
                    time.sleep(0.001)
                return
            member = part
        x, out = make(COUNT, np.float32), make(COUNT + 100_000, np.float32)[:COUNT]
        x[...] = 1
        step(member, x, out)
        tell("joined")
        try:
            while True:
                step(member, x, out)
        except DeadlineExceededError as error:
            assert "stopped" in str(error) or rank == 1, error
        del x, out
        if rank == 1:
            tell("raised")
            return
        reused = [make(COUNT, np.float32) for _ in range(3)]
        for array in reused:
            array[...] = 7
        tell("reused")
        while phase[0] != 2:
            time.sleep(0.001)
        tell(sum(int((array != 7).sum()) for array in reused))
    return body


chance, found = random.Random(3), []
for _ in range(rounds):
    phase = mmap.mmap(-1, 1)
    job = Job(RANKS, body_of(phase))
    told = lambda rank: job.told(rank, time.monotonic() + 30)
    joined = [told(rank) for rank in range(RANKS)]
    assert joined == ["joined"] * RANKS, joined
    time.sleep(chance.uniform(0.005, 0.05))
    job.kill(1, signal.SIGSTOP)
    answers = [told(0)]
    job.kill(1, signal.SIGCONT)
    answers.append(told(1))
    phase[0] = 2
    found.append([*answers, told(0), job.wait(30)])
tell(found)
"""


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("in place", "shared"),
        ("in place", "private"),
        ("out", "shared"),
        ("part", "shared"),
        ("broadcast", "private"),
        ("all_gather", "shared"),
        ("gather", "shared"),
    ],
)
def test_a_stopped_rank_leaves_memory_alone_that_others_use_again(call, kind):
    with Processes() as processes:
        seen = processes.start(DRIVER, call, kind, ROUNDS).told(110)
    ended = [0] * (3 if call == "part" else 2)
    assert seen == [["reused", "raised", 0, ended]] * ROUNDS
