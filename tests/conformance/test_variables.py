"""Variables answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_variables.py: every synchronization and aggregation, on
MirroredStrategies of 1, 2 and 3 CPU devices, OneDeviceStrategy, CentralStorageStrategy and the default strategy.
"""

from __future__ import annotations

import collections

import pytest

from tests.conformance.common import case_id, load
from tests.conformance.variables_cases import check

CASES = load("variables")


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    check(case)


def test_cases_are_counted(capsys):
    kinds = collections.Counter(case["input"].get("strategy", "MirroredStrategy") for case in CASES)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    with capsys.disabled():
        print(f"\nrecorded variable cases: {len(CASES)} of {len(CASES)} compared, none differs on purpose ({counts})")
    assert CASES
