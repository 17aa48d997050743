"""A checkpoint takes every object for one kind, or says why it cannot be saved."""

from __future__ import annotations

import collections
import enum

import numpy as np
import pytest

from ringlet import Variable
from ringlet.train import Checkpoint
from ringlet.train.trackable_types import Kind, children_of, holds_state, kind_name, kind_of_object, refusal
from tests.train.objects import Counter, Frozen, Model, Point, Settings


class Both(Counter, Model):
    """Has get_state and state_dict."""


KINDS = [
    # object, kind
    (True, Kind.BOOL),
    (np.True_, Kind.SCALAR),
    (np.float64(1), Kind.SCALAR),
    (np.rec.array([1.5]), Kind.ARRAY),
    (collections.OrderedDict(), Kind.DICT),
    (Point(1, 2), Kind.NAMEDTUPLE),
    (Settings(0.1, []), Kind.DATACLASS),
    (Frozen(0.1), Kind.DATACLASS),
    (Checkpoint(), Kind.GROUP),
    (Variable(1.0), Kind.VARIABLE),
    (Counter(), Kind.STATE),
    (Model(1.0), Kind.STATE_DICT),
    (Both(), Kind.STATE),
    (np.random.RandomState(0), Kind.STATE),
    (Counter, None),
    (Settings, None),
    (collections.deque(), None),
    (object(), None),
]


@pytest.mark.parametrize(("value", "kind"), KINDS, ids=lambda value: type(value).__name__)
def test_every_object_is_of_one_kind(value, kind):
    assert kind_of_object(value) is kind


def test_a_dataclass_has_its_fields_and_a_namedtuple_too():
    assert list(children_of(Settings(0.1, [2]), Kind.DATACLASS)) == [("rate", 0.1), ("names", [2])]
    assert list(children_of(Point(1, 2), Kind.NAMEDTUPLE)) == [("x", 1), ("y", 2)]


def test_what_contains_itself_or_is_shared_often_is_looked_at_once():
    ring, ladder = [], [1]
    ring += [ring, ring]
    for _ in range(60):
        ladder = [ladder, ladder]
    assert not holds_state(ring)
    assert not holds_state(ladder)
    ring.append({"deep": (Counter(),)})
    assert holds_state(ring)


def test_kinds_are_called_by_words_with_their_article():
    assert [kind_name(kind) for kind in (Kind.NONE, Kind.INT, Kind.STATE, Kind.DICT)] == [
        "None", "an int", "an object with get_state", "a dict",
    ]  # fmt: skip


def test_a_refusal_says_what_to_do():
    colour = enum.Enum("Colour", ["RED"])
    assert "save its value, and look up the member" in refusal(colour.RED, "c")
    assert "save its data and its mask" in refusal(np.ma.array([1]), "m")
    assert "Define such methods in the class" in refusal(object(), "o")
    assert len(refusal({object(): "x" * 1000}, "o")) < 700
