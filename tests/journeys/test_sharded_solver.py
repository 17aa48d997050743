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


@pytest.mark.parametrize("solver", ["cg", "gmres", "lsqr"])
def test_an_iterative_solver_of_scipy_takes_the_matrix(solver):
    # SciPy answered "type not understood".
    linalg = pytest.importorskip("scipy.sparse.linalg")
    matrix, right = _system()
    with explain() as report:
        found = getattr(linalg, solver)(matrix, right)[0]
    assert np.allclose(matrix @ found, right, atol=1e-4)
    assert all(gather.operands[0].shape == right.shape for gather in report.gathers)


def test_a_sparse_matrix_is_named_with_what_to_write():
    # "PartitionSpec('rows') is for arrays of 1 dimensions or more, but this array has 0", and NumPy's error of a ufunc.
    sparse = pytest.importorskip("scipy.sparse").eye_array(16, format="csr")
    matrix, _ = _system()
    for use in (lambda: shard(sparse, DIVIDED), lambda: matrix @ sparse, lambda: matrix + sparse):
        with pytest.raises(TypeError, match=r"dense, got a sparse csr_array: write array.toarray\(\)"):
            use()
    assert np.allclose(sparse @ matrix, matrix)


def test_a_report_has_the_bytes_of_each_line_of_a_solver():
    # A report of a few iterations has hundreds of operations.
    matrix, right = _system()

    def step(x):
        product = matrix @ x
        return product - right

    with explain() as report:
        for _ in range(3):
            step(right)
        float(np.linalg.norm(matrix))
    lines = list(report.lines.items())
    first = step.__code__.co_firstlineno
    assert lines[0][0].endswith(f"test_sharded_solver.py:{first + 1})")
    assert lines[0][0].startswith("in step (")
    assert lines[-1][0].endswith(f"test_sharded_solver.py:{first + 7})")
    assert [sent for _, sent in lines] == sorted(report.lines.values(), reverse=True)
    assert sum(report.lines.values()) == report.nbytes
