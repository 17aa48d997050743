"""reduce: the result of all_reduce for one rank."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ringlet.collectives import Group, Member, Op
from ringlet.errors import InvalidArgumentError
from ringlet.testing import reduce_in_tree_order, run_on_ranks
from tests.collectives.contract import KIND_OF, OPERATIONS, assert_same, every_dtype, inputs_of, is_possible


@every_dtype
@pytest.mark.parametrize("num_ranks", range(1, 10))
def test_the_root_has_the_bits_of_the_reference_and_others_nothing(num_ranks: int, dtype: str) -> None:
    ops = OPERATIONS[KIND_OF[dtype]]
    for number, op in enumerate(ops):
        root = (number + num_ranks) % num_ranks
        count = (0, 1, 65, 4097)[(number + num_ranks) % 4]
        inputs = inputs_of(num_ranks, count, dtype)
        results = run_on_ranks(num_ranks, lambda m: m.reduce(inputs[m.rank], op, root))  # noqa: B023
        for rank, result in enumerate(results):
            if rank == root:
                assert_same(result, reduce_in_tree_order(inputs, op), (op, count))
                assert not result.flags.writeable
            else:
                assert result is None


@pytest.mark.parametrize("place", ["out", "in_place", "strided", "overlap"])
@pytest.mark.parametrize("op", [Op.SUM, Op.MEAN])
@pytest.mark.parametrize("count", [5, 5000])
def test_the_root_may_give_an_output(count: int, op: Op, place: str) -> None:
    for dtype in ("float64", "int32"):
        if not is_possible(op, dtype, place):
            continue
        inputs = inputs_of(3, count, dtype)
        expected = reduce_in_tree_order(inputs, op)

        def step(member: Member) -> Any:
            x = inputs[member.rank].copy()  # noqa: B023
            if member.rank != 1:
                return member.reduce(x, op, root=1)
            memory = np.empty(2 * count + 1, expected.dtype)  # noqa: B023
            out = {"out": memory[:count], "in_place": x, "strided": memory[::2][:count], "overlap": memory[1:][:count]}[
                place
            ]
            if place == "overlap" and out.dtype == x.dtype:
                memory[:count] = x
                x = memory[:count]
            assert member.reduce(x, op, root=1, out=out) is out
            return out

        results = run_on_ranks(3, step)
        assert (results[0], results[2]) == (None, None)
        assert_same(np.ascontiguousarray(results[1]), expected)


def test_inputs_of_ranks_other_than_the_root_stay_as_they_are() -> None:
    inputs = [np.full(9000, rank) for rank in range(3)]
    run_on_ranks(3, lambda m: m.reduce(inputs[m.rank], root=2, out=inputs[2] if m.rank == 2 else None))
    assert [array[0] for array in inputs] == [0, 1, 3]


def test_an_output_elsewhere_than_on_the_root_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="rank 0 passed out, which only the root, rank 1, may pass"):
        Group(2, timeout_seconds=10).member(0).reduce(np.ones(2), root=1, out=np.ones(2))


@pytest.mark.parametrize("root", [2, -1, 1.0, None])
def test_a_root_that_does_not_exist_is_refused(root: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"root is .*(not in this group: its ranks are 0 to 1|expected)"):
        Group(2, timeout_seconds=10).member(0).reduce(np.ones(2), root=root)
