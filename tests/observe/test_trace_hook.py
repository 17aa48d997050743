"""How a trace is opened, and that its absence costs nothing."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.errors import FailedPreconditionError
from ringlet.observe import trace_hook
from ringlet.strategy.replica.replica_context import traced_on_replicas


def test_without_a_trace_functions_are_called_as_they_are():
    assert trace_hook.current is None
    assert traced_on_replicas(len) is len


def test_one_trace_is_open_at_a_time(tmp_path):
    with ringlet.observe.trace(tmp_path):
        with (
            pytest.raises(FailedPreconditionError, match=r"is being traced to .* already: open one trace at a time"),
            ringlet.observe.trace(tmp_path),
        ):
            pass
        assert trace_hook.current is not None
    with ringlet.observe.trace(tmp_path):
        pass
    assert len(list(tmp_path.iterdir())) == 2


def test_errors_of_traced_functions_are_those_of_the_functions(tmp_path):
    strategy = ringlet.MirroredStrategy(2)

    def step():
        raise KeyError("mine")

    with ringlet.observe.trace(tmp_path), pytest.raises(KeyError, match="mine"):
        strategy.run(step)
