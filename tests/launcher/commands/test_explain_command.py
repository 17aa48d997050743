"""``ringlet explain``: what the names of errors stand for."""

from __future__ import annotations

from types import ModuleType

import pytest

import ringlet
from ringlet.launcher.command_line import WRONG_USE, main


def test_without_a_name_all_errors_are_listed(capsys):
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ringlet.errors.__all__
    assert max(map(len, lines)) <= 140


@pytest.mark.parametrize("name", ["WorkerLostError", "ringlet.errors.WorkerLostError:", "workerlosterror"])
def test_a_name_as_a_traceback_shows_it_is_described(capsys, name):
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith("ringlet.errors.WorkerLostError, a kind of UnavailableError\n\nThe process of another rank")
    assert "Usual causes: " in text


@pytest.mark.parametrize("name", ringlet.errors.__all__)
def test_the_description_is_plain_text(capsys, name):
    assert main(["explain", name]) == 0
    text = capsys.readouterr().out
    assert ":func:" not in text
    assert ":class:" not in text


def test_the_exceptions_of_all_public_modules_are_listed():
    public = [
        ringlet,
        *(getattr(ringlet, name) for name in dir(ringlet) if isinstance(getattr(ringlet, name), ModuleType)),
    ]
    assert len(public) > 10
    found = {name for module in public for name in dir(module) if is_exception(getattr(module, name))}
    assert found <= {*ringlet.errors.__all__}


def is_exception(value):
    return isinstance(value, type) and issubclass(value, BaseException)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("WorkerLost", "did you mean WorkerLostError?"),
        ("KeyError", "it is an exception of Python: see its message, and the last frame of the traceback"),
        ("print", "`ringlet explain` lists all errors"),
        ("x" * 500, "`ringlet explain` lists all errors"),
    ],
)
def test_another_name_is_an_error_with_the_remedy(capsys, name, remedy):
    assert main(["explain", name]) == WRONG_USE
    assert capsys.readouterr().err == f"ringlet explain: {name[:40]!r} is not an error of ringlet; {remedy}\n"
