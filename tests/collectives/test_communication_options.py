"""Options of communication: what they take, how they are merged and shown."""

from __future__ import annotations

import copy
import dataclasses
import math
import pickle

import pytest

from ringlet.collectives import CollectiveHints, CommunicationImplementation, CommunicationOptions
from ringlet.errors import InvalidArgumentError

AUTO, RING, NCCL = CommunicationImplementation


def test_nothing_is_asked_for_unless_said():
    options = CommunicationOptions()
    assert (options.bytes_per_pack, options.timeout_seconds, options.implementation) == (0, None, AUTO)
    assert str(options) == (
        "Options(bytes_per_pack=0,timeout_seconds=None, implementation=CommunicationImplementation.AUTO)"
    )


@pytest.mark.parametrize("name", ["RING", "ring", "Ring", RING])
def test_implementations_are_named_in_any_case(name):
    assert CommunicationOptions(implementation=name).implementation is RING


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"bytes_per_pack": -1}, "Argument `bytes_per_pack` must be >=0, Received -1"),
        ({"bytes_per_pack": 1.5}, r"bytes_per_pack is 1\.5: expected a number of bytes"),
        ({"implementation": "bogus"}, "'BOGUS' is not a valid CommunicationImplementation: there are AUTO, RING, NCCL"),
        ({"implementation": 3}, "Argument `implementation` must be instance of .*, got 3 of type int"),
        ({"implementation": None}, "Argument `implementation` must be instance of"),
        ({"timeout_seconds": -2}, "timeout_seconds is -2: expected seconds"),
        ({"timeout_seconds": math.nan}, "timeout_seconds is nan"),
        ({"timeout_seconds": "soon"}, "timeout_seconds is 'soon'"),
    ],
)
def test_what_is_out_of_range_is_refused(arguments, text):
    with pytest.raises(ValueError, match=text):
        CommunicationOptions(**arguments)
    assert issubclass(InvalidArgumentError, ValueError)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        # what one says, what the other says, what is left
        ({}, {}, {}),
        ({"bytes_per_pack": 5}, {}, {"bytes_per_pack": 5}),
        ({"bytes_per_pack": 5}, {"bytes_per_pack": 7}, {"bytes_per_pack": 7}),
        ({"timeout_seconds": 2.0}, {"implementation": "RING"}, {"timeout_seconds": 2.0, "implementation": "RING"}),
        ({"implementation": "RING"}, {"implementation": "NCCL"}, {"implementation": "NCCL"}),
        ({"timeout_seconds": 2.0}, {"timeout_seconds": 3.0}, {"timeout_seconds": 3.0}),
    ],
)
def test_the_other_options_win_where_they_say_something(first, second, expected):
    assert CommunicationOptions(**first).merge(CommunicationOptions(**second)) == CommunicationOptions(**expected)
    assert CommunicationOptions(**first).merge(None) == CommunicationOptions(**first)


def test_options_are_values():
    options = CommunicationOptions(bytes_per_pack=3, implementation="ring")
    assert pickle.loads(pickle.dumps(options)) == copy.deepcopy(options) == options
    assert len({options, CommunicationOptions(3, None, RING)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.bytes_per_pack = 4


def test_hints_are_options_by_an_older_name():
    assert CollectiveHints(5, 2.0) == CommunicationOptions(5, 2.0)
    with pytest.raises(ValueError, match="bytes_per_pack"):
        CollectiveHints(-1)
