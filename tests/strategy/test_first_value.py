"""First values of variables, which are the chief's."""

from __future__ import annotations

import pytest

import ringlet
from ringlet.strategy.first_value import first_value_of_chief
from ringlet.values.variable_spec import VariableRequest


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
