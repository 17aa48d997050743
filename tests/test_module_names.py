"""Names of modules that load on first use, and what ``dir`` shows."""

from __future__ import annotations

import re
import sys
import types

import pytest

from ringlet.module_names import MethodOnUse, list_public, load_on_use


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("ringlet.made_up")
    monkeypatch.setitem(sys.modules, "ringlet.made_up", module)
    return module


def test_a_name_is_loaded_once_under_its_own_or_another_name(module):
    assert load_on_use("ringlet", {"made_up": "made_up"})("made_up") is module, "a sub-module stands for itself"
    get = load_on_use("ringlet.made_up", {"Wrong": ".errors.requests:PartitionError", "PartitionError": ".errors"})
    assert get("Wrong") is get("PartitionError") is module.Wrong is module.PartitionError


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("Wrigth", ": write ringlet.made_up.Right"),
        ("right", ": write ringlet.made_up.Right"),
        ("made", ": write m.made"),
        ("maed", ": write m.made"),
        ("Unlike", ""),
        ("_Right", ""),
    ],
)
def test_the_error_of_an_absent_name_proposes_advice_or_the_nearest_name(module, name, remedy):
    module.Right = module._right = 1
    message = f"module 'ringlet.made_up' has no attribute '{name}'{remedy}"
    with pytest.raises(AttributeError, match=rf"^{re.escape(message)}$") as caught:
        load_on_use("ringlet.made_up", {"Right": "right"}, {"made": "write m.made"})(name)
    assert caught.value.name == name


def test_dir_follows_the_public_names(module):
    names = list_public("ringlet.made_up")
    module.__all__ = ["b", "a"]
    assert names() == ["a", "b"]


@pytest.mark.parametrize(
    "use", [lambda base, sub: base.add(base(), 1), lambda base, _: base().add(1), lambda _, sub: sub().add(1)]
)
def test_a_method_loads_when_it_is_first_looked_up_in_its_class_or_a_subclass(module, use):
    class Base:
        add = MethodOnUse("ringlet.made_up")
        make = MethodOnUse("ringlet.made_up", classmethod)

    class Sub(Base):
        def add(self, one):
            return super().add(one)

    module.add, module.make = (lambda self, one: (type(self), one)), (lambda cls: cls)
    assert use(Base, Sub)[1] == 1
    assert vars(Base)["add"] is Base.add is module.add
    assert vars(Sub)["add"] is not module.add
    assert (Sub.make(), Base.make()) == (Sub, Base)
