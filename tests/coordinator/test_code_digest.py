"""A digest tells functions with other code apart, in any process."""

from __future__ import annotations

import functools
import importlib
import subprocess
import sys

import pytest

from ringlet.coordinator.code_digest import code_digest

BODY = "import functools\ndef step(x):\n    return x in {'a', 'b', 'c'} and [y + 1 for y in x]\n"


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Loads a module from its text."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the next text may have the same size and time

    def load_text(text, name="module_of_a_job"):
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        sys.modules.pop(name, None)
        return importlib.import_module(name)

    yield load_text
    sys.modules.pop("module_of_a_job", None)


def test_the_same_code_has_the_same_digest_in_every_process(load, tmp_path):
    program = (
        "from module_of_a_job import step; from ringlet.coordinator.code_digest import code_digest as d; print(d(step))"
    )
    expected = code_digest(load(BODY).step)
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "11"}
    found = subprocess.check_output([sys.executable, "-c", program], env=environment, text=True, timeout=60)
    assert found.strip() == expected


@pytest.mark.parametrize(("old", "new"), [("+ 1", "+ 2"), ("'c'", "'d'"), ("[y", "[-y"), ("y + 1", "x")])
def test_other_code_has_another_digest(load, old, new):
    expected = code_digest(load(BODY).step)
    assert code_digest(load(BODY.replace(old, new), "module_of_a_job").step) != expected


def test_what_is_wrapped_counts(load):
    module = load(BODY + "@functools.lru_cache\ndef cached(x):\n    return x + 1\n")
    assert code_digest(module.cached) == code_digest(module.cached.__wrapped__) != ""


def test_there_is_none_of_what_was_not_loaded_from_a_file():
    for function in (len, functools.partial(len), exec, lambda: 1):  # pytest rewrites this module
        assert code_digest(function) == ""
