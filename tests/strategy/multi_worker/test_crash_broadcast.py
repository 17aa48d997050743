"""What a process that an exception ends tells the others."""

from __future__ import annotations

import sys

import pytest

from ringlet.strategy.multi_worker import crash_broadcast
from ringlet.strategy.multi_worker.crash_broadcast import described, say_last_words, tell_others
from ringlet.strategy.multi_worker.worker_handshake import run_command


class Listener:
    def __init__(self):
        self.told = []

    def abort(self, reason):
        self.told.append(reason)


@pytest.fixture
def shown(monkeypatch):
    """The exceptions that the hook before ours was given."""
    found = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: found.append(error))
    monkeypatch.setattr(crash_broadcast, "_previous", [])
    return found


def weights():
    return {}["weights"]


def test_the_exception_and_the_line_of_the_program_are_told():
    with pytest.raises(KeyError) as caught:
        weights()
    line = weights.__code__.co_firstlineno + 1
    assert described(caught.value) == f"raised KeyError: 'weights' in weights ({__file__}:{line})"


def test_lines_of_this_library_are_not_those_of_the_program():
    with pytest.raises(AttributeError) as caught:
        run_command(None)
    assert f"({__file__}:" in described(caught.value)


def test_listeners_hear_before_the_traceback_is_shown(shown):
    listener = Listener()
    say_last_words(listener)
    error = LookupError("the end")
    sys.excepthook(LookupError, error, None)
    assert listener.told == ["raised LookupError: the end"]
    assert shown == [error]


def test_a_listener_that_fails_does_not_hide_the_exception(shown):
    class Failing(Listener):
        def abort(self, reason):
            raise OSError

    listeners = [Failing(), Listener()]
    for listener in listeners:
        say_last_words(listener)
    sys.excepthook(LookupError, LookupError("the end"), None)
    assert len(shown) == 1
    assert listeners[1].told == ["raised LookupError: the end"]


def test_programs_that_show_their_exceptions_themselves_may_tell_them(shown):
    listener = Listener()
    say_last_words(listener)
    tell_others(LookupError("the end"))
    assert listener.told == ["raised LookupError: the end"]
    assert shown == []


def test_listeners_are_not_kept_alive(shown):
    say_last_words(Listener())
    sys.excepthook(LookupError, LookupError("the end"), None)
    assert len(shown) == 1
