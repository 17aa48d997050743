"""Initial values of variables on several workers: those of the chief."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.strategy.multi_worker.cross_worker_ops import first_value_of_chief
from ringlet.values.variables.variable_spec import VariableRequest


class Cluster:
    names = ("/job:chief/task:0", "/job:worker/task:0")


class FakeWorkers:
    """Two workers, of which the other one sends what the test specifies."""

    cluster = Cluster()

    def __init__(self, other, value=None):
        self.other = other
        self.value = value

    def exchange(self, data, what):
        return [data if self.other is None else self.other, data]

    def broadcast(self, value):
        return value if self.value is None else self.value


def test_all_workers_begin_with_the_value_of_the_chief():
    workers = FakeWorkers(None, value="the chief's")
    assert first_value_of_chief(workers, VariableRequest(1.5, name="v")) == "the chief's"


def test_different_variables_are_an_error_that_lists_those_of_each_worker():
    workers = FakeWorkers(b"""["'w' float32[2]", null]""")
    with pytest.raises(ringlet.errors.CollectiveMismatchError) as caught:
        first_value_of_chief(workers, VariableRequest(1.5, name="v"))
    assert "/job:chief/task:0: 'w' float32[2]\n  /job:worker/task:0: 'v' float64[]\n" in str(caught.value)


def test_the_error_of_another_worker_names_it():
    workers = FakeWorkers(b"""["", "OSError: no file"]""")
    with pytest.raises(
        ringlet.errors.CollectiveAborted, match=r"/job:chief/task:0 could not create variable 'v' .*no file"
    ):
        first_value_of_chief(workers, VariableRequest(1.5, name="v"))


def test_an_error_of_this_worker_is_its_own():
    with pytest.raises(ValueError, match="must be specified"):
        first_value_of_chief(FakeWorkers(b"""["'v' float64[]", null]"""), VariableRequest(None, name="v"))


# --- over processes ---------------------------------------------------------------------------------------------------


def test_different_variables_are_an_error_on_all_workers_that_lists_them(workers):
    program = """
        with strategy.scope():
            ringlet.Variable(np.zeros(2 + me), name="v")
    """
    for failure in workers.run(program):
        assert failure.kind == "CollectiveMismatchError"
        assert "/job:worker/task:0: 'v' float64[2]" in failure
        assert "/job:worker/task:1: 'v' float64[3]" in failure


def test_a_failed_initial_value_on_one_worker_is_an_error_on_all_and_the_strategy_stays_usable(workers):
    program = """
        def first():
            if me == 1:
                raise OSError("no such file")
            return 1.0
        with strategy.scope():
            try:
                ringlet.Variable(first, name="v")
            except (OSError, RuntimeError) as error:
                told = f"{type(error).__name__}: {error}"
            answer = [told, ringlet.Variable(2.5).read_value()]
    """
    chief, other = workers.run(program)
    told = "/job:worker/task:1 could not create variable 'v' float64[]: OSError: no such file"
    assert chief == [f"CollectiveAborted: {told}", 2.5]
    assert other == ["OSError: no such file", 2.5]
