"""A few jobs of every kind, each disturbed in another way; ``python -m tests.chaos KIND --minutes 30`` runs more.

``RINGLET_KILLS`` (100 by default) sets how many.
"""

from __future__ import annotations

import os

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RINGLET_KILLS", "100"))
# So many jobs of each kind for 100 kills: those that take longer are fewer. Those of torch are in tests/frameworks.
JOBS = {"processes": 35, "strategies": 7, "launcher": 7, "launch": 4, "coordinator": 5, "saves": 11, "resumes": 14}
MOST_SECONDS = max(600, 18 * KILLS)

DRIVER = """
from tests.chaos import run

tell(run(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.timeout(MOST_SECONDS)
@pytest.mark.parametrize("kind", JOBS)
def test_a_disturbed_job_names_the_cause_returns_no_wrong_value_and_leaves_nothing(kind):
    with Processes() as processes:
        driver = processes.start(DRIVER, kind, max(JOBS[kind] * KILLS // 100, 1))
        wrong = driver.told(MOST_SECONDS)
    assert not wrong, "\n".join(wrong)
