"""What processes of this one's own use is not taken for what others do."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from bench import beside


class AllBusy:
    """Stands in for `Others`: all cores were busy with something, all the time."""

    def share(self):
        return 1.0


@pytest.fixture
def _clock(monkeypatch):
    """A machine of four cores that are all busy, and on which ten seconds pass between two looks at the clock."""
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(beside, "time", SimpleNamespace(perf_counter=lambda: next(clock)))
    monkeypatch.setattr(beside, "Others", AllBusy)
    monkeypatch.setattr(beside, "usable_cores", lambda: [0, 1, 2, 3])


def used(*seconds):
    """Gives what was used by then: at first, and at last."""
    answers = iter(seconds)
    return lambda: next(answers)


def test_subjects_take_turns_and_the_first_round_is_dropped():
    calls, numbers = [], {name: itertools.count() for name in "ab"}

    def subject(name):
        calls.append(name)
        return next(numbers[name])

    answers, _ = beside.alternate_beside(
        {name: lambda name=name: subject(name) for name in "ab"}, lambda: 0.0, rounds=2
    )
    assert answers == {"a": [1, 2], "b": [1, 2]}
    assert "".join(calls) == "abbaab"


@pytest.mark.usefixtures("_clock")
@pytest.mark.parametrize(
    # seconds used before, and after; part that remains for others
    ("before", "after", "share"),
    [(5.0, 5.0, 1.0), (5.0, 15.0, 0.75), (0.0, 40.0, 0.0), (0.0, 50.0, 0.0), (5.0, 3.0, 1.0)],
)
def test_what_the_own_processes_used_meanwhile_is_not_that_of_others(before, after, share):
    answers, found = beside.alternate_beside({"a": lambda: 1}, used(before, after), rounds=1)
    assert (answers, found) == ({"a": [1]}, share)
