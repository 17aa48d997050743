"""Every public name has a docstring with its result and an example; every example in the package runs."""

from __future__ import annotations

import doctest
import enum
import importlib
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator

import pytest

import ringlet

DOCTEST_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# These require torch and Ray: tests/frameworks runs them.
OPTIONAL = ("torch", "ray")
MODULES = [m.name for m in pkgutil.walk_packages(ringlet.__path__, "ringlet.") if m.name.split(".")[1] not in OPTIONAL]
MODULES.append("ringlet")


def public_names() -> Iterator[tuple[str, object]]:
    """Name and object of everything public: the names of ringlet and of its public sub-modules."""
    for name in dir(ringlet):
        value = getattr(ringlet, name)
        if isinstance(value, types.ModuleType):
            yield from ((f"{name}.{inner}", getattr(value, inner)) for inner in value.__all__)
        else:
            yield name, value


# Constants have no docstring of their own.
PUBLIC = [pytest.param(name, value, id=name) for name, value in public_names() if callable(value)]
CLASSES = [case for case in PUBLIC if inspect.isclass(case.values[1])]


def documented_parameters(docstring: str) -> set[str]:
    """The names in the Parameters section of a numpydoc docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^(\S[^:\n]*?)\s*(?::|$)", section.group(1), re.MULTILINE) if section else []
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def is_made_by_users(value: type) -> bool:
    """Whether users call the class: False if its docstring says how instances are created ("Returned by ...")."""
    if issubclass(value, (enum.Enum, BaseException)):
        return False
    introduction = re.split(r"\n\s*-{3,}", value.__doc__ or "")[0]
    return not re.search(r"([Mm]ade|[Cc]reated|[Rr]eturned) by", introduction)


def parameters(value: object) -> set[str]:
    """The parameters that a caller of a function or class may pass."""
    if inspect.isclass(value) and not is_made_by_users(value):
        return set()
    return set(inspect.signature(value).parameters) - {"self", "cls"}


@pytest.mark.parametrize("module", MODULES)
def test_every_example_of_a_module_runs(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    results = doctest.testmod(importlib.import_module(module), optionflags=DOCTEST_FLAGS)
    assert results.failed == 0, "see the captured output"


@pytest.mark.parametrize(("name", "value"), PUBLIC)
def test_every_public_name_has_a_docstring_with_an_example(name, value):
    assert value.__doc__, f"{name} has no docstring"
    tests = doctest.DocTestFinder(exclude_empty=True).find(value, name)
    assert any(test.examples for test in tests), f"neither {name} nor a member of it shows an example (>>>)"


@pytest.mark.parametrize(("name", "value"), PUBLIC)
def test_every_parameter_of_a_public_name_is_documented(name, value):
    missing = parameters(value) - documented_parameters(inspect.getdoc(value) or "")
    assert not missing, f"{name}: the section Parameters leaves out {sorted(missing)}"


@pytest.mark.parametrize(("name", "value"), [c for c in PUBLIC if inspect.isfunction(c.values[1])])
def test_every_public_function_that_returns_something_says_what(name, value):
    if inspect.signature(value).return_annotation not in (None, "None"):
        assert re.search(r"^(Returns|Yields)\n-+$", inspect.getdoc(value) or "", re.MULTILINE), name


@pytest.mark.parametrize(("name", "value"), CLASSES)
def test_every_public_member_of_a_public_class_has_a_docstring(name, value):
    members = (
        (f"{name}.{member}", getattr(value, member))
        for owner in value.__mro__
        if owner.__module__.startswith("ringlet")
        for member in vars(owner)
        if not member.startswith("_")
    )
    described = (types.FunctionType, property)
    missing = [member for member, found in members if isinstance(found, described) and not inspect.getdoc(found)]
    assert not missing, f"no docstring: {missing}"
