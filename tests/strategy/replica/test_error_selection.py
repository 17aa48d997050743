"""Which failure is reported, and how it is told."""

from __future__ import annotations

import threading

from ringlet.errors import CollectiveAborted
from ringlet.strategy.replica.error_selection import (
    add_note,
    first_failure,
    follows_from_abort,
    one_line,
    other_failures,
    whereabouts,
)

ABORTED = CollectiveAborted("replica 2 raised")


def chained(*, explicit: bool) -> ValueError:
    try:
        try:
            raise CollectiveAborted("replica 2 raised")
        except CollectiveAborted as error:
            if explicit:
                raise ValueError("wrapped") from error
            raise ValueError("wrapped")  # noqa: B904 - the context is the point
    except ValueError as error:
        return error


def test_what_ends_the_program_comes_first():
    assert first_failure({0: KeyError("x"), 1: SystemExit(1), 2: KeyboardInterrupt()})[0] == 1


def test_then_what_failed_by_itself():
    assert first_failure({0: ABORTED, 1: chained(explicit=True), 2: KeyError("x"), 3: KeyError("y")})[0] == 2


def test_then_the_lowest_replica():
    assert first_failure({1: ABORTED, 0: ABORTED})[0] == 0


def test_an_abort_is_seen_through_chains():
    assert follows_from_abort(chained(explicit=True))
    assert follows_from_abort(chained(explicit=False))


def test_a_suppressed_context_does_not_count():
    error = chained(explicit=False)
    error.__suppress_context__ = True
    assert not follows_from_abort(error)


def test_a_chain_that_is_a_ring_ends():
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert not follows_from_abort(one)


def test_a_note_is_added_once():
    error = KeyError("x")
    add_note(error, "note")
    add_note(error, "note")
    assert error.__notes__ == ["note"]


def test_an_exception_whose_text_fails_can_be_told():
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Broken" in one_line(Broken())


def test_only_the_first_line_of_a_message_is_told():
    assert one_line(ValueError("one\ntwo")) == "ValueError: one"


def test_replicas_that_fail_alike_are_told_together():
    failures: dict[int, BaseException] = {replica: KeyError(replica in (3, 5, 6)) for replica in range(8)}
    failures[4] = ABORTED
    expected = "; replicas 1-2, 7: the same; replicas 3, 5-6 failed by themselves, too: KeyError: True"
    assert other_failures(failures, raised=0) == expected


def test_a_thread_is_told_by_its_line():
    assert whereabouts(threading.get_ident()).startswith("in whereabouts (")
    assert whereabouts(None) == whereabouts(-1) == "in a thread that has ended"
