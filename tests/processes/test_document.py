"""First program of docs/processes.md: it prints the text that is shown."""

from __future__ import annotations

import re
import uuid

import pytest

from tests.processes.harness import ROOT, Processes

SHOWN = re.compile(r"^```py\n(.*?)^```\n.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_first_program_prints_what_is_shown_when_it_is_started_as_shown():
    program, printed = SHOWN.search((ROOT / "docs" / "processes.md").read_text(encoding="utf-8")).groups()
    told = 'def print(*words): tell(" ".join(map(str, words)))\n'
    with Processes() as processes:
        environ = {"RINGLET_NUM_RANKS": "4", "RINGLET_JOB_ID": str(uuid.uuid4())}
        ranks = [processes.start(told + program, environ={**environ, "RINGLET_RANK": str(rank)}) for rank in range(4)]
        lines = [process.told() for process in ranks]
        assert [process.wait() for process in ranks] == [0] * 4
    assert lines == printed.splitlines()
