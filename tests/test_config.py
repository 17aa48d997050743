import json
from pathlib import Path

import pytest

import ringlet
from ringlet.config import _cmake_dir_beside, _collect, cmake_dir


def test_the_table_shows_what_the_dictionary_holds(capsys):
    config = ringlet.show_config("dicts")
    assert ringlet.show_config() is None
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert lines["ringlet"] == ringlet.__version__ == config["version"]
    assert lines["compiler"] == config["compiler"]
    assert lines["cpu"].startswith(config["cpu"]["target"])
    assert lines["cores"] == f"{config['cores']['count']}: {config['cores']['reason']}"
    assert lines["algorithms"] == ", ".join(config["algorithms"])


def test_the_dictionary_is_plain_data():
    config = ringlet.show_config("dicts")
    assert json.loads(json.dumps(config)) == config


def test_the_target_in_use_is_one_that_this_cpu_runs_and_a_portable_one_always_is():
    cpu = ringlet.show_config("dicts")["cpu"]
    assert cpu["target"] in cpu["runnable"]
    assert "portable" in cpu["runnable"]


def test_algorithms_and_operations_are_those_of_the_collectives():
    config = ringlet.show_config("dicts")
    assert config["algorithms"] == [a.name for a in ringlet.collectives.Algorithm]
    assert config["operations"] == [op.name for op in ringlet.collectives.Op]


def test_a_forced_cpu_target_is_given_as_the_reason_and_only_our_variables_are_shown():
    config = _collect({"RINGLET_CPU": "portable", "RINGLET_SECRET": "secret", "PATH": "secret"})
    assert config["cpu"]["reason"] == "RINGLET_CPU=portable"
    assert config["environment"] == {"RINGLET_CPU": "portable", "RINGLET_SECRET": "***"}


def test_an_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(ringlet.errors.InvalidArgumentError, match=r"mode is 'yaml': expected \"stdout\".*\"dicts\""):
        ringlet.show_config("yaml")


def test_the_cmake_package_is_relocatable_and_beside_headers_and_library():
    package = Path(cmake_dir())
    installed = package.parents[2]
    assert (installed / "include/ringlet/collectives/group/group.hpp").exists()
    assert (installed / "lib/libringlet.so").exists()
    texts = [file.read_text(encoding="utf-8") for file in package.glob("*.cmake")]
    assert any("ringlet::ringlet" in text for text in texts)
    assert not any(str(installed.parent) in text for text in texts)


def test_an_installation_without_the_cmake_package_is_an_error_with_a_remedy(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no CMake package: .* has no ringletConfig.cmake\. Install"):
        _cmake_dir_beside(tmp_path / "_core.so")
