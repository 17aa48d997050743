"""Type checkers know what the components of a distributed value are."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """\
import numpy as np
import numpy.typing as npt
from ringlet.compat import tf
from ringlet.values import DistributedValues, Mirrored, PerReplica

def total(losses: PerReplica[float]) -> float:
    return sum(losses.values)

def names(values: DistributedValues[object]) -> list[str]:
    return [str(value) for value in values.values]

losses = PerReplica([0.25, 0.5])
weights: Mirrored[npt.NDArray[np.float32]] = Mirrored([np.zeros(2, np.float32)] * 2)
reveal_type(losses)
reveal_type(losses.values[0])
reveal_type(weights.component(0).sum())
total(losses)
elements = tf.data.Dataset.range(3).batch(2)
names(losses)  # a PerReplica of floats is a value of objects
total(PerReplica(["a", "b"]))
losses.values[0].upper()
losses.values = (1.0, 2.0)
"""


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
@pytest.mark.timeout(300)
def test_a_program_is_checked_with_the_types_of_its_components(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", str(program)],
        capture_output=True, text=True, timeout=280, check=False, cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(ROOT / "python")},
    )  # fmt: skip
    said = re.findall(r"^program\.py:(\d+): (\w+): (.*)$", checked.stdout, re.MULTILINE)
    lines = PROGRAM.splitlines()
    found = [(lines[int(number) - 1], kind, text) for number, kind, text in said]
    revealed = [text for line, kind, text in found if kind == "note" and line.startswith("reveal_type")]
    assert len(revealed) == 3, checked.stdout + checked.stderr
    assert re.search(r'"ringlet\.values\.per_replica\.PerReplica\[(builtins\.)?float\]"', revealed[0])
    assert re.search(r'"(builtins\.)?float"', revealed[1])
    wrong = [line for line, kind, _ in found if kind == "error"]
    assert set(wrong) == {'total(PerReplica(["a", "b"]))', "losses.values[0].upper()", "losses.values = (1.0, 2.0)"}
