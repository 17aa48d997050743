"""What a class writes in the cells of a notebook: names from other libraries, and variables in the last line."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ringlet
from tests.coordinator.in_threads import coordinator_of

STRATEGY = ringlet.MirroredStrategy(2)
CONTEXT = ringlet.replica_context()
with STRATEGY.scope():
    MIRRORED = ringlet.Variable(np.eye(2), name="w")
PLAIN = ringlet.Variable(np.eye(2), name="w")


@pytest.mark.parametrize(
    ("owner", "name", "remedy"),
    [
        (ringlet, "get_rank", "write ringlet.rank()"),
        (ringlet, "get_world_size", "write ringlet.size()"),
        (ringlet, "world_size", "write ringlet.size()"),
        (ringlet, "spawn", "write ringlet.launch(fn, 2)"),
        (ringlet, "run", "write ringlet.launch(fn, 2)"),
        (ringlet, "Pool", "write ringlet.map(fn, *arrays)"),
        (ringlet, "Parallel", "write ringlet.map(fn, *arrays)"),
        (ringlet, "init", "write ringlet.collectives.init_process_group()"),
        (STRATEGY, "all_reduce", "write strategy.reduce('SUM', value, axis=None)"),
        (STRATEGY, "devices", "write strategy.extended.worker_devices"),
        (CONTEXT, "rank", "write replica.replica_id_in_sync_group"),
        (CONTEXT, "replica_id", "write replica.replica_id_in_sync_group"),
        (CONTEXT, "reduce", "write replica.all_reduce('SUM', value)"),
        (MIRRORED, "T", "write variable.numpy().T"),
        (PLAIN, "sum", "write variable.numpy().sum"),
        (PLAIN, "reshape", "write variable.numpy().reshape"),
    ],
)
def test_an_absent_name_leads_to_the_present_one(owner, name, remedy):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': {re.escape(remedy)}"):
        getattr(owner, name)
    assert name not in dir(owner)


def test_every_variable_shows_as_a_table():
    # A variable without a strategy, and those of parameter servers, were shown as text.
    with coordinator_of() as coordinator, coordinator.strategy.scope():
        on_servers = ringlet.Variable(np.eye(2), name="w")
        for variable, title in ((PLAIN, "Variable"), (on_servers, "Variable"), (MIRRORED, "MirroredVariable")):
            shown = variable._repr_html_()
            assert f">{title} &#x27;w:0&#x27;" in shown
            assert shown.count("(2, 2)") == (2 if variable is MIRRORED else 1)
