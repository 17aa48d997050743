"""How a trace is opened, and what its absence costs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import ringlet
from ringlet.errors import FailedPreconditionError
from ringlet.observe import trace_hook


def test_without_a_trace_nothing_is_loaded_that_writes_one():
    code = """
import sys, ringlet
strategy = ringlet.MirroredStrategy(2)
strategy.run(lambda: ringlet.replica_context().all_reduce("SUM", 1.0))
list(ringlet.data.Dataset.range(3))
assert ringlet.observe.trace_hook.current is None
assert "ringlet.observe.trace_file" not in sys.modules
"""
    environment = {name: value for name, value in os.environ.items() if name != "RINGLET_TRACE"}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=100, env=environment)


def test_one_trace_is_open_at_a_time(tmp_path):
    with ringlet.observe.trace(tmp_path):
        with (
            pytest.raises(FailedPreconditionError, match=r"is already being traced to .*: close that trace first"),
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
