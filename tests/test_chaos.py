"""A few jobs of every kind, each with a different disturbance; ``python -m tests.chaos KIND --minutes 30`` runs more.

``RINGLET_KILLS`` (100 by default) sets the number of jobs.
"""

from __future__ import annotations

import os

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("RINGLET_KILLS", "100"))
# So many jobs of each kind for 100 kills: those that take longer are fewer. Those of torch are in tests/frameworks.
JOBS = {"processes": 30, "strategies": 10, "launcher": 7, "launch": 4, "coordinator": 5, "saves": 11, "resumes": 18}
# What the nightly run does 100 times each (reliability A8); a change's run has tests of each in tests/launcher, too.
ENDINGS = [
    *[("launcher", event) for event in ("raise", "SIGINT", "SIGTERM", "SIGHUP")],
    *[("launch", event) for event in ("kill caller", "interrupt")],  # as when the kernel of a notebook ends
]
MOST_SECONDS = max(600, 18 * KILLS)

DRIVER = """
from tests.chaos import run

tell(run(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
"""


@pytest.mark.timeout(MOST_SECONDS)
@pytest.mark.parametrize("kind", JOBS)
def test_a_disturbed_job_names_the_cause_returns_no_wrong_value_and_leaves_nothing(kind):
    check(kind, max(JOBS[kind] * KILLS // 100, 1))


@pytest.mark.skipif("RINGLET_CI_NIGHTLY" not in os.environ, reason="some minutes each: nightly only")
@pytest.mark.timeout(MOST_SECONDS)
@pytest.mark.parametrize(("kind", "event"), ENDINGS)
def test_all_workers_end_however_the_job_ends(kind, event):
    check(kind, max(KILLS // 10, 1), event)


def check(kind, rounds, *events):
    """Run jobs in a separate process."""
    with Processes() as processes:
        wrong = processes.start(DRIVER, kind, rounds, *events).told(MOST_SECONDS)
    assert not wrong, "\n".join(wrong)
