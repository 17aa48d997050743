import doctest
import importlib

import pytest

MODULES = (
    "all_reduce",
    "beside",
    "checkpoints",
    "collectives",
    "command",
    "controller",
    "device_assignment",
    "goals",
    "harness",
    "limits",
    "machine",
    "parameter_server_peers",
    "ranks",
    "reference",
    "report",
    "sharding_peer",
    "sharding_questions",
    "strategy_peers",
    "strategy_questions",
    "strategy_run",
    "targets",
    "traffic",
    "torch_mlp",
    "tune",
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"bench.{name}")).failed == 0
