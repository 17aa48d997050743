"""Names of environment variables: a misspelt one is reported once."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import ringlet
from ringlet import variable_names
from ringlet.variable_names import NAMES, misspelt


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("RINGLET_TIMEOUT", "RINGLET_TIMEOUT_SECONDS"),
        ("RINGLET_JOBID", "RINGLET_JOB_ID"),
        ("RINGLET_NUM_RANK", "RINGLET_NUM_RANKS"),
        ("RINGLET_NUM_DEVICE", "RINGLET_NUM_DEVICES"),
        ("TFCONFIG", "TF_CONFIG"),
        ("TF_CONFIGS", "TF_CONFIG"),
        ("TF_CONFI", "TF_CONFIG"),
        ("TF_CONFG", "TF_CONFIG"),
        ("tf_config", "TF_CONFIG"),
        ("WORLDSIZE", "WORLD_SIZE"),
        ("rank", "RANK"),
        ("RINGLET_WORLD_SIZE", "RINGLET_NUM_RANKS"),
        ("RINGLET_SIZE", "RINGLET_NUM_RANKS"),
        ("RINGLET_CPUS", "RINGLET_CPU"),
    ],
)
def test_a_misspelt_name_has_a_nearest_one(name, nearest):
    assert misspelt({name: "1", "PATH": "/bin"}) == {name: nearest}
    # A similar name of other software is not an error if the name itself is set.
    assert misspelt({name: "1", nearest: "2"}) == ({name: nearest} if name.startswith("RINGLET_") else {})


def test_each_ringlet_variable_that_does_not_exist_is_misspelt():
    assert misspelt({"RINGLET_HOME": "1"}).keys() == {"RINGLET_HOME"}


# Variables of PostgreSQL, PyTorch, MPI, Terraform and shells with similar names, and two that Ringlet sets itself.
OTHERS = "PG_CONFIG DB_CONFIG LOCAL_RANK LOCAL_WORLD_SIZE PMI_RANK LANG RACK RAND TERM TF_LOG TF_CPP_MIN_LOG_LEVEL"
OTHERS = (*OTHERS.split(), "RINGLET_CI_NIGHTLY", "RINGLET_UNCAUGHT")


def test_names_that_ringlet_reads_and_names_of_the_user_are_not_misspelt():
    assert misspelt(dict.fromkeys((*NAMES, *OTHERS), "1")) == {}


def test_the_known_variables_are_documented():
    table = Path(__file__).parents[1] / "docs" / "install.md"
    documented = set(re.findall(r"`(RINGLET_\w+|TF_CONFIG)`", table.read_text(encoding="utf-8")))
    # A similar name that is not read, and a variable that the launcher sets for its workers.
    assert documented - {"RINGLET_TIMEOUT"} == set(NAMES) - {"RINGLET_RECORDER_FD"}


def test_the_first_strategy_names_a_misspelt_variable(monkeypatch, caplog):
    monkeypatch.setenv("RINGLET_TIMEOUT", "5")
    monkeypatch.setattr(variable_names, "_has_warned", False)
    with caplog.at_level(logging.WARNING):
        ringlet.MirroredStrategy(2)
        ringlet.MirroredStrategy(2)
    expected = "the environment variable RINGLET_TIMEOUT has no effect: did you mean RINGLET_TIMEOUT_SECONDS?"
    assert caplog.messages == [expected]
