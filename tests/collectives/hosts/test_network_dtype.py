"""RINGLET_NETWORK_DTYPE=bfloat16 halves the bytes of large float32 sums between hosts, and changes nothing else."""

from __future__ import annotations

import itertools
import sys
import time

import ml_dtypes
import numpy as np
import pytest

from ringlet.collectives import Op
from ringlet.collectives.collective_dtypes import dtype_named
from ringlet.collectives.hosts import host_calls, host_join, host_reductions
from ringlet.errors import FailedPreconditionError
from ringlet.testing import run_on_ranks
from tests.collectives.hosts.fake_hosts import Network, run_on_hosts

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
SIZE = 60_000  # elements: large enough to be rounded


@pytest.fixture(autouse=True)
def bfloat16(monkeypatch):
    monkeypatch.setenv("RINGLET_NETWORK_DTYPE", "bfloat16")
    monkeypatch.setattr(host_reductions, "_DATA_BYTES", 64 << 10)
    monkeypatch.setattr(host_reductions, "PIECE_BYTES", 64 << 10)


def values(rank, size=SIZE, dtype=np.float32):
    return (np.random.default_rng(rank).standard_normal(size) * 100).astype(dtype)


def expected(shape, op, dtype=np.float32, size=SIZE):
    """The hosts' partial results in float32, rounded, added in float32 and rounded, for a mean divided and rounded."""
    ends = np.cumsum([0, *shape])
    partials = [
        sum(values(rank, size, dtype).astype(np.float32) for rank in range(*pair)) for pair in itertools.pairwise(ends)
    ]
    total = sum(partial.astype(BFLOAT16).astype(np.float32) for partial in partials).astype(BFLOAT16)
    if op is Op.MEAN:
        total = (total.astype(np.float32) / np.float32(ends[-1])).astype(BFLOAT16)
    return total.astype(dtype)


@pytest.mark.parametrize("shape", [[1, 1], [2, 2], [1, 2], [1, 2, 1]], ids=str)
@pytest.mark.parametrize("op", [Op.SUM, Op.MEAN])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BFLOAT16], ids=lambda dtype: np.dtype(dtype).name)
def test_partial_results_totals_and_means_are_rounded(shape, op, dtype):
    def step(member):
        x = values(member.rank, dtype=dtype)
        each = SIZE // sum(shape)
        found = [member.all_reduce(x, op), member.all_reduce(x[:-1], op, out=x[:-1]), member.all_reduce(x[:0])]
        x = values(member.rank, dtype=dtype)
        rows = member.reduce_scatter(x, op)
        assert rows.tobytes() == found[0][each * member.rank : each * (member.rank + 1)].tobytes()
        reduced = member.reduce(x, op, root=1)
        assert reduced is None if member.rank != 1 else reduced.tobytes() == found[0].tobytes()
        assert found[0].dtype == dtype
        assert len(found[2]) == 0
        return found[:2]

    for found in run_on_hosts(shape, step):
        assert found[0].tobytes() == expected(shape, op, dtype).tobytes()
        assert found[1].tobytes() == expected(shape, op, dtype)[:-1].tobytes()


@pytest.mark.parametrize("shape", [[1, 1], [2, 2], [1, 1, 1]], ids=str)
def test_other_calls_are_exact(shape):
    small = host_reductions._LEAST_ROUNDED - 1

    def step(member):
        x = values(member.rank)
        return [
            member.all_reduce(x[:small]),
            member.all_reduce(x, Op.MAX),
            member.all_reduce(values(member.rank, dtype=np.float64)),
            member.all_reduce(np.arange(SIZE) + member.rank),
            member.all_gather(x),
            member.broadcast(x, root=0),
        ]

    for found, true in zip(run_on_hosts(shape, step), run_on_ranks(sum(shape), step), strict=True):
        for mine, one_host in zip(found, true, strict=True):
            assert mine.tobytes() == one_host.tobytes()


def test_float32_is_rounded_among_arrays_of_other_dtypes():
    def step(member):
        return member.all_reduce_many([values(member.rank), np.arange(SIZE), np.ones(3), values(member.rank, 5)])

    for found in run_on_hosts([1, 1], step):
        assert found[0].tobytes() == expected([1, 1], Op.SUM).tobytes()
        assert found[1].tolist() == (2 * np.arange(SIZE)).tolist()
        assert found[2].tolist() == [2.0] * 3
        assert found[3].tobytes() == expected([1, 1], Op.SUM, size=5).tobytes()  # packed with the large array


def test_not_a_number_and_infinity_stay_what_they_are():
    x = np.zeros(SIZE, np.float32)
    x[:4] = np.nan, np.inf, -np.inf, np.finfo(np.float32).max
    for found in run_on_hosts([1, 1], lambda member: member.all_reduce(x if member.rank else np.zeros_like(x))):
        np.testing.assert_array_equal(found[:4], np.float32([np.nan, np.inf, -np.inf, np.inf]))


@pytest.mark.parametrize("shape", [[1, 1], [1, 1, 1]], ids=str)
def test_half_of_the_bytes_are_sent(shape, monkeypatch):
    monkeypatch.setattr(host_calls, "_INLINE_BYTES_OF_TWO", 16 << 10)
    monkeypatch.setattr(host_calls, "_INLINE_BYTES", 16 << 10)
    sent = []

    def count(source, to, tag, data):
        sent.append(len(data))
        return data

    def step(member):
        member.barrier()
        member.all_reduce(values(member.rank, 1_000_000))

    totals = []
    for name in ("float32", "bfloat16"):
        monkeypatch.setenv("RINGLET_NETWORK_DTYPE", name)
        sent.clear()
        assert run_on_hosts(shape, step, network=Network(len(shape), count)) == [None] * len(shape)
        totals.append(sum(sent))
    assert totals[1] / totals[0] == pytest.approx(0.5, abs=0.01)


def test_a_group_of_a_group_rounds_as_well():
    def step(member):
        part = member.split(0)
        return part.all_reduce(values(member.rank))

    for found in run_on_hosts([1, 1], step):
        assert found.tobytes() == expected([1, 1], Op.SUM).tobytes()


def test_different_settings_are_refused(monkeypatch):
    dtypes = [None, BFLOAT16]
    monkeypatch.setattr(host_join, "network_dtype_of", lambda environ: dtypes.pop())
    for error in run_on_hosts([1, 1], lambda member: None):
        assert isinstance(error, FailedPreconditionError)
        assert " float32 to other hosts as bfloat16" in str(error)
        assert "set RINGLET_NETWORK_DTYPE to the same value in all processes" in str(error)


def test_another_dtype_is_refused(monkeypatch):
    monkeypatch.setenv("RINGLET_NETWORK_DTYPE", "bf16")
    for error in run_on_hosts([1, 1], lambda member: None):
        assert isinstance(error, FailedPreconditionError)
        assert "cannot join the group: RINGLET_NETWORK_DTYPE is 'bf16': expected bfloat16" in str(error)


def test_a_process_that_cannot_use_the_dtype_does_not_let_the_others_wait(monkeypatch):
    given = [BFLOAT16, None]
    monkeypatch.setattr(host_join, "network_dtype_of", lambda environ: given.pop() or dtype_named("bfloat16"))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    started = time.monotonic()
    for error in run_on_hosts([1, 1], lambda member: None, seconds=30.0):
        assert isinstance(error, FailedPreconditionError)
        assert "pip install ml_dtypes" in str(error)
    assert time.monotonic() - started < 10


def test_without_ml_dtypes_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ImportError, match=r"bfloat16 is defined by the package ml_dtypes.*pip install ml_dtypes"):
        host_join.network_dtype_of({"RINGLET_NETWORK_DTYPE": "bfloat16"})
