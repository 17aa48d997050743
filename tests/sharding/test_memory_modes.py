"""Whether devices share memory, have their own or are of several processes: programs compute the same bits."""

from __future__ import annotations

import contextlib
import uuid

import numpy as np
import pytest

from ringlet.sharding import Mesh, Sharding, mode, shard
from ringlet.sharding.memory_modes import current_mode
from ringlet.testing import run_on_ranks
from tests.processes.harness import Processes
from tests.sharding.programs import digests

pytestmark = pytest.mark.slow

AXES = {"x": 2, "y": 2}

SCRIPT = """
from ringlet.collectives import init_process_group
from ringlet.sharding import Mesh
from tests.sharding.programs import digests
rank, num_ranks, name, owner = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4])
with init_process_group(rank=rank, num_ranks=num_ranks, name=name, timeout_seconds=100) as member:
    mesh = Mesh({"x": 2, "y": 2}, member=member, owner=owner)
    tell([digests(mesh, memory) for memory in ("shared", "copy")])
"""


def results(found):
    """What programs gave; where a whole array is asked for, each process is sent it, so that they send more."""
    return {name: digest for name, (digest, _) in found.items()}


@pytest.fixture(scope="module")
def alone():
    return digests(Mesh(AXES), "shared")


def test_devices_with_memory_of_their_own_compute_the_same_and_send_as_much(alone):
    assert digests(Mesh(AXES), "copy") == alone


def test_ranks_that_are_threads_compute_the_same(alone):
    for found in run_on_ranks(4, lambda member: digests(Mesh(AXES, member=member), "shared")):
        assert results(found) == results(alone)


@pytest.mark.parametrize(("num_ranks", "owner"), [(2, [0, 0, 1, 1]), (3, [2, 0, 0, 1])])
def test_processes_compute_the_same(alone, num_ranks, owner):
    with Processes() as processes:
        name = f"test {uuid.uuid4()}"
        started = [processes.start(SCRIPT, rank, num_ranks, name, owner) for rank in range(num_ranks)]
        for process in started:
            for found in process.told(100):
                assert results(found) == results(alone)


def test_a_mode_ends_with_its_block_also_by_an_error():
    with contextlib.suppress(KeyError), mode("copy"):
        with mode("shared"):
            assert current_mode() == "shared"
        assert current_mode() == "copy"
        raise KeyError
    assert current_mode() == "shared"


def test_a_mode_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="'copied' is not a memory mode"), mode("copied"):  # type: ignore[arg-type]
        pass


def test_memory_of_its_own_is_no_memory_of_the_array_that_was_split():
    whole = np.arange(4)
    with mode("copy"):
        x = shard(whole, Sharding.tiled((2,)))
    assert not any(np.shares_memory(tile, whole) for tile in x.shards)


def test_arrays_of_both_modes_meet():
    x = shard(np.arange(4), Sharding.tiled((2,)))
    with mode("copy"):
        y = shard(np.arange(4), Sharding.replicated(2)) + x
    assert (np.asarray(y) + np.asarray(x + y)).tolist() == [0, 5, 10, 15]


@pytest.mark.parametrize("cuts", [((1, 4), (2, 2)), ((1, 3), (3, 1)), ((4, 1), (1, 4)), ((3, 1), (3, 1))])
@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a.T @ b.T,
        lambda a, b: a.T[1:6] @ b.T[:, 1:],
        lambda a, b: a.T[:, ::2] @ b.T[::2],
        lambda a, b: a.T[::-1] @ b.T[:, ::-1],
        lambda a, b: a.T[1:].sum() + b.sum(),
    ],
    ids=["transposed", "slices", "steps", "reversed", "sum of a slice"],
)
def test_sums_of_views_have_the_same_bits_in_both_modes(function, cuts):
    rng = np.random.default_rng(0)
    for dtype in ["float32", "float64", "complex64"] * 3:
        a, b = rng.standard_normal((5, 7)).astype(dtype), rng.standard_normal((6, 5)).astype(dtype)
        bits = set()
        for name in ("shared", "copy"):
            with mode(name):
                x, y = (shard(values, Sharding.tiled(cut)) for values, cut in zip((a, b), cuts, strict=True))
                bits.add(np.asarray(function(x, y)).tobytes())
        assert len(bits) == 1
