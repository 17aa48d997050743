"""Arguments that newcomers pass: each error names what was given, and the line to write."""

from __future__ import annotations

import numpy as np
import pytest

import ringlet
from ringlet.data import Dataset

STRATEGY = ringlet.MirroredStrategy(2)
RESULT = STRATEGY.run(lambda: np.arange(2.0))
STEPS = STRATEGY.distribute_dataset(Dataset.range(8).batch(4))
X, Y = np.ones((64, 3)), np.ones(64)


def all_reduce(*args):
    return STRATEGY.run(lambda: ringlet.replica_context().all_reduce(*args))


def all_gather(*args):
    return STRATEGY.run(lambda: ringlet.replica_context().all_gather(*args))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: ringlet.map(X, np.sqrt),
            TypeError,
            ["map takes a function as its first argument", "map(fn, array)", "of shape (64, 3)"],
        ),
        (lambda: ringlet.map(np.sqrt, iter([1, 2])), TypeError, ["np.asarray(list(values))"]),
        (lambda: ringlet.map(np.sqrt, Dataset.range(4)), TypeError, ["dataset.map(fn)", "distribute_dataset(dataset)"]),
        (lambda: ringlet.map(lambda x: None, X), ValueError, ["returned None", "a row for each row"]),
        (lambda: ringlet.map(lambda x: x.sum(), X), ValueError, ["np.array([fn(row) for row in batch])"]),
        (lambda: STRATEGY.run(3.5), TypeError, ["'float' object is not callable", "strategy.run(step, args=(x,))"]),
        (lambda: all_reduce(X, "SUM"), ValueError, ["first argument: all_reduce('SUM', value)"]),
        (lambda: all_reduce("SUM", [X, None]), ValueError, ["array 1 of 2, which is None", "loss.backward()"]),
        (lambda: all_reduce(X), TypeError, ["missing", "'value': got (ndarray)", "all_reduce('SUM', value)"]),
        (lambda: all_gather(X), TypeError, ["missing", "'axis': got (ndarray)", "all_gather(value, axis=0)"]),
        (lambda: STRATEGY.gather(RESULT), TypeError, ["'axis': got (PerReplica)", "strategy.gather(value, axis=0)"]),
        (
            lambda: STRATEGY.reduce("SUM", RESULT),
            TypeError,
            ["got ('SUM', PerReplica)", "reduce('SUM', value, axis=None)"],
        ),
        (
            lambda: STRATEGY.reduce(op="SUM"),
            TypeError,
            ["argument 'op': got (op=...)", "reduce('SUM', value, axis=None)"],
        ),
        (lambda: len(STEPS), TypeError, ["'DistributedDataset' has no len()", "dataset.cardinality"]),
        (lambda: STEPS[0], TypeError, ["object is not subscriptable: got dataset[0]", "next(iter(dataset))"]),
        (
            lambda: RESULT[0],
            TypeError,
            ["2 components, one per replica, and no single value", "strategy.local_results(value)"],
        ),
        (lambda: STRATEGY.distribute_dataset(X), TypeError, ["of shape (64, 3)", "from_tensor_slices(x).batch(size)"]),
        (lambda: STRATEGY.distribute_dataset((X, Y)), TypeError, ["from_tensor_slices((x, y)).batch(size)"]),
        (lambda: STRATEGY.distribute_dataset([X, Y]), TypeError, ["from_tensor_slices((x, y)).batch(size)"]),
        (
            lambda: ringlet.launch(max, 2, (1, 2)),
            TypeError,
            ["got (builtin_function_or_method, int, tuple)", "launch(fn, n, args="],
        ),
        (lambda: ringlet.launch(max(1, 2), 2), ValueError, ["2 is not callable", "args=(value,)), without calling"]),
        (
            ringlet.ParameterServerStrategy,
            TypeError,
            ["missing", "ParameterServerStrategy(ringlet.cluster_resolver.LocalClusterResolver(workers=2, ps=1))"],
        ),
        (
            lambda: ringlet.cluster_resolver.LocalClusterResolver(num_workers=2, num_ps=1),
            TypeError,
            ["unexpected keyword argument 'num_workers'", "Write LocalClusterResolver(workers=2, ps=1)"],
        ),
        (lambda: Dataset((X, Y)), TypeError, ["of type tuple", "Dataset.from_tensor_slices(arrays)"]),
    ],
)
def test_the_error_is_short_and_says_what_to_write(call, kind, words):
    with pytest.raises(kind) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value)) < 500


def test_errors_of_the_body_stay_as_they_are():
    with pytest.raises(TypeError, match="axis must be None, an int or a tuple") as caught:
        STRATEGY.reduce("SUM", RESULT, axis="rows")
    assert "Write strategy.reduce" not in str(caught.value)


def test_a_distributed_dataset_is_true_and_can_be_listed():
    assert STEPS
    assert len(list(STEPS)) == 2


def test_a_sparse_matrix_has_rows():
    sparse = pytest.importorskip("scipy.sparse")
    rows = ringlet.map(lambda part: part.toarray().sum(axis=1), sparse.csr_matrix(X), batch_size=10)
    np.testing.assert_array_equal(rows, X.sum(axis=1))


def test_a_list_of_batches_is_a_dataset():
    assert [each.values[0].shape for each in STRATEGY.distribute_dataset([X[:4], X[:2]])] == [(2, 3), (1, 3)]
    assert next(iter(STRATEGY.distribute_dataset([(X, Y)])))[1].values[0].shape == (32,)
