"""The hint that every replica got the whole batch."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import ringlet
from ringlet.compat import tf
from ringlet.errors import ReplicatedBatchWarning
from ringlet.strategy.api import mirrored_strategy
from ringlet.values import PerReplica
from tests.collectives.kinds import Written

STRATEGY = ringlet.MirroredStrategy(2)
X = np.ones((8, 3))


@pytest.fixture(autouse=True)
def _not_hinted(monkeypatch):
    monkeypatch.setattr(mirrored_strategy, "_has_warned", False)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((X,), {}), ((np.arange(8),), None), ((X, np.arange(8), 0.5, object()), None), ((), {"x": X})],
)
def test_a_batch_that_every_replica_got_is_a_warning_with_the_remedy(args, kwargs):
    with pytest.warns(
        ReplicatedBatchWarning, match=r"all 8 rows .* each of 2 replicas.*strategy\.map.*batch\(8\)"
    ) as seen:
        STRATEGY.run(lambda *args, **kwargs: None, args=args, kwargs=kwargs)
    assert seen[0].filename == __file__


def test_arrays_of_equal_length_are_a_batch_that_replicas_cannot_share_evenly():
    with pytest.warns(ReplicatedBatchWarning, match="all 9 rows"):
        STRATEGY.run(lambda x, y: None, args=(np.ones((9, 3)), np.ones(9)))


@pytest.mark.parametrize("kind", [Written, tf.constant])
def test_arrays_of_another_library_are_a_batch(kind):
    with pytest.warns(ReplicatedBatchWarning, match="all 8 rows"):
        STRATEGY.run(lambda x: None, args=(kind(X),))


def test_it_is_given_once():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(3):
            STRATEGY.run(len, args=(X,))
    assert [warning.category for warning in seen] == [ReplicatedBatchWarning]


def replica_id(*_):
    return int(ringlet.replica_context().replica_id_in_sync_group)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        pytest.param(len, (X[:7],), id="not a multiple"),
        pytest.param(len, (X[:6],), id="few rows"),
        pytest.param(np.add, (X, np.ones(3)), id="lengths differ"),
        pytest.param(np.add, (PerReplica([X, X.copy()]), 1), id="distributed"),
        pytest.param(np.matmul, (PerReplica([X.T, X.T.copy()]), X), id="one is distributed"),
        pytest.param(len, ([X],), id="a structure"),
        pytest.param(replica_id, (X,), id="reads its id"),
        pytest.param(lambda x: ringlet.replica_context().devices, (X,), id="reads its device"),
        pytest.param(lambda x: ringlet.replica_context().all_reduce("SUM", x), (X,), id="combines it"),
        pytest.param(abs, (5,), id="no array"),
    ],
)
def test_other_calls_are_not_warned_of(fn, args):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReplicatedBatchWarning)
        STRATEGY.run(fn, args=args)


def test_one_replica_gets_the_whole_batch():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReplicatedBatchWarning)
        ringlet.MirroredStrategy(1).run(len, args=(X,))
