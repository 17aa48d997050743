"""A few rounds of every disturbance; ``python -m tests.processes.chaos --minutes 30`` runs more.

``RINGLET_KILLS`` sets the rounds of each kind, a twentieth of it (5 by default).
"""

from __future__ import annotations

import os

import pytest

from tests.processes.chaos import EVENTS
from tests.processes.harness import Processes

ROUNDS = max(int(os.environ.get("RINGLET_KILLS", "100")) // 20, 1)
SECONDS_OF_A_ROUND = 20.0

DRIVER = """
from tests.processes.chaos import Plan, run_round
from tests.processes.forked import left_behind

before = left_behind()
failures = [(seed, run_round(Plan.draw(seed, sys.argv[1]))) for seed in range(int(sys.argv[2]))]
tell({"failures": [found for found in failures if found[1]], "before": before, "after": left_behind()})
"""


@pytest.mark.timeout(max(120, ROUNDS * SECONDS_OF_A_ROUND))
@pytest.mark.parametrize("event", EVENTS)
def test_a_disturbed_job_raises_the_cause_returns_no_wrong_value_and_writes_nowhere_later(event):
    with Processes() as processes:
        driver = processes.start(DRIVER, event, ROUNDS)
        seen = driver.told(ROUNDS * SECONDS_OF_A_ROUND)
    assert not seen["failures"]
    assert seen["after"] == seen["before"], "shared memory and descriptors are as before"
