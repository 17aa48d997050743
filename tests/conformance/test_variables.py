"""Variables answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_variables.py: every synchronization and aggregation, on
MirroredStrategies of 1, 2 and 3 CPU devices, OneDeviceStrategy, CentralStorageStrategy and the default strategy.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.common import case_id, is_incidental, load
from tests.conformance.variables_cases import check

CASES = load("variables")


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    check(case)


def outcomes_of(expect: Any) -> Iterator[dict[str, Any]]:
    """What is recorded of a case: its steps and readings, or the creation that failed."""
    recorded = expect.get("ok")
    if not isinstance(recorded, dict) or "steps" not in recorded:
        yield expect
        return
    yield from recorded["steps"]
    yield from (recorded[key] for key in ("read_outside", "read_in_replica", "reduce_sum"))


def test_cases_are_counted(capsys):
    kinds = collections.Counter(case["input"].get("strategy", "MirroredStrategy") for case in CASES)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    outcomes = [outcome for case in CASES for outcome in outcomes_of(case["expect"])]
    accidents = sum(map(is_incidental, outcomes))
    with capsys.disabled():
        print(f"\nrecorded variable cases: {len(CASES)} of {len(CASES)} compared, none differs on purpose ({counts})")
        print(f"{accidents} of their {len(outcomes)} outcomes are incidental errors, for which anything will do")
    assert CASES
