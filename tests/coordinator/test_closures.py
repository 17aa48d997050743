"""A closure gives its value to who holds it, and to nobody else."""

from __future__ import annotations

import pytest

from ringlet.coordinator.argument_codec import Payload, SentFunction
from ringlet.coordinator.closures import Closure
from ringlet.coordinator.remote_value import RemoteValue
from ringlet.errors import CancelledError
from ringlet.ipc import pack

FUNCTION = SentFunction(Payload(b""), "step", "")


def test_who_holds_the_value_is_told():
    values = [RemoteValue() for _ in range(3)]
    closures = [Closure(number, FUNCTION, None, value) for number, value in enumerate(values)]
    closures[0].finish(pack(5))
    closures[1].fail(KeyError("weights"))
    closures[2].cancel()
    assert values[0].fetch() == 5
    with pytest.raises(KeyError):
        values[1].fetch()
    with pytest.raises(CancelledError):
        values[2].fetch()


def test_a_value_that_nobody_holds_is_dropped():
    closure = Closure(0, FUNCTION, None, RemoteValue())
    closure.finish(pack(5))
    closure.cancel()


def test_closures_are_ordered_by_their_scheduling():
    first, second = (Closure(number, FUNCTION, None, RemoteValue()) for number in (1, 2))
    assert first < second
