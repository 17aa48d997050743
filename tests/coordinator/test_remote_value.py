"""RemoteValue gives what a function has returned, or raises what it has raised, once that is known."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest

from ringlet.coordinator import remote_value
from ringlet.coordinator.remote_value import ABORTED, RemoteFailure, RemoteValue, RemoteValueStatus
from ringlet.errors import CancelledError, FailedPreconditionError
from ringlet.ipc import pack
from ringlet.ipc.remote_exception import failure_of
from tests.coordinator.in_threads import status_in_child


def settled(value):
    made = RemoteValue()
    made._settle(pack(value))
    return made


def test_a_value_is_given_as_often_as_it_is_asked_for():
    value = settled({"a": np.arange(3), "b": None})
    assert value.fetch()["a"] is value.fetch()["a"]
    assert value.get()["b"] is None


def test_threads_that_ask_at_the_same_time_are_given_the_same_value(monkeypatch):
    value, given = settled({"a": 1}), []
    unpack = remote_value.unpack

    def slowly(*arguments):
        if not given:
            given.append(None)
            given.append(value.get())  # as another thread may, meanwhile
        return unpack(*arguments)

    monkeypatch.setattr(remote_value, "unpack", slowly)
    assert value.get() is given[1]


def test_tensors_are_fetched_as_arrays_and_got_as_they_are():
    class Tensor(int):
        def numpy(self):
            return np.int64(self)

    value = RemoteValue()
    value._value, value._status = [Tensor(3)], RemoteValueStatus.READY
    assert type(value.get()[0]) is Tensor
    assert type(value.fetch()[0]) is np.int64


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (float, r"float\(\) does not take 'RemoteValue'"),
        (len, r"len\(\) does not take 'RemoteValue'"),
        (lambda value: value + 1, r"for \+: 'RemoteValue' and 'int'"),
        (lambda value: np.ones(2) - value, r"for -: 'float' and 'RemoteValue'"),
        (lambda value: value[0], "'RemoteValue' object is not subscriptable"),
        (lambda value: value.mean(), "no attribute 'mean'"),
        (lambda value: value.result(), "no attribute 'result'"),
    ],
)
def test_using_it_as_its_value_says_to_fetch_it(use, words):
    with pytest.raises((TypeError, AttributeError), match=rf"{words}: .*Write value\.fetch\(\)"):
        use(RemoteValue())


def test_whoever_waits_is_woken_by_the_value():
    value = RemoteValue._promised()
    found = []
    threads = [threading.Thread(target=lambda: found.append(value.fetch())) for _ in range(3)]
    for thread in threads:
        thread.start()
    value._settle(pack(5))
    for thread in threads:
        thread.join(30)
    assert found == [5, 5, 5]


def test_an_error_of_a_worker_has_its_traceback_as_its_cause_and_is_the_same_every_time():
    value = RemoteValue()
    value._settle(error=RemoteFailure(failure_of(KeyError("weights")), "worker 1"))
    errors = []
    for _ in range(2):
        with pytest.raises(KeyError, match="weights") as caught:
            value.fetch()
        errors.append(caught.value)
    assert errors[0] is errors[1]
    assert "worker 1 raised it" in str(errors[0].__cause__)


def test_what_was_lost_is_aborted_until_it_is_made_again():
    value = settled(3)
    value._settle(error=OSError("gone"), status=RemoteValueStatus.ABORTED)
    with pytest.raises(CancelledError, match=ABORTED) as caught:
        value.fetch()
    assert isinstance(caught.value.__cause__, OSError)
    value._unsettle()
    assert repr(value) == "<RemoteValue NOT_READY>"
    value._settle(pack(4))
    assert value.fetch() == 4


def test_a_forked_child_does_not_wait_for_what_it_will_never_hear_of():
    here, later = settled(3), RemoteValue._promised()

    def use():
        assert here.fetch() == 3
        with pytest.raises(FailedPreconditionError, match=r"not ready when this process \(pid \d+\) was forked"):
            later.fetch()

    with remote_value._lock:  # of a thread that the child does not have
        assert status_in_child(use) == 0


def test_nobody_waits_for_one_that_a_program_has_made_itself():
    for ask in (RemoteValue.fetch, RemoteValue.get):
        with pytest.raises(NotImplementedError, match=r"fetch the return value of ClusterCoordinator\.schedule"):
            ask(RemoteValue())


def test_a_remote_value_cannot_be_pickled():
    with pytest.raises(TypeError, match="fetch"):
        pickle.dumps(RemoteValue())
