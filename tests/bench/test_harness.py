from types import SimpleNamespace

import pytest

from bench import harness

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize(
    # text, bytes
    ("text", "size"),
    [("8B", 8), ("8", 8), ("1KiB", KIB), ("64 MiB", 64 * MIB), ("1GiB", 1 << 30), (" 3KiB ", 3 * KIB)],
)
def test_a_size_is_a_whole_number_with_a_binary_unit(text, size):
    assert harness.parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "1.5MiB", "-8B", "0B", "1KB", "8 b", "1e3"])
def test_anything_else_is_refused_and_quoted(text):
    with pytest.raises(ValueError, match=f"'{text}' is not a size"):
        harness.parse_bytes(text)


@pytest.mark.parametrize(
    # text, sizes
    ("text", "sizes"),
    [
        ("1KiB", [KIB]),
        ("64KiB,1KiB,1024B", [KIB, 64 * KIB]),
        ("8B:256MiB", [8, KIB, 32 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB]),
        ("100B:2KiB", [100, KIB, 2 * KIB]),
        ("8B:8B", [8]),
        ("1KiB:16KiB:4", [KIB, 4 * KIB, 16 * KIB]),
        ("1KiB:20KiB:4", [KIB, 4 * KIB, 16 * KIB, 20 * KIB]),
        ("1B:1000000000B:10", [10**i for i in range(10)]),
    ],
)
def test_a_list_of_sizes_takes_sizes_and_ranges(text, sizes):
    assert harness.parse_sizes(text) == sizes


@pytest.mark.parametrize("text", ["1MiB:1KiB", "1:2:3:4", "1KiB:1MiB:1", "1KiB:1MiB:x", "1KiB,,2KiB", "8B-1KiB"])
def test_a_malformed_range_is_refused(text):
    with pytest.raises(ValueError, match="is not a"):
        harness.parse_sizes(text)


@pytest.mark.parametrize("text", ["", "0", "2,x", "2;4", "-2", "2.0"])
def test_a_malformed_list_of_counts_is_refused(text):
    with pytest.raises(ValueError, match="not a list of counts"):
        harness.parse_counts(text)


@pytest.mark.parametrize("size", [8, 1500, KIB, 96 * KIB, 8 * MIB, 3 << 30])
def test_a_written_size_reads_back(size):
    assert harness.parse_bytes(harness.format_bytes(size)) == size


def test_statistics_keep_the_order_of_rounds():
    assert harness.Statistics((3.0, 1.0, 2.0)).values == (3.0, 1.0, 2.0)


def test_one_disturbed_round_moves_neither_median_nor_spread():
    statistics = harness.Statistics((1.0, 1.0, 50.0, 1.0, 1.0))
    assert (statistics.median, statistics.spread, statistics.maximum) == (1.0, 0.0, 50.0)


def test_the_spread_is_the_distance_of_the_quartiles_over_the_median():
    assert harness.Statistics((1.0, 2.0, 3.0, 4.0, 5.0)).spread == pytest.approx(2 / 3)


def test_a_single_round_has_no_spread():
    assert harness.Statistics((4.0,)).spread == 0.0


def test_there_are_no_statistics_of_nothing():
    with pytest.raises(ValueError, match="no median of no measurements"):
        harness.Statistics(())


def test_ratios_are_formed_inside_each_round():
    # The machine is ten times slower in the second round: both subjects are, and their ratio is not.
    assert harness.ratios([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]).values == (2.0, 2.0, 2.0)


def test_ratios_need_the_same_rounds():
    with pytest.raises(ValueError, match="2 rounds cannot be divided by 3"):
        harness.ratios([1.0, 2.0], [1.0, 2.0, 3.0])


def test_subjects_take_turns_forwards_and_backwards():
    calls = []
    harness.alternate({name: lambda name=name: calls.append(name) for name in "abc"}, rounds=3, warm_up=1)
    assert "".join(calls) == "abccbaabccba"


def test_warm_up_rounds_are_dropped():
    answers = iter(range(10))
    assert harness.alternate({"a": lambda: next(answers)}, rounds=2, warm_up=3) == {"a": [3, 4]}


def test_a_region_has_enough_calls_whatever_they_cost():
    assert harness.calls_for(1e-3, 0.02) == 20
    assert harness.calls_for(10.0, 0.02) == 3
    assert harness.calls_for(0.0, 0.02) == 100_000


def test_a_region_is_filled_with_calls_and_the_time_of_one_is_given(monkeypatch):
    now, calls = [0.0], []

    def call():
        calls.append(now[0])
        now[0] += 0.5 if len(calls) == 1 else 0.25  # the first one is slow, and is none of those that are timed

    monkeypatch.setattr(harness, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    assert harness.seconds_per_call(call, 4.0) == 0.25
    assert len(calls) == 1 + 8


def test_bus_bandwidth_is_that_of_the_bytes_any_algorithm_moves():
    assert harness.bus_bandwidth(8000, 1.0, 2) == 8000
    assert harness.bus_bandwidth(8000, 1.0, 8) == 14000


def test_available_memory_is_less_than_a_machine_can_have():
    assert 1 << 20 < harness.available_memory_bytes() < 1 << 50
