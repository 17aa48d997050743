"""Random programs of processes do what a model of one process says (reliability D5)."""

from __future__ import annotations

import os

import pytest

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

EXAMPLES = 50_000 if "RINGLET_CI_NIGHTLY" in os.environ else 50
MOST_AT_ONCE = 1000  # Hypothesis remembers all of a run
STEPS = 12

DRIVER = """
import contextlib, traceback
from tests.processes.state_machine import run

found = None
with contextlib.redirect_stdout(sys.stderr):  # what Hypothesis prints
    try:
        for _ in range(int(sys.argv[2])):
            run(int(sys.argv[1]), int(sys.argv[3]))
    except BaseException:
        found = traceback.format_exc()
tell(found)
"""


@pytest.mark.timeout(600 + 2 * EXAMPLES)
def test_processes_do_what_the_model_says():
    with Processes() as processes:
        at_once = min(EXAMPLES, MOST_AT_ONCE)
        found = processes.start(DRIVER, at_once, EXAMPLES // at_once, STEPS).told(600 + 2 * EXAMPLES)
    assert found is None, found
