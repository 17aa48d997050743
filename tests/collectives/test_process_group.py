"""What `init_process_group` takes from its arguments and the environment, and a group of one process."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ringlet.cluster.environment import VARIABLES
from ringlet.collectives import Group, Member, init_process_group
from ringlet.collectives.process_group import join_job
from ringlet.errors import (
    ClusterConfigError,
    CollectiveAborted,
    CollectiveMismatchError,
    FailedPreconditionError,
    InvalidArgumentError,
)
from ringlet.rendezvous.job_key import Job


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_what_is_missing_is_named_with_its_variable():
    with pytest.raises(
        InvalidArgumentError, match=r"rank= \(or RINGLET_RANK\) and num_ranks= \(or RINGLET_NUM_RANKS\) are missing: "
    ):
        init_process_group()
    with pytest.raises(InvalidArgumentError, match=r"^num_ranks= \(or RINGLET_NUM_RANKS\) is missing"):
        init_process_group(rank=0)


def test_rank_and_number_of_ranks_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("RINGLET_RANK", "0")
    monkeypatch.setenv("RINGLET_NUM_RANKS", " 1 ")
    with init_process_group() as member:
        assert (member.rank, member.num_ranks) == (0, 1)


def test_the_place_of_a_launcher_is_read(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}')
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with init_process_group() as member:
        assert (member.rank, member.num_ranks) == (0, 1)
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1"]}}')
    with pytest.raises(ClusterConfigError, match="you must also specify `task_type`"):
        init_process_group()
    monkeypatch.delenv("TF_CONFIG")
    with pytest.raises(InvalidArgumentError, match="rank 1 is not in this group: its ranks are 0 to 0"):
        init_process_group(num_ranks=1)
    with pytest.raises(InvalidArgumentError, match=r"^num_ranks= \(or RINGLET_NUM_RANKS\) is missing"):
        init_process_group(ranks=[0, 1])


def test_arguments_win_over_the_environment(monkeypatch):
    monkeypatch.setenv("RINGLET_RANK", "7")
    monkeypatch.setenv("RINGLET_NUM_RANKS", "many")
    assert init_process_group(0, 1).num_ranks == 1


def test_a_variable_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("RINGLET_RANK", "first")
    with pytest.raises(InvalidArgumentError, match="RINGLET_RANK is 'first': expected an integer"):
        init_process_group(num_ranks=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # arguments, words of the message
        ({"rank": 2, "num_ranks": 2}, "rank 2 is not in this group: its ranks are 0 to 1"),
        ({"rank": -1, "num_ranks": 2}, "rank -1 is not in this group"),
        ({"rank": 0, "num_ranks": 0}, "num_ranks is 0: a group has 1 to 4096 ranks"),
        ({"rank": 0, "num_ranks": 5000}, "num_ranks is 5000: a group has 1 to 4096 ranks"),
        (
            {"rank": 0, "num_ranks": 1001},
            "1001 processes of one rank each are too many for a group, .* at most 1000: .* with ranks=",
        ),
        ({"rank": "0", "num_ranks": 2}, "rank is '0': expected an integer below 2"),
        ({"rank": 0, "num_ranks": 1.5}, "num_ranks is 1.5: expected an integer"),
        ({"rank": 0, "ranks": [0], "num_ranks": 1}, "pass only one of them"),
        ({"ranks": [], "num_ranks": 1}, "expected at least one rank, without duplicates"),
        ({"ranks": [1, 1], "num_ranks": 2}, "expected at least one rank, without duplicates"),
        ({"ranks": [0, 3], "num_ranks": 2}, "rank 3 is not in this group"),
    ],
)
def test_a_rank_that_cannot_be_is_refused(arguments, words):
    with pytest.raises(InvalidArgumentError, match=words):
        init_process_group(**arguments)


@pytest.mark.parametrize("timeout", [-1, "soon", float("nan")])
def test_a_timeout_that_cannot_be_is_refused(timeout):
    with pytest.raises(ValueError, match="timeout_seconds is"):
        init_process_group(0, 1, timeout_seconds=timeout)


def test_a_process_that_drives_all_ranks_waits_for_nobody():
    members = init_process_group(ranks=range(3), num_ranks=3)
    results = [None] * 3

    def run(member):
        results[member.rank] = member.all_reduce(np.array([member.rank])).item()

    threads = [threading.Thread(target=run, args=(member,)) for member in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [3, 3, 3]
    assert all(type(member) is Member for member in members)


def test_members_come_in_the_order_in_which_ranks_were_asked_for():
    assert [member.rank for member in init_process_group(ranks=[2, 0, 1], num_ranks=3)] == [2, 0, 1]


def test_a_closed_member_makes_no_calls():
    with init_process_group(0, 1) as member:
        member.barrier()
    member.close()
    assert (member.rank, member.num_ranks) == (0, 1)
    for call in (member.barrier, lambda: member.all_reduce(np.ones(3)), lambda: member.split(0)):
        with pytest.raises(FailedPreconditionError, match="rank 0 has closed its group"):
            call()


@pytest.mark.parametrize("step", [1, 2])
def test_plans_and_parts_end_with_their_member(step):
    with init_process_group(0, 1) as member:
        x = np.ones(4)[::step]
        plan = member.plan_all_reduce(x)
        part = member.split(0)
        plan_of_part, part_of_part = part.plan_all_reduce(x), part.split(0)
        np.testing.assert_array_equal(plan(), x)
        np.testing.assert_array_equal(plan_of_part(), x)
    for call in (plan, part.barrier, plan_of_part, part_of_part.barrier):
        with pytest.raises(FailedPreconditionError, match="rank 0 has closed its group"):
            call()
    part.close()


def test_a_part_that_was_closed_leaves_its_group_alone():
    with init_process_group(0, 1) as member:
        with member.split(0) as part:
            part.barrier()
        member.barrier()


def test_closing_a_rank_of_threads_departs():
    group = Group(2)
    group.member(1).close()
    with pytest.raises(CollectiveMismatchError, match=r"rank 1 \(closed its group"):
        group.member(0).barrier()


def test_an_exception_in_a_with_block_aborts_the_group():
    first, second = init_process_group(ranks=[0, 1], num_ranks=2)
    with pytest.raises(KeyError), second:
        raise KeyError("weights")
    with pytest.raises(CollectiveAborted, match="rank 1 raised KeyError: 'weights'"):
        first.barrier()


@pytest.mark.parametrize("count", [1, 3])
def test_a_job_whose_ranks_are_all_in_this_process_needs_no_other(count):
    members = join_job(Job("alone", "", count), range(count), 5)
    assert [member.rank for member in members] == list(range(count))
    sent = members[-1].send_async(np.ones(2), 0, tag=7)
    assert members[0].recv(count - 1, tag=7).tolist() == [1.0, 1.0]
    sent.wait()
    for member in members:
        member.close()
