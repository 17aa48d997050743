"""A matrix is divided, its communication is looked at, and a solver is written as with NumPy and SciPy."""

import numpy as np
import pytest

from ringlet.sharding import Mesh, ShardedArray, explain, shard

MESH = Mesh({"rows": 4, "cols": 2})
DIVIDED = MESH.sharding("rows", "cols")


def _system(size: int = 16) -> tuple[ShardedArray, ShardedArray]:
    factor = np.random.default_rng(0).standard_normal((size, size))
    return shard(factor @ factor.T + size * np.eye(size), DIVIDED), shard(factor[0], MESH.sharding("rows"))


@pytest.mark.parametrize("function", [np.linalg.solve, np.linalg.inv, np.linalg.cholesky])
def test_a_plan_of_a_solution_is_what_the_solution_sends(function):
    # The plan of solve raised "Singular matrix", of elements that it does not compute.
    operands = _system()[: 2 if function is np.linalg.solve else 1]
    with explain() as sent:
        function(*operands)
    assert explain(function, *operands).nbytes == sent.nbytes > 0


@pytest.mark.parametrize("function", [np.linalg.solve, np.linalg.inv, np.linalg.cholesky])
def test_a_plan_of_a_solution_needs_no_memory_for_the_matrix(function):
    shapes = [(10**6, 10**6), (10**6,)][: 2 if function is np.linalg.solve else 1]
    operands = [shard(np.broadcast_to(0.0, shape), MESH.sharding(*("rows", "cols")[: len(shape)])) for shape in shapes]
    assert explain(function, *operands).nbytes > 10**12
