"""Report of the uncaught exception that ends a worker to the other workers."""

from __future__ import annotations

import sys

import pytest

import ringlet
from ringlet.strategy.multi_worker import abort_on_crash as module
from ringlet.strategy.multi_worker.abort_on_crash import abort_on_crash, broadcast_crash, describe_crash
from ringlet.strategy.multi_worker.worker_handshake import run_command


class Group:
    def __init__(self):
        self.reasons = []

    def abort(self, reason):
        self.reasons.append(reason)


@pytest.fixture
def shown(monkeypatch):
    """The exceptions that the previous hook received."""
    found = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: found.append(error))
    monkeypatch.setattr(module, "_previous", [])
    return found


def weights():
    return {}["weights"]


def test_the_exception_and_the_line_of_the_program_are_named():
    with pytest.raises(KeyError) as caught:
        weights()
    line = weights.__code__.co_firstlineno + 1
    assert describe_crash(caught.value) == f"raised KeyError: 'weights' in weights ({__file__}:{line})"


@pytest.mark.parametrize("call", [lambda: run_command(None), lambda: ringlet.absent], ids=["strategy", "package"])
def test_lines_of_the_library_are_not_named(call):
    with pytest.raises(AttributeError) as caught:
        call()
    assert f"({__file__}:" in describe_crash(caught.value)


def test_groups_are_aborted_before_the_traceback_is_shown(shown):
    group = Group()
    abort_on_crash(group)
    error = LookupError("the end")
    sys.excepthook(LookupError, error, None)
    assert group.reasons == ["raised LookupError: the end"]
    assert shown == [error]


def test_a_failing_abort_does_not_hide_the_exception(shown):
    class Failing(Group):
        def abort(self, reason):
            raise OSError

    groups = [Failing(), Group()]
    for group in groups:
        abort_on_crash(group)
    sys.excepthook(LookupError, LookupError("the end"), None)
    assert len(shown) == 1
    assert groups[1].reasons == ["raised LookupError: the end"]


def test_a_second_ctrl_c_does_not_hide_the_first(shown, monkeypatch):
    def interrupted(reason):
        raise KeyboardInterrupt

    group = Group()
    monkeypatch.setattr(group, "abort", interrupted)
    abort_on_crash(group)
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert len(shown) == 1


def test_an_exception_can_be_broadcast_without_the_hook(shown):
    group = Group()
    abort_on_crash(group)
    broadcast_crash(LookupError("the end"))
    assert group.reasons == ["raised LookupError: the end"]
    assert shown == []


def test_groups_are_not_kept_alive(shown):
    abort_on_crash(Group())
    sys.excepthook(LookupError, LookupError("the end"), None)
    assert len(shown) == 1
