"""For whom datasets are made."""

from __future__ import annotations

import ringlet
from ringlet.input_replication_mode import InputReplicationMode


def test_the_modes_are_those_of_datasets():
    assert InputReplicationMode is ringlet.InputReplicationMode is ringlet.data.InputReplicationMode
    assert [mode.name for mode in InputReplicationMode] == ["PER_WORKER", "PER_REPLICA"]
