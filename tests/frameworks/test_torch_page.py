"""The programs of docs/torch.md for Horovod's users, Accelerate, Lightning and Keras run as printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ringlet.cluster.environment import VARIABLES
from tests.frameworks.libraries import library

library("torch")

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "module", "expected"),
    [
        ("From Horovod", "torch", "rank {} of 2: loss "),
        ("Accelerate", "accelerate", "rank {} of 2: 2 batches"),
        ("Lightning", "lightning", "rank {} of 2: 2 steps"),
        ("Keras 3", "keras", "rank {} of 2: equal weights True"),
    ],
)
def test_a_program_of_the_page_runs_under_torchrun(section, module, expected, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    library(module)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    script = tmp_path / "train.py"
    program = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0].split("```py\n")[1].split("```")[0]
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    for rank in range(2):
        assert expected.format(rank) in ended.stdout, ended.stdout + ended.stderr
    assert ended.returncode == 0
