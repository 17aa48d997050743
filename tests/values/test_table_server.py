"""What a parameter server does for variables."""

from __future__ import annotations

import os

import pytest

from ringlet import _core
from ringlet.errors import InvalidArgumentError
from ringlet.processes.failures import exception_of
from ringlet.values.table_server import TableServer


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
