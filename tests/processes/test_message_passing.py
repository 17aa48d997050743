"""Messages between processes: sizes, lost and stopped ranks, forks, ranks that leave, parts, several ranks each."""

from __future__ import annotations

import signal

import pytest

JOIN = """
import numpy as np
from ringlet.collectives import init_process_group
from ringlet.errors import *
member = init_process_group(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], timeout_seconds=float(sys.argv[4]))
def raised(call):
    try:
        call()
    except Exception as error:
        tell([type(error).__name__, str(error), getattr(error, "rank", None)])
"""


def start(processes, name, script, size=2, seconds=40.0):
    return [processes.start(JOIN + script, rank, size, name, seconds) for rank in range(size)]


def test_arrays_of_all_sizes_arrive_from_any_source(processes, name):
    script = """
sizes = [0, 1, 1000, 3_000_000]
record = np.dtype([(f"field number {number}", "f8") for number in range(9)])
if member.rank:
    for size in sizes:
        member.send(np.arange(size)[::-1], to=0, tag=size)
    works = [member.send_async(np.full(400_000, float(number)), 0, tag=-1) for number in range(3)]
    for work in works:
        work.wait()
    member.send(np.ones(2, record), 0, tag=5)  # a description longer than others
    member.send(np.float32(member.rank), to=0, tag=9)
else:
    for size in sizes:
        for _ in range(2):
            x = member.recv(tag=size)
            assert np.array_equal(x, np.arange(size)[::-1]), size
    out = np.zeros((800, 1000)).T[:500, :800]
    for source in (2, 1):
        tell([member.recv(source, tag=-1)[-1] for _ in range(3)])
        assert member.recv(source, tag=5).dtype == record
    works = [member.recv_async(tag=9) for _ in range(2)]
    tell(sorted([work.source for work in works if work.wait() == work.source]))
    member.send(np.ones(2), to=0)
    tell(member.recv(0).tolist())
member.barrier()
member.close()
"""
    ranks = start(processes, name, script, size=3)
    assert [ranks[0].told() for _ in range(4)] == [[0, 1, 2], [0, 1, 2], [1, 2], [1, 1]]
    assert [rank.wait() for rank in ranks] == [0, 0, 0]


def test_a_mismatch_is_an_error_of_the_receiver(processes, name):
    script = """
if member.rank == 0:
    for x in (np.ones((2, 3)), np.ones(100_000), np.arange(3)):
        member.send(x, 1)
else:
    for _ in range(2):
        raised(lambda: member.recv(0, out=np.ones(3, int)))
    tell(member.recv(0, out=np.ones(3, int)).tolist())
"""
    _, receiver = start(processes, name, script)
    for sent in ("float64[2, 3]", "float64[100000]"):
        kind, text, _ = receiver.told()
        assert kind == "InvalidArgumentError"
        assert f"rank 0 sent {sent} with tag 0, but this rank receives into int64[3]: use the same dtype" in text
        assert "dtype and shape on both ranks." in text
    assert receiver.told() == [0, 1, 2]


def test_a_lost_rank_is_named_by_sends_and_receives(processes, name):
    script = """
member.barrier()
tell("joined")
if member.rank == 1:
    member.send(np.ones(2), 0, tag=1)
    tell("sent")
    hear()
work = member.recv_async(1)
raised(work.wait)
raised(lambda: member.recv(1))
raised(lambda: [member.send(np.ones(100_000), 1) for _ in range(10)])
"""
    ranks = start(processes, name, script)
    assert [rank.told() for rank in ranks] == ["joined"] * 2
    assert ranks[1].told() == "sent"
    ranks[1].kill(signal.SIGKILL)
    for _ in range(3):
        kind, text, rank = ranks[0].told()
        assert (kind, rank) == ("WorkerLostError", 1), text
        assert "SIGKILL" in text
    assert ranks[0].wait() == 0


def test_a_rank_that_was_lost_before_the_first_message_is_named(processes, name):
    script = """
member.barrier()
tell("joined")
hear()
raised(lambda: member.recv(1))
"""
    ranks = start(processes, name, script)
    assert [rank.told() for rank in ranks] == ["joined"] * 2
    ranks[1].kill(signal.SIGKILL)
    ranks[1].wait()
    ranks[0].say()
    kind, text, rank = ranks[0].told()
    assert (kind, rank) == ("WorkerLostError", 1), text


@pytest.mark.slow
def test_a_stopped_rank_is_a_time_out_that_names_it(processes, name):
    script = """
member.barrier()
tell("joined")
if member.rank == 1:
    hear()
raised(lambda: member.recv(1, tag=7))
"""
    ranks = start(processes, name, script, seconds=3.0)
    assert [rank.told() for rank in ranks] == ["joined"] * 2
    ranks[1].kill(signal.SIGSTOP)
    kind, text, _ = ranks[0].told()
    assert kind == "DeadlineExceededError"
    assert "recv from rank 1 with tag 7 did not complete within the time-out of the group" in text


def test_a_rank_that_leaves_delivers_what_it_has_sent_and_is_named(processes, name):
    script = """
if member.rank == 0:
    member.send(np.ones(3), 1)
    member.send_async(np.ones(5_000_000), 1)
    raised(member.close)
    tell("left")
    hear()
else:
    hear()
    tell(member.recv(0).tolist())
    raised(lambda: member.recv(0))
    raised(lambda: member.send([1], 0))
"""
    leaves, other = start(processes, name, script)
    kind, text, _ = leaves.told()
    assert kind == "FailedPreconditionError"
    assert "rank 0 closed its group while asynchronous calls ran: send to rank 1. Call wait()" in text
    assert leaves.told() == "left"
    other.say()
    assert other.told() == [1, 1, 1]
    for _ in range(2):
        kind, text, rank = other.told()
        assert (kind, rank) == ("WorkerLostError", 0)
        assert "left the group: it sends and receives no more messages." in text
    leaves.say()


def test_a_forked_child_has_no_messages(processes, name):
    script = """
if member.rank == 0:
    work = member.recv_async(1)
    if os.fork() == 0:
        for call in (work.wait, lambda: member.recv(1), lambda: member.send([1], 1), member.close):
            raised(call)
        sys.exit(0)
    os.wait()
    tell("go on")
    tell(work.wait().tolist())
    member.send(np.ones(1), 1)
else:
    hear()
    member.send(np.ones(2), 0)
    tell(member.recv(0).tolist())
member.close()
"""
    parent, other = start(processes, name, script)
    errors = []
    while (said := parent.told()) != "go on":
        errors.append(said)
    assert len(errors) >= 3
    assert all("fork" in text for _, text, _ in errors), errors
    other.say()
    assert parent.told() == [1, 1]
    assert other.told() == [1]
    assert [parent.wait(), other.wait()] == [0, 0]


def test_parts_have_messages_of_their_own_and_name_a_lost_rank_of_the_whole_group(processes, name):
    script = """
row, column = member.split(member.rank // 2, key=-member.rank), member.split(member.rank % 2)
only = row.split(None if row.rank else 0)
parts = [part for part in (only, row, column, member) if part is not None]
big = np.full(300_000, member.rank)
works = [part.send_async(big, (part.rank + 1) % part.num_ranks) for part in parts]
tell([int(part.recv((part.rank - 1) % part.num_ranks)[-1]) for part in reversed(parts)])
for work in works:
    work.wait()
if member.rank == 3:
    column.send(np.ones(2), 0, tag=1)
    tell("sent")
    hear()
if member.rank == 1:
    tell(column.recv(1, tag=1).tolist())
    hear()
    for call in (lambda: column.recv(1), lambda: column.recv(), lambda: column.send([1], 1)):
        raised(call)
if member.rank % 2 == 0:
    hear()  # a rank that ended meanwhile could be the first that is lost
"""
    ranks = start(processes, name, script, size=4)
    assert [rank.told() for rank in ranks] == [[3, 2, 1], [0, 3, 0, 1], [1, 0, 3], [2, 1, 2, 3]]
    assert ranks[3].told() == "sent"
    assert ranks[1].told() == [1, 1]
    ranks[3].kill(signal.SIGKILL)
    ranks[3].wait()
    ranks[1].say()
    for _ in range(3):
        kind, text, rank = ranks[1].told()
        assert (kind, rank) == ("WorkerLostError", 3), text


def test_a_part_is_closed_alone_or_with_the_whole_group(processes, name):
    script = """
first, second = member.split(0), member.split(0)
if member.rank == 0:
    first.send([1, 2], 1)
    first.close()
    raised(lambda: first.send([1], 1))
    second.send([3], 1)
    member.close()
    tell("left")
    hear()
else:
    hear()
    for part in (first, second):
        tell(part.recv(0).tolist())
        raised(lambda: part.recv(0))
        raised(lambda: part.send([1], 0))
    member.close()
"""
    leaves, other = start(processes, name, script)
    kind, text, _ = leaves.told()
    assert (kind, "closed its group" in text) == ("FailedPreconditionError", True)
    assert leaves.told() == "left"
    other.say()
    for expected in ([1, 2], [3]):
        assert other.told() == expected
        for _ in range(2):
            kind, text, rank = other.told()
            assert (kind, rank, "left the group" in text) == ("WorkerLostError", 0, True), text
    leaves.say()
    assert [leaves.wait(), other.wait()] == [0, 0]


SEVERAL = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from ringlet.collectives import init_process_group
from ringlet.errors import *
mine = [[0, 3], [1], [2, 4, 5]][int(sys.argv[1])]
members = init_process_group(ranks=mine, num_ranks=6, name=sys.argv[2], timeout_seconds=40)
pool = ThreadPoolExecutor(8)
def on_all(call):
    return list(pool.map(call, members))
"""


def test_ranks_of_one_process_and_of_others_exchange_messages(processes, name):
    script = """
def step(member):
    half = member.split(member.rank % 2)
    found = []
    for group in (member, half):
        works = [group.send_async(np.full(40_000, member.rank), to, tag=1) for to in range(group.num_ranks)]
        found.append([int(group.recv(source, tag=1)[-1]) for source in range(group.num_ranks)])
        for work in works:
            work.wait()
        group.send([member.rank], (group.rank + 1) % group.num_ranks)
        work = group.recv_async()
        found.append([work.wait().item(), work.source])
    return found
tell(on_all(step))
on_all(lambda member: member.barrier())
on_all(lambda member: member.close())
"""
    started = [processes.start(SEVERAL + script, index, name) for index in range(3)]
    for ranks, process in zip(([0, 3], [1], [2, 4, 5]), started, strict=True):
        for rank, found in zip(ranks, process.told(), strict=True):
            half = [rank % 2, rank % 2 + 2, rank % 2 + 4]
            left = (rank - 2) % 6
            assert found == [list(range(6)), [(rank - 1) % 6] * 2, half, [left, left // 2]], rank
    assert [process.wait() for process in started] == [0, 0, 0]


def test_a_process_with_several_ranks_that_ends_or_closes_one_is_named(processes, name):
    script = """
def raised(call):
    try:
        call()
    except Exception as error:
        tell([type(error).__name__, getattr(error, "rank", None)])
if 0 in mine:
    hear()
    raised(lambda: members[0].recv(2))
    raised(lambda: members[1].send([1], 2))
    members[0].send([1], 4)
    tell(members[1].recv(4).tolist())
    hear()
    raised(lambda: members[0].recv(5))
    raised(lambda: members[1].recv(4))
elif 1 not in mine:
    members[0].close()
    raised(lambda: members[1].recv(2))
    tell("closed")
    tell(members[1].recv().tolist())
    members[1].send([4], 3)
hear()
"""
    first, _, others = [processes.start(SEVERAL + script, index, name) for index in (0, 1, 2)]
    assert others.told() == ["WorkerLostError", 2]
    assert others.told() == "closed"
    first.say()
    assert [first.told() for _ in range(2)] == [["WorkerLostError", 2]] * 2
    assert others.told() == [1]
    assert first.told() == [4]
    others.kill(signal.SIGKILL)
    others.wait()
    first.say()
    for _ in range(2):
        kind, rank = first.told()
        assert (kind, rank in (2, 4, 5)) == ("WorkerLostError", True), (kind, rank)
