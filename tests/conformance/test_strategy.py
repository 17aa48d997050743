"""Strategies, replica contexts and values answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_strategy.py, on MirroredStrategies of 1, 2, 3, 4 and 8 CPU devices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.conformance.common import assert_same, assert_same_error, case_id, is_incidental, load
from tests.conformance.strategy_cases import answer
from tests.conformance.strategy_functions import STRATEGIES, context, per_replica

CASES = load("strategy")

# --- cases that are not compared -------------------------------------------------------------------------------------

# Groups whose answers differ on purpose, each a row of docs/differences.
DIFFERENT = {
    "all_reduce/shape_mismatch": "a mismatch is a CollectiveMismatchError that names every replica's call",
    "all_reduce/python_value": "numbers are taken for arrays",
}


def difference(case: dict[str, Any]) -> str:
    """Why the answer differs on purpose; empty if it should not."""
    if case["group"] == "all_reduce/nested" and "error" in case["expect"]:
        return "one call may mix dtypes"
    return DIFFERENT.get(case["group"], "")


# --- the cases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    if reason := difference(case):
        pytest.skip(f"differs on purpose: {reason}")
    if "ok" in case["expect"]:
        assert_same(case["expect"]["ok"], answer(case))
        return
    expected = case["expect"]["error"]
    try:
        found = answer(case)
    except Exception as error:
        assert_same_error(expected, error)
    else:
        assert expected.get("incidental"), f"no error, but {found!r}, where TensorFlow said {expected['message']}"


# What TensorFlow answered in cases that the public ones leave out.
LEFT_OUT: list[dict[str, Any]] = [
    {
        "group": "repr_other",
        "input": {"object": "InputOptions()"},
        "expect": {
            "__namedtuple__": [
                "InputOptions",
                {
                    "experimental_fetch_to_device": True,
                    "experimental_replication_mode": "InputReplicationMode.PER_WORKER",
                    "experimental_place_dataset_on_device": False,
                    "experimental_per_replica_buffer_size": 1,
                },
            ]
        },
    },
    {
        "group": "reduce/plain_value",
        "input": {"replicas": 1, "op": "SUM", "plain": -5},
        "expect": {"__array__": ["int32", [], [-5]]},
    },
]


@pytest.mark.parametrize("case", LEFT_OUT, ids=lambda case: case["group"])
def test_a_case_that_is_not_public_has_the_same_answer(case):
    assert_same(case["expect"], answer(case))


# What TensorFlow's reduce combines and its all_reduce refuses.
MORE_DTYPES = ["int8", "int16", "uint8", "uint16", "uint32", "uint64", "complex64", "complex128"]


@pytest.mark.parametrize("op", ["SUM", "MEAN"])
@pytest.mark.parametrize("dtype", MORE_DTYPES)
def test_all_reduce_takes_every_dtype_that_reduce_takes(dtype, op):
    strategy = STRATEGIES[3]
    value = per_replica(strategy, [np.array([1, 2], dtype) * (rank + 1) for rank in range(3)])
    expected = strategy.reduce(op, value, axis=None)
    for found in strategy.run(lambda x: context().all_reduce(op, x), args=(value,)).values:
        assert found.dtype == expected.dtype
        assert found.tolist() == expected.tolist()


def test_cases_that_are_not_compared_are_counted(capsys):
    differ = sum(bool(difference(case)) for case in CASES)
    accidents = sum(is_incidental(case["expect"]) for case in CASES)
    with capsys.disabled():
        print(
            f"\nrecorded strategy cases: {len(CASES) - differ} of {len(CASES)} compared, {differ} differ on purpose; "
            f"{accidents} of them are incidental errors, for which any exception or an answer will do"
        )
    assert differ < len(CASES) / 50
