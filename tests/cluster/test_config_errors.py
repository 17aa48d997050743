"""Faults of a description: their place, and how it is put right."""

from __future__ import annotations

import json
import pickle

import pytest

from ringlet.cluster.config_errors import (
    ABSENT,
    ClusterConfigJSONError,
    ClusterConfigTypeError,
    Fault,
    corrected,
    json_path,
)
from ringlet.errors import ClusterConfigError


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        # way to the place, path
        ([], "$"),
        (["cluster", "worker", 1], "$.cluster.worker[1]"),
        (["a job"], "$['a job']"),
        ([3], "$[3]"),
        ([b"worker"], "$[b'worker']"),
    ],
)
def test_a_path_is_written_as_json_paths_are(keys, path):
    assert json_path(keys) == path


def test_a_path_stays_short():
    assert len(json_path(["x" * 10**6])) < 100


def test_a_fault_becomes_an_error_with_place_found_allowed_and_example():
    fault = Fault("it is wrong", "a string", ["a"], found=3, kind=ClusterConfigTypeError).below("config")
    error = fault.as_error("TF_CONFIG", "For example: x")
    assert str(error) == "it is wrong. TF_CONFIG, at $.config.a: found 3; allowed: a string. For example: x"
    assert isinstance(error, TypeError)
    assert isinstance(error, ClusterConfigError)
    assert error.path == "$.config.a"


def test_a_correction_changes_one_place_of_a_copy():
    whole = {"a": [{"b": 1, "c": 2}], "d": 3}
    assert corrected(whole, Fault("", "", ["a", 0, "b"], instead=7)) == {"a": [{"b": 7, "c": 2}], "d": 3}
    assert corrected(whole, Fault("", "", ["new", "b"], instead=7)) == {**whole, "new": {"b": 7}}
    assert corrected(whole, Fault("", "", ["a"])) is ABSENT
    assert whole == {"a": [{"b": 1, "c": 2}], "d": 3}


def test_an_error_about_json_is_python_s_with_advice():
    error = ClusterConfigJSONError("Expecting value", "{]", 1, "Write JSON.")
    assert str(error) == "Expecting value: line 1 column 2 (char 1). Write JSON."
    assert isinstance(error, json.JSONDecodeError)
    assert (error.path, error.pos, error.doc) == ("$", 1, "{]")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.pos) == (str(error), 1)
