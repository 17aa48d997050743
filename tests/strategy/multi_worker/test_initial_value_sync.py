"""First values of variables, which are the chief's."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.strategy.multi_worker.initial_value_sync import first_value_of_chief
from ringlet.values.variables.variable_spec import VariableRequest


class Cluster:
    names = ("/job:chief/task:0", "/job:worker/task:0")


class FakeWorkers:
    """Two workers of which the other one says what it is told to."""

    cluster = Cluster()

    def __init__(self, other, value=None):
        self.other = other
        self.value = value

    def exchange(self, data, what):
        return [data if self.other is None else self.other, data]

    def broadcast(self, value):
        return value if self.value is None else self.value


def test_all_begin_with_what_the_chief_sends():
    workers = FakeWorkers(None, value="the chief's")
    assert first_value_of_chief(workers, VariableRequest(1.5, name="v")) == "the chief's"


def test_variables_of_other_names_shapes_or_dtypes_are_told_with_who_made_which():
    workers = FakeWorkers(b"""["'w' float32[2]", null]""")
    with pytest.raises(ringlet.errors.CollectiveMismatchError) as caught:
        first_value_of_chief(workers, VariableRequest(1.5, name="v"))
    assert "/job:chief/task:0: 'w' float32[2]\n  /job:worker/task:0: 'v' float64[]\n" in str(caught.value)


def test_the_error_of_another_worker_is_told_with_its_name():
    workers = FakeWorkers(b"""["", "OSError: no file"]""")
    with pytest.raises(
        ringlet.errors.CollectiveAborted, match=r"/job:chief/task:0 could not make variable 'v' .*no file"
    ):
        first_value_of_chief(workers, VariableRequest(1.5, name="v"))


def test_an_error_of_this_worker_is_its_own():
    with pytest.raises(ValueError, match="must be specified"):
        first_value_of_chief(FakeWorkers(b"""["'v' float64[]", null]"""), VariableRequest(None, name="v"))


# --- over processes ---------------------------------------------------------------------------------------------------


def test_workers_that_make_different_variables_all_hear_what_each_made(workers):
    program = """
        with strategy.scope():
            ringlet.Variable(np.zeros(2 + me), name="v")
    """
    for failure in workers.run(program):
        assert failure.kind == "CollectiveMismatchError"
        assert "/job:worker/task:0: 'v' float64[2]" in failure
        assert "/job:worker/task:1: 'v' float64[3]" in failure


def test_a_first_value_that_one_worker_cannot_make_is_an_error_on_all_and_the_strategy_goes_on(workers):
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
    told = "/job:worker/task:1 could not make variable 'v' float64[]: OSError: no such file"
    assert chief == [f"CollectiveAborted: {told}", 2.5]
    assert other == ["OSError: no such file", 2.5]
