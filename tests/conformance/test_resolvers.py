"""Resolvers, ClusterSpec and what a task is among workers answer what TensorFlow answered.

Cases recorded from tensorflow-cpu 2.21.0 by gen_resolvers.py. ``env`` is the whole environment. Within an answer an
error is recorded as the text "class: message".
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.conformance.common import assert_same_error, case_id, load
from tests.conformance.resolver_cases import RUNNERS

CASES = load("resolvers")

# What Python says of TensorFlow's code, not of what the user wrote: another text says that, in the same class.
INTERNALS = re.compile(r"argument of type .* is not iterable|max\(\) arg is an empty|int\(\) argument must be")
# No GPUs at all is an error about range() there. Here it is a cluster of CPUs.
NO_GPUS = "range() arg 3 must not be zero"


def reason_to_skip(case: dict[str, Any]) -> str:
    """Why a case is not compared; empty if it is."""
    if NO_GPUS in str(case["expect"].get("error")):
        return "differs on purpose: a Slurm cluster needs no GPUs"
    return ""


def assert_error(recorded: dict[str, Any], error: object) -> None:
    assert isinstance(error, Exception), f"no error, but {error!r}, where TensorFlow said {recorded['message']}"
    if INTERNALS.search(recorded["message"]):
        recorded = {**recorded, "message": str(error)}
    assert_same_error(recorded, error)


def assert_same(expected: Any, found: Any, where: str = "answer") -> None:
    """The found answer is the recorded one; keys of dictionaries are texts in JSON."""
    if isinstance(found, Exception):
        assert isinstance(expected, str), f"{where} is {found!r}"
        kind, _, message = expected.partition(": ")
        assert_error({"type": kind, "message": message}, found)
    elif isinstance(expected, dict) and "__tuple__" in expected:
        assert isinstance(found, tuple), where
        assert_same(expected["__tuple__"], list(found), where)
    elif isinstance(expected, dict):
        assert [str(key) for key in found] == list(expected) or set(map(str, found)) == set(expected), where
        for key, value in found.items():
            assert_same(expected[str(key)], value, f"{where}[{key!r}]")
    elif isinstance(expected, list):
        assert isinstance(found, list), f"{where} is {found!r}"
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(expected, found, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    else:
        assert found == expected, where
        assert type(found) is type(expected), where


@pytest.mark.parametrize("case", CASES, ids=map(case_id, CASES))
def test_a_recorded_case_has_the_recorded_answer(case):
    if reason := reason_to_skip(case):
        pytest.skip(reason)
    run, expected = RUNNERS[case["group"]], case["expect"]
    if "ok" in expected:
        assert_same(expected["ok"], run(case["input"]))
        return
    try:
        found = run(case["input"])
    except Exception as error:
        assert_error(expected["error"], error)
    else:
        assert expected["error"].get("incidental"), f"no error, but {found!r}, where TensorFlow raised"


def test_cases_that_are_not_compared_are_counted(capsys):
    skipped = [case for case in CASES if reason_to_skip(case)]
    with capsys.disabled():
        print(f"\nrecorded cases of clusters: {len(CASES) - len(skipped)} of {len(CASES)} compared")
    assert {reason_to_skip(case) for case in skipped} <= {"differs on purpose: a Slurm cluster needs no GPUs"}
