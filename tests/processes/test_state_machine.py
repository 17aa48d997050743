"""Random programs of processes do what a model of one process says (reliability D5)."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.processes.harness import Processes

pytestmark = pytest.mark.slow

EXAMPLES = 3 * settings.default.max_examples
STEPS = 12

DRIVER = """
import contextlib, traceback
from tests.processes.state_machine import run

found = None
with contextlib.redirect_stdout(sys.stderr):  # what Hypothesis prints
    try:
        run(int(sys.argv[1]), int(sys.argv[2]))
    except BaseException:
        found = traceback.format_exc()
tell(found)
"""


@pytest.mark.timeout(600 + 2 * EXAMPLES)
def test_processes_do_what_the_model_says():
    with Processes() as processes:
        found = processes.start(DRIVER, EXAMPLES, STEPS).told(600 + 2 * EXAMPLES)
    assert found is None, found
