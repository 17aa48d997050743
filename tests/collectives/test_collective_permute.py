"""collective_permute: arrays go from rank to rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlet.collectives import Group, Member
from ringlet.errors import CollectiveMismatchError, InvalidArgumentError
from ringlet.testing import run_on_ranks
from tests.collectives.contract import Array, assert_same, every_dtype, inputs_of, outcomes_of


def permuted(inputs: list[Array], pairs: list[tuple[int, int]]) -> list[Array]:
    results = [np.zeros_like(x) for x in inputs]
    for source, target in pairs:
        results[target] = inputs[source]
    return results


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_targets_have_the_arrays_of_their_sources_and_others_zeros(num_ranks: int, dtype: str) -> None:
    ring = [(rank, (rank + 1) % num_ranks) for rank in range(num_ranks)]
    wanted = [
        (pairs, inputs_of(num_ranks, count, dtype))
        for pairs in (ring, ring[1:], [(0, num_ranks - 1)], [(num_ranks - 1,) * 2], [])
        for count in (0, 3, 1000)
    ]
    found = run_on_ranks(num_ranks, lambda m: [m.collective_permute(inputs[m.rank], pairs) for pairs, inputs in wanted])
    for number, (pairs, inputs) in enumerate(wanted):
        for rank, expected in enumerate(permuted(inputs, pairs)):
            assert_same(found[rank][number], expected, (rank, pairs))
            assert not found[rank][number].flags.writeable


@given(targets=st.permutations(range(5)), size=st.integers(0, 5), count=st.sampled_from([1, 3000]))
def test_any_permutation_and_part_of_one_works(targets: list[int], size: int, count: int) -> None:
    pairs = list(enumerate(targets))[:size]
    inputs = inputs_of(5, count, "int64")
    results = run_on_ranks(5, lambda m: m.collective_permute(inputs[m.rank], np.array(pairs).reshape(-1, 2)))
    for result, expected in zip(results, permuted(inputs, pairs), strict=True):
        assert_same(result, expected)


@pytest.mark.parametrize("count", [4, 4000])
@pytest.mark.parametrize("place", ["out", "in_place", "strided", "overlap", "some"])
def test_an_output_is_the_callers_own(count: int, place: str) -> None:
    inputs = inputs_of(3, count, "float64")
    pairs = [(0, 1), (1, 0)]  # rank 2 gets zeros, also where there was something

    def step(member: Member) -> Array:
        memory = np.ones(2 * count + 1)
        x = memory[:count]
        x[:] = inputs[member.rank]
        out = {
            "out": np.ones(count),
            "in_place": x,
            "strided": np.ones((count, 2))[:, 1],
            "overlap": memory[1 : count + 1],
            "some": np.ones(count) if member.rank else None,
        }[place]
        result = member.collective_permute(x, pairs, out=out)
        assert out is None or result is out
        return result

    for result, expected in zip(run_on_ranks(3, step), permuted(inputs, pairs), strict=True):
        np.testing.assert_array_equal(result, expected)


# pairs, words of the message
BAD: list[tuple[Any, str]] = [
    ([(0, 1), (1, 1)], "pairs has rank 1 as a target twice"),
    ([(0, 1), (0, 0)], "pairs has rank 0 as a source twice: .*broadcast"),
    ([(0, 2)], "pairs has the target 2, which is not in this group: its ranks are 0 to 1"),
    ([(-1, 0)], "pairs has the source -1, which"),
    ([(0, 1, 1)], "expected a sequence of"),
    ([0, 1], "expected a sequence of"),
    ([(0.0, 1)], "expected a sequence of"),
    (None, "expected a sequence of"),
]


@pytest.mark.parametrize(("pairs", "words"), BAD)
def test_what_is_no_permutation_is_refused(pairs: Any, words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        Group(2, timeout_seconds=10).member(0).collective_permute(np.ones(2), pairs)


@pytest.mark.parametrize(
    "step",
    [
        lambda m: m.collective_permute(np.ones(2), [(0, m.rank)]),
        lambda m: m.collective_permute(np.ones(2), [(0, 1), (1, 0)][: 1 + m.rank]),
        lambda m: m.collective_permute(np.ones(2 + m.rank), [(0, 1)]),
        lambda m: m.collective_permute(np.ones(2, "f4" if m.rank else "f8"), [(0, 1)]),
    ],
)
def test_calls_that_do_not_fit_together_are_a_mismatch(step: Any) -> None:
    for outcome in outcomes_of(2, step):
        assert isinstance(outcome, CollectiveMismatchError)
