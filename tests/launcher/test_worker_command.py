"""The command that each worker runs."""

from __future__ import annotations

import sys

import pytest

from ringlet.launcher.command_line import CommandError
from ringlet.launcher.commands.run_command import module_command, script_command


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("raise SystemExit('imported')", encoding="utf-8")


def test_a_script_is_run_by_the_interpreter_of_the_launcher():
    assert script_command(["train.py", "-n", "3"]) == [sys.executable, "train.py", "-n", "3"]


def test_a_folder_with_a_main_file_is_a_script(tmp_path):
    (tmp_path / "package" / "__main__.py").touch()
    assert script_command(["package"]) == [sys.executable, "package"]


@pytest.mark.parametrize("name", ["package", "package.part", "train", "json.tool", "sys"])
def test_a_module_is_not_imported_to_see_whether_it_is_there(name):
    assert module_command([name, "x"]) == [sys.executable, "-m", name, "x"]


def test_an_unknown_option_is_not_taken_for_a_script():
    with pytest.raises(CommandError, match="'-x' is not an option of ringlet run"):
        script_command(["-x"])
