"""The loops for every CPU target that this machine can run give the same bits, and one can be forced."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ringlet import _core

ROOT = Path(__file__).resolve().parents[2]

_DIGEST = """
import hashlib
import importlib.util
from ringlet import _core
from ringlet.collectives import Op, all_reduce_buffers
from ringlet.testing import run_on_ranks
from tests.collectives.contract import DTYPES, KIND_OF, OPERATIONS, bits, inputs_of, special_of
has_ml_dtypes = importlib.util.find_spec("ml_dtypes") is not None
digest = hashlib.sha256()
for dtype in DTYPES:
    if KIND_OF[dtype] == "narrow" and not has_ml_dtypes:
        continue
    for num_ranks in (1, 2, 3, 4, 7, 8, 17):
        for count in (1, 15, 33, 4097):
            for make in (inputs_of, special_of):
                inputs = make(num_ranks, count, dtype)
                for op in OPERATIONS[KIND_OF[dtype]]:
                    digest.update(bits(all_reduce_buffers(inputs, op, workers=1)))
    inputs = special_of(3, 60_001, dtype)
    for op in OPERATIONS[KIND_OF[dtype]]:
        digest.update(bits(all_reduce_buffers(inputs, op)))
        if op is not Op.MEAN:
            for result in run_on_ranks(3, lambda m: m.exclusive_scan(inputs[m.rank][:5001], op)):
                digest.update(bits(result))
print(_core.cpu_target(), digest.hexdigest())
"""


def run_with(target: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RINGLET_CPU": target}
    command = [sys.executable, "-c", _DIGEST]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100)


@pytest.mark.slow
def test_every_target_gives_the_same_bits() -> None:
    digests = set()
    for target in _core.cpu_targets():
        done = run_with(target)
        assert done.returncode == 0, done.stderr
        name, digest = done.stdout.split()
        assert name == target
        digests.add(digest)
    assert len(digests) == 1


def test_the_portable_target_is_always_there() -> None:
    assert _core.cpu_targets()[-1] == "portable"
    assert _core.cpu_target() in _core.cpu_targets()


@pytest.mark.parametrize("target", ["sse9", "AVX2"])
def test_an_impossible_target_stops_the_import_and_names_the_possible_ones(target: str) -> None:
    message = run_with(target).stderr
    assert f"RINGLET_CPU is '{target}', which this CPU or this build cannot run" in message
    assert "portable" in message
