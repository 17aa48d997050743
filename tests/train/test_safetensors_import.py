"""Without the library that checkpoints need, the error says how to install it."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import ringlet
from ringlet.train.safetensors_import import safetensors


def test_a_program_without_the_library_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ModuleNotFoundError, match=r"not installed: pip install 'ringlet\[train\]'") as caught:
        ringlet.train.Checkpoint(a=1).save(tmp_path / "ckpt")
    assert caught.value.name == "safetensors"
    assert list(tmp_path.iterdir()) == []


def test_a_manager_is_refused_when_it_is_created(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'ringlet\[train\]'"):
        ringlet.train.CheckpointManager(ringlet.train.Checkpoint(a=1), tmp_path, max_to_keep=1)


def test_an_older_library_is_named_with_its_version(monkeypatch):
    older = types.ModuleType("safetensors")
    older.__version__ = "0.4.5"
    monkeypatch.setitem(sys.modules, "safetensors", older)
    with pytest.raises(ModuleNotFoundError, match=r"version 0\.4\.5, but checkpoints need 0\.8 or newer"):
        safetensors()


def test_the_library_is_imported_by_the_first_save_only():
    program = (
        "import sys, tempfile, ringlet; checkpoint = ringlet.train.Checkpoint(a=1)\n"
        "assert 'safetensors' not in sys.modules\n"
        "with tempfile.TemporaryDirectory() as folder: checkpoint.save(folder + '/ckpt')\n"
        "assert 'safetensors' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
