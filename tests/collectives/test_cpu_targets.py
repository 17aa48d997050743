"""The loops for every CPU target that this machine can run give the same bits, and one can be forced."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ringlet import _core

_DIGEST = """
import hashlib
import numpy as np
from ringlet import _core
from ringlet.collectives import Op, all_reduce_buffers
digest = hashlib.sha256()
for num_ranks in (1, 2, 3, 4, 7, 8, 17):
    for dtype in ("float32", "float64", "int32", "int64"):
        for count in (1, 15, 16, 17, 4097, 300_001):
            random = np.random.default_rng([num_ranks, count])
            inputs = [(random.standard_normal(count) * 1e6).astype(dtype) for _ in range(num_ranks)]
            for op in Op:
                digest.update(all_reduce_buffers(inputs, op).tobytes())
print(_core.cpu_target(), digest.hexdigest())
"""


def run_with(target: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RINGLET_CPU": target}
    command = [sys.executable, "-c", _DIGEST]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=100)


def test_every_target_gives_the_same_bits() -> None:
    digests = set()
    for target in _core.cpu_targets():
        name, digest = run_with(target).stdout.split()
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
