"""``ringlet run`` starts programs of ``torch.distributed``; a rank beyond the size of the world is refused at once."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from ringlet.cluster.environment import VARIABLES
from tests.frameworks.libraries import library

torch = library("torch")

PROGRAM = """
import torch
import torch.distributed as dist
import ringlet.torch

dist.init_process_group("ringlet")
x = torch.ones(1)
dist.all_reduce(x)
print(dist.get_rank(), int(x))
dist.destroy_process_group()
"""


def test_the_launcher_starts_a_program_of_torch_distributed(tmp_path, monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    script = tmp_path / "sum.py"
    script.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "ringlet", "run", "-n", "2", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert sorted(ended.stdout.splitlines()) == ["[w0] 0 2", "[w1] 1 2"], ended.stderr


def test_a_rank_beyond_the_size_is_refused_at_once():
    import ringlet.torch  # noqa: F401

    store = torch.distributed.HashStore()
    with pytest.raises(ValueError, match="rank 2 is not in a group of 2: number the ranks from 0 to 1"):
        torch.distributed.init_process_group("ringlet", rank=2, world_size=2, store=store, timeout=timedelta(minutes=9))


FAILURES = {
    "dist.all_reduce(torch.ones(2 + rank))": (
        "DistBackendError: CollectiveMismatchError: the ranks did not make the same call",
        "File ",
    ),
    "os.kill(os.getpid(), 9) if rank else dist.barrier()": (
        "worker 0 failed because of it: torch.distributed.DistBackendError: WorkerLostError: rank 1 ",
        "worker 1 of 2 was killed by SIGKILL",
    ),
}


@pytest.mark.parametrize(("call", "expected"), FAILURES.items())
def test_an_error_is_printed_once_and_names_that_of_the_manual(call, expected, tmp_path, monkeypatch):
    for name in (*VARIABLES, "PYTEST_CURRENT_TEST"):  # under pytest, tracebacks are whole
        monkeypatch.delenv(name, raising=False)
    script = tmp_path / "fails.py"
    script.write_text(
        "import os, torch, torch.distributed as dist\nimport ringlet.torch\n"
        f"dist.init_process_group('ringlet')\nrank = dist.get_rank()\ndist.barrier()\n{call}\n"
    )
    command = [sys.executable, "-m", "ringlet", "run", "-n", "2", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode != 0
    for text in expected:
        assert text in ended.stderr
    assert ended.stderr.count("Traceback (most") <= 1
    assert "ringlet/torch/works.py" not in ended.stderr
