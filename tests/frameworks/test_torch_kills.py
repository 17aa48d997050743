"""Ranks of DistributedDataParallel that are killed at random; ``python -m tests.chaos torch`` kills more."""

from __future__ import annotations

import os
import sys

import pytest

from tests.frameworks.libraries import library
from tests.processes.harness import Processes

library("torch")

KILLS = max(int(os.environ.get("RINGLET_KILLS", "100")) * 6 // 100, 1)

DRIVER = """
from tests.chaos import run

tell(run("torch", int(sys.argv[1])))
"""


@pytest.mark.timeout(600)
def test_the_other_ranks_name_the_killed_one_and_leave_nothing():
    with Processes() as processes:
        path = os.pathsep.join(sys.path)  # torch may be in a folder of its own
        wrong = processes.start(DRIVER, KILLS, environ={"PYTHONPATH": path}).told(600)
    assert not wrong, "\n".join(wrong)
