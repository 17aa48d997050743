"""The first call that differs between the ranks of a group."""

from __future__ import annotations

from dataclasses import replace

from ringlet.observe.divergence import first_divergence, last_wait, rank_ranges
from ringlet.observe.recorder import Operation, Process

REDUCE = ("all_reduce(SUM, float32[3])", (1, 1))
GATHER = ("all_gather(float32[3], axis=0)", (2, 1))
LONGER = ("all_reduce(SUM, float32[4])", (1, 2))
RECEIVE = ("broadcast(None, root=0)", (3, 0))
SEND = ("broadcast(float32[3], root=0)", (3, 7))


def process(rank, *calls, group="a", began=0.0, place=""):
    """A process of one rank that has made these calls; None leaves a number out."""
    operations = [
        Operation(
            group=group,
            sequence=number,
            rank=rank,
            num_ranks=4,
            text=call[0],
            bytes=12,
            has_buffers="None" not in call[0],
            fingerprints=call[1],
            began=began + number,
            arrived=None,
            ended=None,
            outcome="in progress",
            place=place,
        )
        for number, call in enumerate(calls, 1)
        if call is not None
    ]
    return Process("f", 1, 1, 0.0, "", "", "", [operations], 0, 0, {})


def test_equal_calls_do_not_diverge():
    assert first_divergence([process(rank, REDUCE, GATHER) for rank in range(4)]) is None
    assert first_divergence([]) is None


def test_a_rank_that_is_behind_does_not_diverge():
    assert first_divergence([process(0, REDUCE, GATHER), process(1, REDUCE), process(2, None, GATHER)]) is None


def test_the_first_call_that_differs_is_named_with_the_ranks():
    ranks = [process(rank, REDUCE, REDUCE if rank != 2 else GATHER, LONGER) for rank in range(4)]
    found = first_divergence(ranks)
    assert str(found) == (
        "the ranks' calls differ first at call 2: rank 2 made all_gather(float32[3], axis=0), the others "
        "all_reduce(SUM, float32[3])"
    )
    assert (found.sequence, found.group) == (2, "a")


def test_a_group_within_one_of_several_processes_is_named_by_it():
    (one,), (other,) = process(0, REDUCE).threads, process(1, GATHER).threads
    ranks = replace(process(0), source="worker 1", threads=[one, other])
    assert str(first_divergence([process(0, REDUCE, group="b"), ranks])).startswith(
        "within worker 1, the ranks' calls differ first at call 1: rank 0 made "
    )
    assert str(first_divergence([ranks])).startswith("the ranks' calls")


def test_places_are_shown_where_they_are_known():
    ranks = [process(0, REDUCE, place="in step (a.py:1)"), process(1, GATHER, place="in main (a.py:9)")]
    assert str(first_divergence(ranks)).endswith(
        "rank 0 made all_reduce(SUM, float32[3]) in step (a.py:1), rank 1 made all_gather(float32[3], axis=0) in main "
        "(a.py:9)"
    )


def test_without_a_majority_all_are_named():
    found = first_divergence([process(0, REDUCE), process(1, LONGER)])
    assert str(found) == (
        "the ranks' calls differ first at call 1: rank 0 made all_reduce(SUM, float32[3]), rank 1 made "
        "all_reduce(SUM, float32[4])"
    )


def test_the_last_call_that_some_ranks_have_not_made_is_named():
    ranks = [process(rank, REDUCE, *([] if rank == 2 else [GATHER]), place="in main (a.py:9)") for rank in range(4)]
    assert last_wait(ranks) == "ranks 0, 1, 3 waited for rank 2 in all_gather(float32[3], axis=0) in main (a.py:9)"
    assert last_wait([process(rank, REDUCE) for rank in range(4)]) is None
    assert last_wait([]) is None


def test_receivers_may_omit_the_array():
    assert first_divergence([process(0, SEND), process(1, RECEIVE), process(2, SEND)]) is None
    found = first_divergence([process(0, SEND), process(1, RECEIVE), process(2, (SEND[0], (3, 8)))])
    assert found is not None


def test_a_difference_in_arguments_that_are_not_recorded_is_said():
    found = first_divergence([process(0, REDUCE), process(1, REDUCE), process(2, (REDUCE[0], (9, 1)))])
    assert str(found).endswith("(the difference is in arguments that are not recorded, such as names and pairs)")


def test_groups_are_compared_apart_and_the_earliest_counts():
    early = [process(0, REDUCE, group="b"), process(1, GATHER, group="b")]
    late = [process(0, REDUCE, began=9), process(1, GATHER, began=9)]
    assert first_divergence([*late, *early]).group == "b"
    assert first_divergence([process(0, REDUCE, group="b"), process(1, GATHER)]) is None


def test_runs_of_ranks_are_shortened():
    assert rank_ranges([3]) == "rank 3"
    assert rank_ranges([5, 0, 1, 2, 7, 8]) == "ranks 0 to 2, 5, 7, 8"
