"""Results where the caller wants them: out=."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Algorithm, Group, Member
from ringlet.errors import (
    CollectiveMismatchError,
    InvalidArgumentError,
)
from ringlet.testing import run_on_ranks
from tests.collectives.contract import outcomes_of


@pytest.mark.parametrize("count", [4, 5000])
def test_out_of_any_layout_is_filled(count: int) -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        out = np.zeros((count, 2), ">f8")[:, 0]
        assert member.all_reduce(np.arange(float(count)), out=out) is out
        return out

    for out in run_on_ranks(2, step):
        np.testing.assert_array_equal(out, 2 * np.arange(float(count)))


def test_an_input_that_overlaps_its_output_is_read_first() -> None:
    def step(member: Member) -> np.ndarray[Any, Any]:
        memory = np.arange(6000.0)
        return member.all_reduce(memory[:-1], out=memory[1:])

    np.testing.assert_array_equal(run_on_ranks(2, step)[0], 2 * np.arange(5999.0))


@pytest.mark.parametrize("count", [4, 5000])
@pytest.mark.parametrize("algorithm", [Algorithm.AUTO, Algorithm.RING])
def test_ranks_that_share_an_output_are_refused(count: int, algorithm: Algorithm) -> None:
    out = np.zeros(count)
    outcomes = outcomes_of(3, lambda member: member.all_reduce(np.ones(count), algorithm=algorithm, out=out))
    for outcome in outcomes:
        assert isinstance(outcome, InvalidArgumentError)
        assert "share memory" in str(outcome)
        assert "a different out on each rank" in str(outcome)


BAD_OUTS = {
    "shape": (np.zeros(4), r"out is float64\[4\], expected float64\[3\]"),
    "dtype": (np.zeros(3, np.float32), r"out is float32\[3\].*np\.empty\(\(3,\), 'float64'\)"),
    "type": ([0.0, 0.0, 0.0], "out is a list"),
    "read-only": (np.broadcast_to(0.0, (3,)), "read-only"),
}


@pytest.mark.parametrize("kind", BAD_OUTS)
def test_an_output_that_does_not_fit_is_refused(kind: str) -> None:
    out, message = BAD_OUTS[kind]
    with pytest.raises(InvalidArgumentError, match=message):
        Group(1).member(0).all_reduce(np.zeros(3), out=out)  # type: ignore[arg-type]


def test_outputs_on_some_ranks_only_are_a_mismatch() -> None:
    outcomes = outcomes_of(2, lambda member: member.all_reduce(np.ones(3), out=np.ones(3) if member.rank else None))
    assert all("out=" in str(outcome) and isinstance(outcome, CollectiveMismatchError) for outcome in outcomes)
