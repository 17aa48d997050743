"""Tensors in strategies of several processes."""

from __future__ import annotations

import pytest

from tests.strategy.workers import Workers

PROGRAM = """
import torch
value = strategy.experimental_distribute_values_from_function(lambda c: torch.ones(2))
inside = strategy.run(lambda x: replica().all_reduce("SUM", x), args=(value,))
tree = strategy.run(lambda x: replica().all_reduce("MEAN", {"w": x, "n": 3.0}), args=(value,))
found = [strategy.reduce("SUM", value, None), strategy.gather(value, 0), inside, tree["w"]]
found = [strategy.experimental_local_results(x)[0] for x in found]
answer = [[type(x).__name__, x.tolist()] for x in found]
"""


@pytest.mark.parametrize("num_local", [1, 2])
def test_tensors_are_combined_over_processes_and_come_back_as_tensors(num_local):
    pytest.importorskip("torch")
    count = 2.0 * num_local
    wanted = [["Tensor", value] for value in ([count] * 2, [1.0] * 4 * num_local, [count] * 2, [1.0] * 2)]
    with Workers(2, num_local) as workers:
        assert workers.run(PROGRAM) == [wanted] * 2


def test_workers_that_give_arrays_of_different_libraries_are_told_so():
    pytest.importorskip("torch")
    program = """
        import torch
        x = torch.ones(2) if me else np.ones(2, np.float32)
        strategy.run(lambda: replica().all_reduce("SUM", [x]))
    """
    with Workers(2) as workers:
        for failure in workers.run(program):
            assert failure.kind == "CollectiveMismatchError"
