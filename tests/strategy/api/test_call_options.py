"""Options of a replica's collective have the effect that they name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ringlet
from ringlet.collectives import Algorithm
from ringlet.errors import CollectiveMismatchError
from ringlet.experimental import CommunicationOptions
from ringlet.strategy.api.call_options import read_options
from tests.strategy.replicas import assert_usable, mirrored, replica, replica_id

STRATEGIES = {n: mirrored(n) for n in (1, 2, 3, 8)}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # options, then algorithm, bytes in a pass, seconds
        (None, (Algorithm.DIRECT, 0, 0.0)),
        (CommunicationOptions(), (Algorithm.DIRECT, 0, 0.0)),
        (CommunicationOptions(implementation="NCCL"), (Algorithm.DIRECT, 0, 0.0)),
        (CommunicationOptions(7, 1.5, "RING"), (Algorithm.RING, 7, 1.5)),
        (CommunicationOptions(timeout_seconds=0), (Algorithm.DIRECT, 0, 0.0)),
    ],
)
def test_options_are_read(options, expected):
    assert read_options(options, Algorithm.DIRECT) == expected


@pytest.mark.parametrize("num_replicas", STRATEGIES)
@pytest.mark.parametrize("options", [{"implementation": "RING"}, "RING", 3, ringlet.RunOptions()])
def test_other_options_are_refused(num_replicas, options):
    for call in (
        lambda: replica().all_reduce("SUM", 1.0, options),
        lambda: replica().all_gather(np.ones(1), 0, options),
    ):
        with pytest.raises(TypeError, match="options are a CommunicationOptions"):
            STRATEGIES[num_replicas].run(call)


def calls_of_a_step(strategy: ringlet.Strategy, options: Any) -> int:
    """How many calls of the group an all_reduce of five arrays makes."""

    def step() -> int:
        member = replica()._run.crew.members[replica_id()]._core
        before = int(member.calls)
        replica().all_reduce("SUM", [np.ones(10) for _ in range(5)], options)
        return int(member.calls) - before

    return int(strategy.experimental_local_results(strategy.run(step))[0])


@pytest.mark.parametrize("num_replicas", [2, 3, 8])
def test_packs_are_passes(num_replicas):
    strategy = STRATEGIES[num_replicas]
    assert calls_of_a_step(strategy, None) == calls_of_a_step(strategy, CommunicationOptions()) == 1
    # 80 bytes an array: two arrays in a pass, and one step in which the replicas compare their passes
    assert calls_of_a_step(strategy, CommunicationOptions(bytes_per_pack=160)) == 1 + 3
    assert calls_of_a_step(strategy, CommunicationOptions(bytes_per_pack=1)) == 1 + 5


@pytest.mark.parametrize("num_replicas", STRATEGIES)
@pytest.mark.parametrize("options", [CommunicationOptions(24), CommunicationOptions(implementation="RING")], ids=str)
def test_results_do_not_depend_on_options(num_replicas, options):
    strategy = STRATEGIES[num_replicas]

    def step() -> Any:
        mine = {"a": np.arange(5.0) * (replica_id() + 1), "b": [np.int32(replica_id()), np.ones((2, 2))]}
        return replica().all_reduce("SUM", mine, options), replica().all_reduce("SUM", mine)

    for found, expected in strategy.experimental_local_results(strategy.run(step)):
        np.testing.assert_equal(found, expected)


def test_replicas_that_pack_differently_are_told():
    strategy = STRATEGIES[2]
    with pytest.raises(CollectiveMismatchError):
        strategy.run(
            lambda: replica().all_reduce(
                "SUM", [np.ones(9)] * 3, CommunicationOptions(bytes_per_pack=72 * replica_id())
            )
        )
    assert_usable(strategy)
