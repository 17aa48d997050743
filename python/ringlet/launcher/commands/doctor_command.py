"""``ringlet doctor``: check whether jobs run on this machine and in this environment."""

from __future__ import annotations

import argparse
import json
import math
import os
import textwrap
import time
from collections.abc import Mapping

from ringlet.launcher.command_line import closed_output_ignored
from ringlet.launcher.commands.machine_checks import CHECKS, Facts, Line, run_check
from ringlet.launcher.launch import launch

_SELF_TEST_SECONDS = 60.0
_NUM_ELEMENTS = 1 << 16  # large enough for direct reads of the other rank's memory, if allowed
_WIDTH = 110

_EPILOG = """\
Each line has a mark, a finding and its meaning; a line that begins with ->
has the remedy.

  ok       nothing to do
  note     jobs run, but slower or without a feature
  problem  a job would fail

Last, two processes start and add arrays. The exit status is 1 if there is a
problem, else 0. Run doctor where the job runs: in the container or batch job.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to `parser`."""
    parser.usage = "ringlet doctor [--no-self-test] [--json]"
    parser.epilog = _EPILOG
    parser.add_argument("--no-self-test", action="store_true", help="do not start two processes")
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the results of the checks; return the exit status."""
    facts = Facts(dict(os.environ), processes=_local_processes(os.environ))
    lines = {}
    for name, check in (CHECKS if options.no_self_test else {**CHECKS, "self_test": self_test}).items():
        lines[name] = run_check(name, check, facts)
        if not options.json:
            _print(as_text({name: lines[name]}))
    has_problem = any(line.status == "problem" for line in lines.values())
    if options.json:
        checks = {name: _plain(line) for name, line in lines.items()}
        _print(json.dumps({"status": "problem" if has_problem else "ok", "checks": checks}))
    return int(has_problem)


def as_text(lines: Mapping[str, Line]) -> str:
    """Return the results as text."""
    rows = []
    for name, line in lines.items():
        mark = f"{line.status:<8} {name.replace('_', ' '):<14} "
        rows += _wrapped(f"{line.found.rstrip('.')}. {line.meaning}", mark)
        rows += _wrapped(line.remedy, f"{'':>{len(mark)}}-> ") if line.remedy else []
    return "\n".join(rows)


def _wrapped(text: str, head: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def _plain(line: Line) -> dict[str, object]:
    return line._replace(value=None if line.value == math.inf else line.value)._asdict()  # JSON has no infinity


def _print(text: str) -> None:
    with closed_output_ignored():
        print(text)


def _local_processes(environ: Mapping[str, str]) -> int:
    """Return the number of the job's processes on this machine.

    Return 1 if the variables that describe the job are invalid, which another check reports.
    """
    try:
        from ringlet.rank_zero.process_role import role_in_environment

        return len(role_in_environment(environ).host_indices)
    except Exception:
        return 1


def self_test(_: Facts, seconds: float = _SELF_TEST_SECONDS) -> Line:
    """Start two processes that form a group and add arrays; return the result of this check."""
    start = time.monotonic()
    found = launch(_sum_of_ranks, 2, timeout_seconds=seconds)
    took = round(time.monotonic() - start, 3)
    if found != [3.0, 3.0]:
        return Line("problem", f"two processes added 1 and 2 to {found}", "Results are wrong.", "Report a bug.", took)
    return Line("ok", f"two processes added arrays in {took:.1f} s", "Jobs of several processes run here.", value=took)


def _sum_of_ranks() -> float:
    import numpy as np

    from ringlet.collectives import init_process_group

    with init_process_group() as member:
        total = member.all_reduce(np.full(_NUM_ELEMENTS, member.rank + 1.0))
        return float(total[0]) if (total == total[0]).all() else math.nan
