import re

import pytest

from bench import tune
from bench.tune import Comparison


def comparison(size, small, direct, num_ranks=2):
    return Comparison(num_ranks, size, {"small": small, "direct": direct, "ring": direct}, 0.0)


@pytest.mark.parametrize(
    # SMALL / DIRECT at 8, 64 and 256 bytes; limit
    ("ratios", "limit"),
    [
        ((0.5, 0.5, 0.5), 256),
        ((0.5, 0.9, 1.2), 64),
        ((0.5, 1.2, 0.5), 8),  # a size at which it wins again does not count
        ((1.2, 0.5, 0.5), 0),
        ((1.0, 1.04, 1.06), 64),  # as near as two runs of the same
    ],
)
def test_payloads_travel_in_slots_as_far_as_that_is_never_slower(ratios, limit):
    sizes = (8, 64, 256)
    assert tune.winning_limit([comparison(size, [r], [1.0]) for size, r in zip(sizes, ratios, strict=True)]) == limit


def test_sizes_may_come_in_any_order():
    assert tune.winning_limit([comparison(64, [2.0], [1.0]), comparison(8, [0.5], [1.0])]) == 8


def test_algorithms_are_compared_inside_each_round():
    # The machine is ten times slower in the second round.
    assert tune.winning_limit([comparison(8, [0.9, 9.0, 0.9], [1.0, 10.0, 1.0])]) == 8


def test_nothing_measured_gives_no_slots():
    assert tune.winning_limit([]) == 0


def test_the_header_of_the_library_has_a_table_for_all_ranks():
    limits = tune.present_limits(tune.HEADER.read_text())
    assert max(limits) == 4096
    assert all(0 <= size <= 2000 for size in limits.values())


def test_a_written_table_is_read_back_and_nothing_else_changes():
    header = tune.HEADER.read_text()
    limits = {1: 2000, 2: 1536, 16: 512}
    written = tune.rewritten(header, limits, "a machine, 2 cores")
    assert tune.present_limits(written) == {1: 2000, 2: 1536, 4096: 512}
    assert "on a machine, 2 cores." in written.splitlines()[0]

    def rest(text):
        return re.sub(r"\A(//.*\n)+", "", re.sub(r" *\{\d+, \d+\},\n", "", text))

    assert rest(written) == rest(header)
    assert tune.rewritten(written, limits, "a machine, 2 cores") == written


def test_the_largest_number_of_ranks_stands_for_all_beyond():
    limits = {2: 2000, 4096: 512}
    assert [tune.limit_for(ranks, limits) for ranks in (1, 2, 3, 4096)] == [2000, 2000, 512, 512]


def test_a_header_without_the_table_is_refused():
    with pytest.raises(ValueError, match="no table kAutoTable"):
        tune.rewritten("#pragma once\n", {1: 8}, "a machine")


@pytest.mark.parametrize("sizes", ["8,2004", "6"])
def test_payloads_that_no_slot_carries_are_refused(sizes, capsys):
    with pytest.raises(SystemExit):
        tune.main(["--bytes", sizes])
    assert "slots carry 2000 bytes at most" in capsys.readouterr().err
