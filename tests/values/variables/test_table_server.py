"""What a parameter server does for variables."""

from __future__ import annotations

import os

import pytest

from ringlet import _core
from ringlet.collectives.available_memory import MemoryLeft
from ringlet.errors import InvalidArgumentError, SharedMemoryFullError
from ringlet.ipc.remote_exception import exception_of
from ringlet.values.variables.table_server import TableServer
from tests.processes.harness import descriptors_of


def test_tables_are_kept_until_they_are_forgotten():
    server = TableServer()
    (_, [descriptor]), (_, [other]) = (server.answer(("create", key, (2, 3), "bfloat16")) for key in (1, 2))
    assert _core.Table(descriptor).shape == (2, 3)
    for each in (descriptor, other):
        os.close(each)
    assert server.answer(("forget", [1, 7])) == (("forgotten", 1), [])


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        (("create", 1, (2,), "object"), InvalidArgumentError),
        (("create", 1, (-2,), "float32"), Exception),
        (("create", 1, (1 << 62,), "float32"), Exception),
        (("dance",), ValueError),
    ],
)
def test_what_cannot_be_done_is_answered_with_the_reason(request_, kind):
    (what, failure), descriptors = TableServer().answer(request_)
    assert (what, descriptors) == ("failed", [])
    assert isinstance(exception_of(failure, "/job:ps/task:0"), kind)


def test_what_a_control_group_has_no_memory_for_is_refused_before_any_is_taken(monkeypatch):
    left = MemoryLeft(5 << 20, "control group /job")
    monkeypatch.setattr("ringlet.collectives.available_memory.memory_left", lambda: left)
    (what, failure), _ = TableServer().answer(("create", 1, (6, 1 << 20), "uint8"))
    error = exception_of(failure, "/job:ps/task:0")
    assert (what, type(error)) == ("failed", SharedMemoryFullError)
    assert "a variable of shape (6, 1048576) needs 0.00586 GiB" in str(error)
    assert "control group /job has 0.00488 GiB left" in str(error)


def test_a_table_that_cannot_be_mapped_is_given_back(monkeypatch):
    class Unmappable:
        create = staticmethod(_core.Table.create)

        def __init__(self, descriptor):
            raise OSError("cannot map")

    monkeypatch.setattr(_core, "Table", Unmappable)
    before = descriptors_of()
    assert TableServer().answer(("create", 1, (2,), "float32"))[0][0] == "failed"
    assert descriptors_of() == before
