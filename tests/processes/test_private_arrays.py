"""Reductions of arrays that other processes cannot see, whichever way they go: the same bits as among threads."""

from __future__ import annotations

import uuid

import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.testing import run_on_ranks
from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

# What rank r of P computes, as a digest of each result: every size goes another way, or ends in the middle of a piece.
SCRIPT = """
import hashlib
import numpy as np, ringlet
from ringlet.collectives import Op, init_process_group
rank, num_ranks, name, memories = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
member = init_process_group(rank=rank, num_ranks=num_ranks, name=name, timeout_seconds=100)
SIZES = [1, 700, 3001, 12_000, 65_537, 131_073, 300_001, 1_000_003]
CASES = [("float32", Op.SUM), ("int8", Op.MEAN), ("float64", Op.MAX), ("float16", Op.SUM), ("complex64", Op.SUM)]

def array(values, memory):
    if memory == "private":
        return values.copy()
    shared = ringlet.empty_shared(values.shape, values.dtype)
    shared[...] = values
    return shared

def digest(result):
    return hashlib.sha256(str(result.dtype).encode() + result.tobytes()).hexdigest()[:16]

digests = []
for number, size in enumerate(SIZES):
    for dtype, op in CASES:
        draw = np.random.default_rng([number, rank])
        values = (draw.standard_normal(size) * 9).astype(dtype)
        memory = memories[rank]
        digests.append(digest(member.all_reduce(values, op)))
        out = np.empty(size, np.float32 if dtype == "int8" else dtype)
        digests.append(digest(member.all_reduce(array(values, memory), op, out=array(out, memory))))
        if dtype != "int8":
            for _ in range(3):  # pieces of one call must not meet those of the next
                buffer = array(values, memory)
                digests.append(digest(member.all_reduce(buffer, op, out=buffer)))
        share = size // num_ranks
        buffer = array(values[: share * num_ranks], memory)
        out = array(np.empty(share, np.float32 if dtype == "int8" else dtype), memory)
        digests.append(digest(member.all_gather(member.reduce_scatter(buffer, op, out=out))))
        if dtype != "int8":
            out = buffer[rank * share :][:share]
            digests.append(digest(member.all_gather(member.reduce_scatter(buffer, op, out=out))))
    member.barrier()
tell(digests)
member.close()
"""


def digests(num_ranks: int, memories: list[str], crosses: str) -> list[list[str]]:
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        arguments = (str(num_ranks), name, str(memories).replace("'", '"'))
        environ = {"RINGLET_CROSS_MEMORY": crosses}
        started = [processes.start(SCRIPT, str(rank), *arguments, environ=environ) for rank in range(num_ranks)]
        return [process.told(150) for process in started]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("num_ranks", "crosses"),
    [(2, "1"), (2, "0"), (3, "0")],
    ids=["two, read across processes", "two, copied to shared memory", "three, copied to shared memory"],
)
def test_private_arrays_are_reduced_to_the_bits_of_shared_ones(num_ranks, crosses):
    private = digests(num_ranks, ["private"] * num_ranks, crosses)
    assert private[1:] == private[:1] * (num_ranks - 1)
    assert private == digests(num_ranks, ["shared"] * num_ranks, crosses)
    mixed = ["private", *["shared"] * (num_ranks - 1)]
    assert private == digests(num_ranks, mixed, crosses)


# An output that begins inside its input is refused where all can see it, and may not change the answer where not.
OVERLAPPING = """
import numpy as np
from ringlet.collectives import Op, init_process_group
rank, name, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
member = init_process_group(rank=rank, num_ranks=2, name=name, timeout_seconds=100)
memory = np.zeros(size + 16, np.int64)
values = np.arange(size) * (rank + 1)
memory[8 : size + 8] = values
shift = 8 if rank else 0
try:
    result = member.all_reduce(memory[8 : size + 8], out=memory[shift + 5 : shift + 5 + size])
    tell(bool((result == np.arange(size) * 3).all()))
except Exception as error:
    tell(type(error).__name__)
"""


@pytest.mark.parametrize("size", [2000, 5000, 20_000, 200_000])
def test_an_output_that_begins_inside_its_input_is_refused_or_right(size):
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        started = [processes.start(OVERLAPPING, str(rank), name, str(size)) for rank in range(2)]
        answers = [process.told() for process in started]
    assert answers in ([True, True], ["InvalidArgumentError"] * 2)


def test_the_digest_of_private_arrays_is_that_of_threads():
    """The script's first case, among threads."""
    values = [(np.random.default_rng([7, rank]).standard_normal(1_000_003) * 9).astype("float32") for rank in range(2)]
    among_threads = run_on_ranks(2, lambda member: member.all_reduce(values[member.rank], Op.SUM))
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        script = """
import numpy as np
from ringlet.collectives import init_process_group
rank, name = int(sys.argv[1]), sys.argv[2]
member = init_process_group(rank=rank, num_ranks=2, name=name, timeout_seconds=100)
values = (np.random.default_rng([7, rank]).standard_normal(1_000_003) * 9).astype("float32")
out = np.empty_like(values)
for _ in range(8):
    member.all_reduce(values, out=out)
    tell(out.tobytes().hex()[:4000] + out.tobytes().hex()[-4000:])
"""
        started = [processes.start(script, str(rank), name) for rank in range(2)]
        expected = among_threads[0].tobytes().hex()
        for _ in range(8):
            assert [process.told() for process in started] == [expected[:4000] + expected[-4000:]] * 2
