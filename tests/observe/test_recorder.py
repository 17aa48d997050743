"""The flight recorder: what is recorded, in which memory, and what its reader says about other files."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import ringlet
from ringlet import _core
from ringlet.collectives import Group
from ringlet.errors import CollectiveAborted, CollectiveMismatchError, DataLossError
from ringlet.observe.recorder import RingReader, copy_memory, read_process

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the recorder needs memfd_create")


def read_self():
    """What the recorder of this process holds."""
    return read_process(copy_memory(_core.recorder(), "self"), "self")


def on_ranks(num_ranks, step):
    """Run a step on each rank of a new group, in threads; return the operations of each rank, by its last group."""
    group = Group(num_ranks)
    threads = [threading.Thread(target=step, args=(group.member(rank),)) for rank in range(num_ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorded = [op for ops in read_self().threads for op in ops]
    newest = max(recorded, key=lambda op: op.began).group
    found = sorted((op for op in recorded if op.group == newest), key=lambda op: op.began)
    return [[op for op in found if op.rank == rank] for rank in range(num_ranks)]


def run_python(code, **variables):
    """Run a program of its own; return its output."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RINGLET_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment | variables,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


def test_each_rank_records_its_calls_with_arguments_and_times():
    def step(member):
        member.all_reduce(np.ones((2, 3), np.float32))
        member.broadcast(np.ones(4, np.int64) if member.rank == 1 else None, root=1)
        member.all_reduce_many([np.ones(1), np.ones(2)])
        member.gather(np.ones((1,) * 8), root=0)
        member.barrier("end")

    for rank, operations in enumerate(on_ranks(2, step)):
        assert [op.sequence for op in operations] == [1, 2, 3, 4, 5]
        assert [op.text for op in operations] == [
            "all_reduce(SUM, float32[2,3])",
            f"broadcast({'int64[4]' if rank == 1 else 'None'}, root=1)",
            "all_reduce(SUM, float64[1] and 1 more)",
            "gather(float64[1,1,1,1,1,1,...], root=0, axis=0)",
            "barrier()",
        ]
        assert [op.bytes for op in operations] == [24, 32 if rank == 1 else 0, 24, 8, 0]
        for op in operations:
            assert op.began <= op.arrived <= op.ended
            assert (op.num_ranks, op.outcome) == (2, "returned")


def test_each_call_has_its_line_of_the_program():
    def step(member):
        member.barrier()
        for _ in range(2):
            member.all_reduce(np.ones(1))
            member.barrier()
        works = [member.all_reduce_async(np.ones(1))]
        works.append(member.barrier_async())
        for work in works:
            work.wait()

    line = step.__code__.co_firstlineno
    for operations in on_ranks(2, step):
        found = [re.fullmatch(r"in step \(\S*test_recorder.py:(\d+)\)", op.place) for op in operations]
        assert [int(match[1]) - line for match in found] == [1, 3, 4, 3, 4, 5, 6]


def test_a_thread_that_makes_calls_for_a_place_that_is_not_stored_shows_no_other_one():
    member, place = Group(1).member(0), _core.note_place()
    for number in (place, place + 2**16):  # records keep the lowest 16 bits
        calls = [functools.partial(_core.make_calls_for, number), functools.partial(member.barrier)]
        thread = threading.Thread(target=list, args=(map(functools.partial.__call__, calls),))  # no frame of this file
        thread.start()
        thread.join()
    newest = sorted((op for ops in read_self().threads for op in ops), key=lambda op: op.began)[-2:]
    this = test_a_thread_that_makes_calls_for_a_place_that_is_not_stored_shows_no_other_one.__code__
    assert newest[0].place.startswith(f"in {this.co_name} (")
    assert newest[0].place.endswith(f"test_recorder.py:{this.co_firstlineno + 1})")
    assert newest[1].place == ""


def test_more_places_than_are_kept_are_replaced_by_new_ones():
    member = Group(1).member(0)
    for number in range(300):
        exec(compile("member.barrier()", f"<cell {number}>", "exec"), {"member": member})
    lines = [op.place for ops in read_self().threads for op in ops if "<cell " in op.place]
    assert lines == [f"in <module> (<cell {number}>:1)" for number in range(300 - len(lines), 300)]
    assert 200 < len(lines) <= 256


def test_a_failed_call_has_raised():
    def step(member):
        with pytest.raises(CollectiveMismatchError):
            member.all_reduce(np.ones(2 + member.rank))

    for operations in on_ranks(2, step):
        assert [op.outcome for op in operations] == ["raised"]


def test_groups_and_subgroups_have_identities_of_their_own():
    def step(member):
        member.split(member.rank % 2).barrier()
        member.barrier()

    on_ranks(4, step)
    newest = sorted((op for ops in read_self().threads for op in ops), key=lambda op: op.began)[-16:]
    by_size = {size: {op.group for op in newest if op.num_ranks == size} for size in (2, 4)}
    assert (len(by_size[4]), len(by_size[2])) == (1, 2)
    whole = [op.text for op in newest if op.num_ranks == 4 and op.rank == 0]
    assert whole == ["split()", "split(), continued", "barrier()"]


def test_the_replicas_of_a_strategy_have_a_ring_each():
    code = """
import ringlet
from ringlet import _core
from ringlet.observe.recorder import copy_memory, read_process
ringlet.MirroredStrategy(3).run(lambda: ringlet.replica_context().all_reduce("SUM", 1.0))
process = read_process(copy_memory(_core.recorder(), "self"), "self")
print(sorted(operations[-1].rank for operations in process.threads if operations))
"""
    assert run_python(code) == ["[0, 1, 2]"]


def test_runs_of_strategies_are_counted():
    code = """
import ringlet
from ringlet import _core
from ringlet.observe.recorder import copy_memory, read_process
strategies = ringlet.MirroredStrategy(2), ringlet.MirroredStrategy(1)
strategies[0].run(lambda: None)  # opens the recorder
count = lambda: read_process(copy_memory(_core.recorder(), "self"), "self").num_runs
before = count()
for strategy in strategies:
    for _ in range(5):
        strategy.run(lambda: None)
print(count() - before)
"""
    assert run_python(code) == ["10"]


def test_many_groups_take_the_memory_of_one():
    code = """
import os
from ringlet import _core
from ringlet.collectives import Group
from ringlet.observe.recorder import copy_memory, read_process
sizes = []
for number in range(12_000):
    Group(1).member(0).barrier()
    if number % 2_000 == 1_999:
        sizes.append(os.fstat(_core.recorder()).st_blocks * 512)
print(len(set(sizes)), sizes[0] < 150_000)
(operations,) = read_process(copy_memory(_core.recorder(), "self"), "self").threads
print(len(operations), len({operation.group for operation in operations}))
"""
    assert run_python(code) == ["1 True", "1024 1024"]


def test_a_group_without_calls_is_a_recorder_without_operations():
    code = """
from ringlet import _core
from ringlet.collectives import Group
import ringlet.observe
print(_core.recorder())
Group(2)
from ringlet.observe.recorder import copy_memory, read_process
process = read_process(copy_memory(_core.recorder(), "self"), "self")
print(process.threads, process.totals, ringlet.observe.stats(), _core.recorder() >= 0)
"""
    assert run_python(code) == ["-1", "[] {} {} True"]


def test_a_child_of_a_fork_writes_into_memory_of_its_own():
    code = """
import os, sys
from ringlet import _core
from ringlet.collectives import Group
from ringlet.observe import stats
Group(1).member(0).barrier()
child = os.fork()
if child == 0:
    assert _core.recorder() == -1 and stats() == {}
    for _ in range(5):
        Group(1).member(0).barrier()
    assert stats()["barrier"].count == 5, stats()
    os._exit(0)
print(os.waitpid(child, 0)[1], stats()["barrier"].count)
"""
    assert run_python(code) == ["0 1"]


def test_it_can_be_turned_off():
    code = """
import ringlet
from ringlet.collectives import Group
Group(1).member(0).barrier()
print(ringlet.observe.stats(), ringlet.show_config("dicts")["recorder"])
"""
    assert run_python(code, RINGLET_RECORDER="0") == ["{} off: RINGLET_RECORDER=0"]


def test_without_a_descriptor_left_it_is_off():
    code = """
import os, resource, ringlet, numpy
from ringlet.collectives import Group
import ringlet.config, ringlet.observe.recorder_memory
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1,) * 2)
Group(1).member(0).barrier()
print(ringlet.observe.recorder_memory.state())
"""
    assert run_python(code) == ["off: starts with the first group, if the system provides shared memory"]


def test_a_reader_of_rings_returns_each_call_once_and_those_in_progress():
    group = Group(2)
    Group(1).member(0).barrier()
    reader = RingReader(_core.recorder(), "self")
    assert sum(len(ring.ended) + ring.num_lost for ring in reader.read_new()) > 0

    def wait():
        with pytest.raises(CollectiveAborted):
            group.member(0).barrier()

    thread = threading.Thread(target=wait)
    thread.start()
    while not (rings := list(reader.read_new())):
        time.sleep(0.001)
    assert [(ring.ended, ring.current.kind, ring.num_lost) for ring in rings] == [([], "barrier", 0)]
    group.abort("enough")
    thread.join()
    (ring,) = reader.read_new()
    assert ([operation.outcome for operation in ring.ended], ring.current) == (["raised"], None)
    assert list(reader.read_new()) == []


# --- damaged files ---------------------------------------------------------------------------------------------------


FIRST_RECORD = 4096 + 65536 + 4096  # after the header, the places and the head of the ring


@pytest.fixture(scope="module")
def data():
    """The contents of a recorder with one ring."""
    on_ranks(1, lambda member: member.all_reduce(np.ones(3)))
    return copy_memory(_core.recorder(), "self")


def test_a_file_that_is_cut_anywhere_is_an_error_that_names_it(data):
    assert read_process(data, "f").pid == os.getpid()
    for size in [*range(0, len(data), len(data) // 100), len(data) - 1]:
        expected = "f is truncated: it has" if size else "f is not a recorder file"
        with pytest.raises(DataLossError, match=expected) as caught:
            read_process(data[:size], "f")
        assert caught.value.file == "f"


@pytest.mark.parametrize(
    ("offset", "value", "expected"),
    [
        # offset, byte, words of the error
        (0, b"X", "not a recorder file"),
        (8, b"\1", "has version 1 of the recorder's format, but this installation reads version 2"),
        (13, b"\1", "the sizes in its header contradict each other"),
        (17, b"\1", "the sizes in its header contradict each other"),
        (57, b"\2", "the sizes in its header contradict each other"),
        (FIRST_RECORD + 24, b"\x63", "contains an invalid record"),
    ],
)
def test_a_damaged_file_is_an_error_that_says_what_is_wrong(data, offset, value, expected):
    damaged = data[:offset] + value + data[offset + 1 :]
    with pytest.raises(DataLossError, match=expected):
        read_process(damaged, "f")


def test_a_half_written_record_is_left_out_and_counted(data):
    torn = bytearray(data)
    torn[FIRST_RECORD] |= 1  # its word 0
    whole, partial = read_process(data, "f"), read_process(bytes(torn), "f")
    assert partial.num_half_written == whole.num_half_written + 1
    assert sum(map(len, partial.threads)) == sum(map(len, whole.threads)) - 1


def test_a_copy_of_memory_that_changes_has_whole_records_only():
    over = threading.Event()

    def step(member):
        while not over.is_set():
            member.all_reduce(np.ones(3))

    thread = threading.Thread(target=step, args=(Group(1).member(0),))
    thread.start()
    try:
        for _ in range(5):
            for operation in (op for ops in read_self().threads for op in ops):
                assert operation.text.endswith(")") or operation.text.endswith("continued")
    finally:
        over.set()
        thread.join()
    assert ringlet.observe.stats()["all_reduce"].count > 0
