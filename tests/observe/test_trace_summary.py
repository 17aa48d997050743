"""Sums of the events of traces that tests/launcher/commands/test_trace_command.py does not show."""

from __future__ import annotations

from ringlet.observe.trace_summary import TraceSummary

ARGS = {"group": "a", "ranks": 2, "bytes": 4}


def call(track, rank, number, times, phase="X"):
    """A call as an event, with times in seconds."""
    start, end = (time * 1e6 for time in times)
    return {"ph": phase, "tid": track, "ts": start, "dur": end - start, "cat": "collective"} | (
        {"args": ARGS | {"rank": rank, "number": number}} if phase != "E" else {}
    )


def test_without_replicas_a_rank_computes_between_its_calls():
    summary = TraceSummary()
    summary.begin(0, 0.0)
    for event in (call(1, 0, 1, (1, 2)), {"ph": "X", "tid": 1, "ts": 3e6, "dur": 1e6, "cat": "checkpoint"}):
        summary.add(0, event)
    summary.end()
    (rank,) = summary.ranks()
    assert (rank.seconds, rank.compute, rank.communication) == (4.0, 2.0, 1.0)


def test_a_call_that_was_begun_and_ended_is_one_call_and_a_lost_record_names_no_rank():
    summary = TraceSummary()
    summary.begin(0, 0.0)
    for event in (
        call(1, 0, 1, (1, 1), "B"),
        call(1, 0, 1, (4, 4), "E"),
        {"ph": "X", "tid": 1, "ts": 1e6, "dur": 2e6, "cat": "waiting"},
    ):
        summary.add(0, event)
    summary.end()
    (rank,) = summary.ranks()
    assert (rank.num_calls, rank.waiting, rank.communication, rank.waits_for) == (1, 2.0, 1.0, {})


def test_waits_of_unequal_calls_are_attributed_to_the_rank_that_was_last_in_each():
    summary = TraceSummary()
    summary.begin(0, 0.0)
    for number, starts in ((1, (1, 2, 4)), (2, (8, 5, 6))):
        for rank, start in enumerate(starts):
            event = call(rank + 1, rank, number, (start, 9))
            event["args"]["ranks"] = 3
            summary.add(0, event)
            if start < max(starts):
                summary.add(0, event | {"cat": "waiting", "dur": (max(starts) - start) * 1e6})
    summary.end()
    assert [rank.waits_for for rank in summary.ranks()] == [{2: 3.0}, {2: 2.0, 0: 3.0}, {0: 2.0}]
