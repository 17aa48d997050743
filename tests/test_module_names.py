"""Names of modules that load on first use, and what ``dir`` shows."""

from __future__ import annotations

import sys
import types

import pytest

from ringlet.module_names import list_public, load_on_use


@pytest.fixture
def module(monkeypatch):
    module = types.ModuleType("ringlet.made_up")
    monkeypatch.setitem(sys.modules, "ringlet.made_up", module)
    return module


def test_a_name_is_loaded_once_under_its_own_or_another_name(module):
    assert load_on_use("ringlet", {"made_up": "made_up"})("made_up") is module, "a sub-module stands for itself"
    get = load_on_use("ringlet.made_up", {"Wrong": ".errors.requests:PartitionError", "PartitionError": ".errors"})
    assert get("Wrong") is get("PartitionError") is module.Wrong is module.PartitionError


def test_an_unknown_name_is_an_attribute_error_that_python_can_complete(module):
    with pytest.raises(AttributeError, match=r"module 'ringlet.made_up' has no attribute 'Wrong'") as caught:
        load_on_use("ringlet.made_up", {"Right": "right"})("Wrong")
    assert (caught.value.name, caught.value.obj) == ("Wrong", module)


def test_dir_follows_the_public_names(module):
    names = list_public("ringlet.made_up")
    module.__all__ = ["b", "a"]
    assert names() == ["a", "b"]
