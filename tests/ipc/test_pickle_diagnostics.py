"""What is at fault where something cannot be pickled."""

from __future__ import annotations

import functools
import threading

import pytest

from ringlet.ipc.pickle_codec import _can_be_sent
from ringlet.ipc.pickle_diagnostics import culprit, named

pytest.importorskip("cloudpickle")

LOCK = threading.Lock()


class Keeper:
    def __init__(self, lock):
        self.lock = lock

    def step(self):
        return self.lock


class Refusing(Keeper):
    def __reduce__(self):
        raise TypeError("cannot pickle it: make another one")


def uses_a_global():
    def inner():
        return LOCK

    return inner()


def with_a_default(lock=LOCK):
    return lock


def with_a_variable():
    mine = threading.Lock()
    return lambda: mine


def not_assigned_yet():
    def inner():
        return later, LOCK

    yield inner
    later = 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        # value, what is said of it
        (LOCK, "an object of class lock"),
        ([1, {"a": LOCK}], "[1]['a'] (an object of class lock)"),
        ({2: (0, LOCK)}, "[2][1] (an object of class lock)"),
        (Keeper([0, LOCK]), "[1], in attribute 'lock' of an object of class Keeper (an object of class lock)"),
        ([Refusing(LOCK)], "[0] (an object of class Refusing)"),
        (Keeper(LOCK), "attribute 'lock' of an object of class Keeper (an object of class lock)"),
        (
            Keeper(LOCK).step,
            "attribute 'lock' of an object of class Keeper, in the object of method Keeper.step "
            "(an object of class lock)",
        ),
        (functools.partial(max, LOCK), "[0], in args of a partial (an object of class lock)"),
        (with_a_variable(), "variable 'mine' of with_a_variable.<locals>.<lambda> (an object of class lock)"),
    ],
)
def test_the_innermost_object_is_named_with_its_place_and_the_outermost_one(value, text):
    assert culprit(value, _can_be_sent) == text


@pytest.mark.parametrize(
    ("function", "text"),
    [
        # function, pickled by value as those of scripts are; what is said of it
        (uses_a_global, "variable 'LOCK' of uses_a_global"),
        (with_a_default, "a default of with_a_default"),
        (next(not_assigned_yet()), "variable 'LOCK' of not_assigned_yet.<locals>.inner"),
    ],
)
def test_what_a_function_uses_is_looked_into(function, text):
    assert culprit(function, lambda value: value is not function and value is not LOCK).startswith(text)


def test_an_object_that_contains_itself_is_looked_into_once():
    items = [LOCK]
    items.insert(0, items)
    assert culprit(items, _can_be_sent) == "[1] (an object of class lock)"


def test_functions_and_classes_have_names_and_objects_those_of_their_classes():
    assert (named(Keeper), named(Keeper.step), named(3)) == ("Keeper", "Keeper.step", "an object of class int")


def test_functions_that_travel_by_name_are_not_looked_into():
    function = with_a_variable()
    assert culprit([function], _can_be_sent, sends_code=False) == f"[0] ({function.__qualname__})"
