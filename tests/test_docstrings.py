"""Every public name has a docstring with its result and an example; every example in the package runs."""

from __future__ import annotations

import doctest
import enum
import importlib.util
import inspect
import pkgutil
import re
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import ringlet

DOCTEST_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
# These require torch and Ray: tests/frameworks runs them.
OPTIONAL = ("torch", "ray")
MODULES = [m.name for m in pkgutil.walk_packages(ringlet.__path__, "ringlet.") if m.name.split(".")[1] not in OPTIONAL]
MODULES.append("ringlet")


def files_of(module: str) -> Iterator[Path]:
    """The files that may hold examples of a module: classes of ringlet.errors, for example, are in modules below it."""
    origin = Path(importlib.util.find_spec(module).origin)
    yield from origin.parent.glob("*.py") if origin.name == "__init__.py" else [origin]


WITH_EXAMPLES = [name for name in MODULES if any(b">>>" in path.read_bytes() for path in files_of(name))]


def public_names() -> Iterator[tuple[str, object]]:
    """Name and object of everything public: the names of ringlet and of its public sub-modules."""
    for name in dir(ringlet):
        value = getattr(ringlet, name)
        if isinstance(value, types.ModuleType):
            yield from ((f"{name}.{inner}", getattr(value, inner)) for inner in value.__all__)
        else:
            yield name, value


# Constants have no docstring of their own.
PUBLIC = [(name, value) for name, value in public_names() if callable(value)]


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


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_every_example_of_a_module_runs(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    results = doctest.testmod(importlib.import_module(module), optionflags=DOCTEST_FLAGS)
    assert results.failed == 0, "see the captured output"
    assert results.attempted or module != "ringlet.errors"


def test_every_public_name_has_a_docstring_with_an_example():
    assert [name for name, value in PUBLIC if not value.__doc__] == []
    find = doctest.DocTestFinder(exclude_empty=True).find
    without = [name for name, value in PUBLIC if not any(test.examples for test in find(value, name))]
    assert without == [], "neither these nor a member of them show an example (>>>)"


def test_every_parameter_of_a_public_name_is_documented():
    missing = {name: parameters(value) - documented_parameters(inspect.getdoc(value) or "") for name, value in PUBLIC}
    assert {name: left for name, left in missing.items() if left} == {}, "the section Parameters leaves these out"


def test_every_public_function_that_returns_something_says_what():
    functions = [(name, value) for name, value in PUBLIC if inspect.isfunction(value)]
    returning = [
        (n, value) for n, value in functions if inspect.signature(value).return_annotation not in (None, "None")
    ]
    says = re.compile(r"^(Returns|Yields)\n-+$", re.MULTILINE)
    assert returning
    assert [name for name, value in returning if not says.search(inspect.getdoc(value) or "")] == []


def test_every_public_member_of_a_public_class_has_a_docstring():
    members = [
        (f"{name}.{member}", getattr(value, member))
        for name, value in PUBLIC
        if inspect.isclass(value)
        for owner in value.__mro__
        if owner.__module__.startswith("ringlet")
        for member in vars(owner)
        if not member.startswith("_")
    ]
    described = (types.FunctionType, property)
    assert [member for member, found in members if isinstance(found, described) and not inspect.getdoc(found)] == []
