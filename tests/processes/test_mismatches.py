"""Calls that are not the same on all processes: both sides are told, at once (reliability A9)."""

from __future__ import annotations

import itertools
import json
import uuid

import pytest

from tests.processes.harness import Processes

# name: the call. Two of different names are never the same call.
CALLS = {
    "all_reduce": "member.all_reduce(np.ones(8))",
    "all_reduce of another shape": "member.all_reduce(np.ones((2, 4)))",
    "all_reduce of another size": "member.all_reduce(np.ones(9))",
    "all_reduce of a large array": "member.all_reduce(np.ones(1_000_000))",
    "all_reduce of another dtype": "member.all_reduce(np.ones(8, np.float32))",
    "all_reduce by another operation": "member.all_reduce(np.ones(8), Op.MAX)",
    "all_reduce of a shared array of another dtype": "member.all_reduce(ringlet.empty_shared(8, np.int64))",
    "all_reduce of two": "member.all_reduce_many([np.ones(8), np.ones(2)])",
    "reduce": "member.reduce(np.ones(8), root=0)",
    "reduce to another root": "member.reduce(np.ones(8), root=1)",
    "reduce_scatter": "member.reduce_scatter(np.ones(8))",
    "all_gather": "member.all_gather(np.ones(8))",
    "gather": "member.gather(np.ones(8), root=0)",
    "broadcast": "member.broadcast(np.ones(8) if member.rank == 0 else None, root=0)",
    "scatter": "member.scatter(np.ones(8) if member.rank == 0 else None, root=0)",
    "all_to_all": "member.all_to_all(np.ones(8))",
    "collective_permute": "member.collective_permute(np.ones(8), [(0, 1), (1, 0)])",
    "exclusive_scan": "member.exclusive_scan(np.ones(8))",
    "barrier": "member.barrier()",
    "barrier of another name": "member.barrier('other')",
    "close": "member.close()",
}
PAIRS = list(itertools.combinations(CALLS, 2))

SCRIPT = """
import numpy as np, ringlet
from ringlet.collectives import Op, init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
for number, pair in enumerate(json.loads(hear())):
    member = init_process_group(rank, 2, name=f"{name} {number}", timeout_seconds=30)
    member.barrier()
    started = time.monotonic()
    try:
        eval(pair[rank])
        told = ["returned", ""]
    except Exception as error:
        told = [type(error).__name__, str(error)]
    tell([*told, time.monotonic() - started])
    member.close()
"""


@pytest.mark.timeout(300)
def test_every_pair_of_different_calls_is_a_mismatch_on_both_ranks_within_a_second():
    slowest = 0.0
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        ranks = [processes.start(SCRIPT, rank, name) for rank in range(2)]

        for process in ranks:
            process.say(json.dumps([[CALLS[one], CALLS[other]] for one, other in PAIRS]))
        for pair in PAIRS:
            for process, own in zip(ranks, pair, strict=True):
                kind, text, seconds = process.told()
                if own == "close":
                    continue  # closing is no wait
                slowest = max(slowest, seconds)
                assert kind == "CollectiveMismatchError", (pair, kind, text)
                if "close" in pair:
                    assert "closed its group" in text, (pair, text)
                else:
                    assert "rank 0: " in text, (pair, text)
                    assert "rank 1: " in text, (pair, text)
    assert slowest < 1.0


MANY = """
import threading
import numpy as np
from ringlet.collectives import init_process_group
process, name = int(sys.argv[1]), sys.argv[2]
members = init_process_group(ranks=range(30 * process, 30 * process + 30), num_ranks=60, name=name, timeout_seconds=50)
texts = set()
def run(member):
    length = {"same": 3 + (member.rank == 47), "different": 1000 + member.rank}[sys.argv[3]]
    try:
        member.all_reduce(np.ones((length, 1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)))
    except Exception as error:
        texts.add(str(error))
threads = [threading.Thread(target=run, args=(member,)) for member in members]
for thread in threads: thread.start()
for thread in threads: thread.join()
tell(sorted(texts))
"""


@pytest.mark.parametrize(
    ("shapes", "words"),
    [
        (
            "same",
            ["\n  ranks 0 to 46, 48 to 59: all_reduce(SUM, float64[3,1", "\n  rank 47: all_reduce(SUM, float64[4,1"],
        ),
        ("different", ["\n  rank 0: ", "[1000,1,", "\n  and 44 more\n", "\n  rank 59: ", "[1059,1,"]),
    ],
)
def test_a_mismatch_of_many_ranks_is_told_to_all_processes_alike(processes, name, shapes, words):
    started = [processes.start(MANY, rank, name, shapes) for rank in range(2)]
    told = [process.told() for process in started]
    assert told[0] == told[1]
    assert len(told[0]) == 1
    for word in words:
        assert word in told[0][0]
    assert told[0][0].endswith("on every rank.")


LONG = """
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
try:
    with init_process_group(rank, 2, name=name, timeout_seconds=50) as member:
        if rank == 0:
            raise ValueError("the beginning " + "." * 10_000 + " the end")
        member.barrier()
except Exception as error:
    tell(str(error))
"""


def test_a_cause_that_is_too_long_keeps_its_beginning_and_its_end(processes, name):
    _, other = [processes.start(LONG, rank, name) for rank in range(2)]
    text = other.told()
    assert text.startswith("rank 0 raised ValueError: the beginning ....")
    assert ". [...] ." in text
    assert text.endswith(".... the end")
