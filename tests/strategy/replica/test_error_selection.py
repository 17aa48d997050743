"""Selection and description of the failures of a run."""

from __future__ import annotations

from ringlet.errors import CollectiveAborted
from ringlet.strategy.replica.error_selection import (
    follows_from_abort,
    one_line,
    other_failures,
    primary_failure,
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


def test_exceptions_that_end_the_program_come_first():
    assert primary_failure({0: KeyError("x"), 1: SystemExit(1), 2: KeyboardInterrupt()})[0] == 1


def test_independent_failures_come_second():
    assert primary_failure({0: ABORTED, 1: chained(explicit=True), 2: KeyError("x"), 3: KeyError("y")})[0] == 2


def test_the_lowest_replica_comes_first_among_equals():
    assert primary_failure({1: ABORTED, 0: ABORTED})[0] == 0


def test_an_abort_is_found_in_exception_chains():
    assert follows_from_abort(chained(explicit=True))
    assert follows_from_abort(chained(explicit=False))


def test_a_suppressed_context_does_not_count():
    error = chained(explicit=False)
    error.__suppress_context__ = True
    assert not follows_from_abort(error)


def test_a_cyclic_chain_ends():
    one, other = ValueError("one"), ValueError("other")
    one.__context__, other.__context__ = other, one
    assert not follows_from_abort(one)


def test_an_exception_with_a_failing_text_is_described():
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert "Broken" in one_line(Broken())


def test_only_the_first_line_of_a_message_is_used():
    assert one_line(ValueError("one\ntwo")) == "ValueError: one"


def test_replicas_with_equal_failures_are_listed_together():
    failures: dict[int, BaseException] = {replica: KeyError(replica in (3, 5, 6)) for replica in range(8)}
    failures[4] = ABORTED
    expected = "; replicas 1-2, 7: the same; replicas 3, 5-6 also failed: KeyError: True"
    assert other_failures(failures, raised=0) == expected
