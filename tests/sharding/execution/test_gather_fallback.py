"""Arrays that are gathered: counted, warned of once for each line, refused where the program is strict."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest

import ringlet
from ringlet.sharding import GatherError, GatherWarning, Sharding, explain, shard, strict
from ringlet.sharding.execution.gather_fallback import record_gather

ROWS = shard(np.arange(8.0).reshape(4, 2), Sharding.tiled((2, 1)))
SMALL = shard(np.arange(2.0), Sharding.tiled((2,)))


def warned(action):
    """The warnings that a call gives, each line's shown once, as Python does unless told otherwise."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        action()
    return seen


def test_a_warning_names_the_function_the_bytes_and_the_way_out():
    with pytest.warns(GatherWarning) as seen:
        record_gather("np.f", ROWS)
    message = str(seen[0].message)
    assert message.startswith("np.f gathers 64 B, the whole of float64[4,2] {devices=[2,1]<=[2]}, because")
    assert "x.reshard(Sharding.replicated(2))" in message


def test_the_warning_is_of_the_line_that_calls_the_function():
    (seen,) = warned(lambda: record_gather("np.f", ROWS))
    assert seen.filename == __file__


def test_a_line_is_warned_of_once_whatever_it_gathers():
    def gather_twice():
        for array in (ROWS, SMALL, ROWS):
            record_gather("np.f", array)

    assert len(warned(gather_twice)) == 1


def test_another_function_on_the_same_line_is_warned_of_too():
    def gather_both():
        for name in ("np.f", "np.g"):
            record_gather(name, ROWS)

    assert len(warned(gather_both)) == 2


def test_what_was_asked_for_is_counted_without_a_warning():
    with explain() as report:
        record_gather("np.asarray", ROWS, is_asked_for=True)
    (operation,) = report.gathers
    assert (operation.name, operation.nbytes, report.counts) == ("np.asarray", 64, {"gather": 1})


def test_a_strict_block_refuses_to_gather_and_counts_nothing():
    with explain() as report, strict():
        with pytest.raises(GatherError, match=r"np\.f gathers 64 B"):
            record_gather("np.f", ROWS)
        with strict(False):
            record_gather("np.f", ROWS, is_asked_for=True)
    assert len(report.gathers) == 1
    record_gather("np.f", ROWS, is_asked_for=True)


def test_a_strict_block_holds_for_the_replicas_that_are_started_in_it():
    strategy = ringlet.MirroredStrategy(["CPU:0", "CPU:1"])
    with strict(), pytest.raises(GatherError):
        strategy.run(lambda: record_gather("np.f", ROWS))


def test_conversions_to_plain_arrays_are_counted_and_refused_by_strict_blocks():
    with explain() as report:
        np.testing.assert_array_equal(np.asarray(ROWS), np.arange(8.0).reshape(4, 2))
    assert [operation.name for operation in report.gathers] == ["np.asarray"]
    with strict(), pytest.raises(GatherError):
        np.asarray(ROWS)


def test_what_is_on_every_device_is_no_gather():
    everywhere = shard(np.arange(4.0), Sharding.replicated(2))
    with explain() as report, strict():
        np.asarray(everywhere)
        repr(ROWS)
    assert report.gathers == []


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (np.linalg.svd, r"for full_matrices=True or hermitian=True\. Pass full_matrices=False, which has one"),
        (lambda x: np.save(io.BytesIO(), x), r"a file holds the whole array\. Write np\.save\(path, x\.numpy\(\)\)"),
        (lambda x: np.savez(io.BytesIO(), x), r"Write np\.savez\(path, x=x\.numpy\(\)\)"),
    ],
)
def test_functions_with_a_known_alternative_name_it(call, advice):
    x = shard(np.ones((4, 2)), Sharding.tiled((2, 1)))
    with strict():
        with pytest.raises(GatherError, match=advice):
            call(x)
        np.linalg.svd(x, full_matrices=False)
        np.save(io.BytesIO(), x.numpy())
