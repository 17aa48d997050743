import pytest

from bench import goals
from bench.collective_results import CollectiveResult
from bench.controller_results import ControllerResult
from bench.results import Cell, Result, Sample
from bench.target_results import TargetResult

KIB, MIB = 1 << 10, 1 << 20


def result(
    ranks,
    size,
    variant,
    *,
    python,
    native,
    processes=None,
    slowest=0.0,
    faults=0.0,
    algorithm="auto",
    dtype="float32",
    others=0.0,
):
    """A result of three equal rounds whose limit is one second."""
    return Result(
        Cell(ranks, size, dtype, "SUM"),
        algorithm,
        variant,
        python=[Sample(python, faults, slowest)] * 3,
        native=[Sample(native, faults, slowest)] * 3,
        limit=[1.0] * 3,
        gil_round=[1.0] * 3,
        others=others,
        processes=[] if processes is None else [Sample(processes, faults, slowest)] * 3,
    )


def verdicts(*results):
    return {(goal.number, goal.what): goal.verdict for goal in goals.all_reduce_goals(results)}


@pytest.mark.parametrize(
    # ranks, bytes, variant, goal, allowed ratio
    ("ranks", "size", "variant", "number", "allowed"),
    [
        (2, 8 * MIB, "in_place", "1", 1.15),
        (2, 256 * MIB, "in_place", "1", 1.15),
        (4, 8 * MIB, "in_place", "2", 1.3),
        (8, 64 * MIB, "in_place", "2", 1.15),
        (2, 256 * KIB, "in_place", "3", 1.4),
        (2, MIB, "in_place", "3", 1.4),
        (4, 8 * MIB, "out", "7", 1.15),
        (8, 64 * MIB, "shared", "7b", 1.2),
    ],
)
def test_a_ratio_goal_is_met_up_to_its_limit_and_missed_beyond(ranks, size, variant, number, allowed):
    reached = goals.all_reduce_goals(
        [result(ranks, size, variant, python=allowed + 0.01, native=allowed - 0.01)],
    )
    by_runner = {goal.what.split(", ")[1]: goal for goal in reached if "x limit" in goal.goal}
    assert {goal.number for goal in by_runner.values()} == {number}
    assert (by_runner["Python"].verdict, by_runner["C++"].verdict) == ("MISSED", "met")


def test_small_sizes_are_held_against_times_in_cpp_only():
    assert verdicts(
        result(2, 8, "in_place", python=1.0, native=0.2e-6),
        result(2, 32 * KIB, "in_place", python=1.0, native=1.1e-6),
        result(8, KIB, "in_place", python=1.0, native=4e-6, slowest=2e-3),
    ) == {
        ("4", "C++, P=2, 32 KiB"): "MISSED",
        ("5", "C++, P=2, 8 B"): "met",
        ("6", "C++, P=8, 1 KiB"): "met",
        ("6", "slowest call, C++, P=8, 1 KiB"): "MISSED",
    }


@pytest.mark.parametrize(
    # ranks, bytes, variant, goal, wanted of processes
    ("ranks", "size", "variant", "number", "wanted"),
    [
        (2, 8 * MIB, "in_place", "1", 1.15),
        (8, 8 * MIB, "in_place", "2", 1.3),
        (2, MIB, "in_place", "3", 1.4),
        (2, 32 * KIB, "in_place", "4", 1.5e-6),
        (2, 8, "in_place", "5", 0.5e-6),
        (4, KIB, "in_place", "6", 2.5e-6),
        (8, 8, "in_place", "6", 4.5e-6),
        (4, 64 * MIB, "out", "7", 1.15),
        (2, 8 * MIB, "shared", "7b", 1.2),
    ],
)
def test_processes_have_a_row_of_their_own(ranks, size, variant, number, wanted):
    for factor, verdict in ((0.99, "met"), (1.01, "MISSED")):
        seen = verdicts(result(ranks, size, variant, python=1.0, native=1.0, processes=wanted * factor))
        rows = {key: held for key, held in seen.items() if "processes" in key[1] and "call" not in key[1]}
        assert [(key[0], held) for key, held in rows.items()] == [(number, verdict)]


def test_processes_have_no_tail_of_a_millisecond_and_no_page_faults():
    tail = verdicts(result(8, 8, "in_place", python=1.0, native=1.0, processes=1e-6, slowest=2e-3))
    assert tail["6", "slowest call, processes, P=8, 8 B"] == "MISSED"
    faults = verdicts(result(2, 8 * MIB, "shared", python=1.0, native=1.0, processes=1.0, faults=9.0))
    assert faults["7", "page faults a call, of the pages of a result, out and shared, processes"] == "MISSED"


def test_eight_processes_beat_the_limit_of_in_place_with_a_shared_result():
    seen = verdicts(
        result(8, 8 * MIB, "in_place", python=1.0, native=1.0, processes=1.0),
        result(8, 8 * MIB, "shared", python=1.0, native=1.0, processes=0.6),
    )
    assert seen["7b", "in-place limit / shared, processes, P=8, 8 MiB"] == "met"


def test_of_processes_that_were_not_measured_nothing_is_said():
    assert not [what for _, what in verdicts(result(2, 8, "in_place", python=1.0, native=1.0)) if "processes" in what]


def test_page_faults_in_steady_state_miss_goal_7():
    what = "page faults a call, of the pages of a result, out and shared, Python"
    huge_pages = 8 * MIB // (2 * MIB)
    for faults, verdict in ((huge_pages, "MISSED"), (1.0, "met")):
        seen = verdicts(result(2, 8 * MIB, "shared", python=1.0, native=1.0, faults=faults))
        assert seen["7", what] == verdict


def test_eight_ranks_beat_the_limit_of_in_place_with_a_shared_result():
    seen = verdicts(
        result(8, 8 * MIB, "in_place", python=1.0, native=1.0),
        result(8, 8 * MIB, "shared", python=0.7, native=0.6),
    )
    name = "in-place limit / shared, {}, P=8, 8 MiB"
    assert (seen["7b", name.format("Python")], seen["7b", name.format("C++")]) == ("MISSED", "met")


@pytest.mark.parametrize("changes", [{"algorithm": "ring"}, {"dtype": "float64"}])
def test_other_algorithms_and_dtypes_have_no_goals(changes):
    assert verdicts(result(2, 8 * MIB, "in_place", python=9.0, native=9.0, **changes)) == {}


@pytest.mark.parametrize("ratio", [1.0, 9.0])
def test_no_ratio_is_judged_while_others_took_the_cores(ratio):
    seen = verdicts(result(2, 8 * MIB, "in_place", python=ratio, native=ratio, others=0.3))
    assert set(seen.values()) == {"disturbed"}


def test_nothing_is_judged_that_beats_the_machine():
    seen = verdicts(result(2, 8 * MIB, "in_place", python=0.5, native=1.0))
    assert list(seen.values()) == ["disturbed", "met"]


def test_a_time_that_is_met_in_spite_of_others_is_met():
    assert set(verdicts(result(2, 8, "in_place", python=1.0, native=1e-7, others=0.5)).values()) == {"met"}
    assert set(verdicts(result(2, 8, "in_place", python=1.0, native=1.0, others=0.5)).values()) == {"disturbed"}


def test_the_table_says_met_or_missed():
    met = goals.at_most("13", "run", 2.0, 1.0, str)
    missed = goals.at_most("14", "step", 2.0, 3.0, str)
    lines = goals.table([met, missed]).splitlines()
    assert lines[2].split() == ["13", "run", "<=", "2.0", "1.0", "met"]
    assert lines[3].endswith("MISSED")


def collective_result(collective, size, *, python, native, processes=None, ranks=2, others=0.0):
    plain = result(ranks, size, "out", python=python, native=native, processes=processes, others=others)
    return CollectiveResult(**vars(plain), collective=collective)


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "broadcast", "all_to_all"])
def test_other_collectives_stay_near_their_own_limit_from_8_mib_up(collective):
    reached = goals.collective_goals([
        collective_result(collective, 8 * MIB, python=1.21, native=1.19),
        collective_result(collective, MIB, python=9.0, native=9.0),
    ])  # fmt: skip
    place = f"{collective}, out, {{}}, P=2, 8 MiB"
    assert {(goal.number, goal.what): goal.verdict for goal in reached} == {
        ("10", place.format("Python")): "MISSED",
        ("10", place.format("C++")): "met",
    }


def test_of_many_ranks_and_sizes_the_worst_is_shown():
    reached = goals.collective_goals([
        collective_result("broadcast", 8 * MIB, python=1.1, native=1.3, ranks=4),
        collective_result("broadcast", 64 * MIB, python=1.2, native=1.1, ranks=2),
    ])  # fmt: skip
    assert [(goal.what, goal.verdict) for goal in reached] == [
        ("broadcast, out, Python, P=2, 64 MiB", "met"),
        ("broadcast, out, C++, P=4, 8 MiB", "MISSED"),
    ]


def test_other_collectives_of_processes_stay_near_it_too():
    *_, last = goals.collective_goals([
        collective_result("broadcast", 64 * MIB, python=1.0, native=1.0),
        collective_result("broadcast", 8 * MIB, python=1.0, native=1.0, processes=1.3),
    ])  # fmt: skip
    assert (last.number, last.what, last.verdict) == ("10", "broadcast, out, processes, P=2, 8 MiB", "MISSED")


def test_a_gather_has_no_goal():
    assert goals.collective_goals([collective_result("gather", 8 * MIB, python=9.0, native=9.0)]) == []


def controller_result(size, *, seconds, numpy, job="shared", others=0.0):
    calls = {"call()": [seconds] * 3}
    by_workers = dict.fromkeys(("default", "1", "2"), calls)
    return ControllerResult(Cell(2, size, "float32", "SUM"), job, by_workers, {"add in turn": [numpy] * 3}, others)


def test_a_controller_is_held_against_half_a_microsecond_and_against_numpy():
    reached = goals.controller_goals([
        controller_result(8, seconds=0.4e-6, numpy=0.5e-6),
        controller_result(KIB, seconds=1.0, numpy=0.9),
        controller_result(256 * KIB, seconds=1.0, numpy=2.6),
        controller_result(MIB, seconds=1.0, numpy=2.4),
    ])  # fmt: skip
    assert [(goal.number, goal.what, goal.reached, goal.verdict) for goal in reached] == [
        ("9", "shared, P=2, 8 B", "400 ns", "met"),
        ("9", "NumPy / ringlet, shared, workers default, P=2, 1 KiB", "0.90", "MISSED"),
        ("9", "NumPy / ringlet, shared, workers 2, P=2, 1 MiB", "2.40", "MISSED"),
    ]


def test_sizes_that_were_not_measured_have_no_goal():
    reached = goals.controller_goals([controller_result(KIB, seconds=1.0, numpy=1.1)])
    assert [goal.verdict for goal in reached] == ["met"]


def test_a_controller_that_others_disturbed_is_not_judged():
    reached = goals.controller_goals([controller_result(8, seconds=1.0, numpy=0.5, others=0.3)])
    assert [goal.verdict for goal in reached] == ["disturbed", "disturbed"]


def target_result(op, **seconds):
    cell = Cell(2, MIB, "float32", op)
    return TargetResult(cell, "in_place", {name: [value] * 3 for name, value in seconds.items()}, 0.0)


def test_older_cpus_are_held_against_avx512_where_it_is_worst():
    reached = goals.target_goals([
        target_result("SUM", avx512=1.0, avx2=1.05, portable=1.7),
        target_result("MAX", avx512=1.0, avx2=1.1, portable=1.2),
    ])  # fmt: skip
    assert [(goal.what, goal.reached, goal.verdict) for goal in reached] == [
        ("avx2 / avx512, float32 MAX, in_place, 1 MiB", "1.10", "met"),
        ("portable / avx512, float32 SUM, in_place, 1 MiB", "1.70", "MISSED"),
    ]


def test_without_avx512_there_is_nothing_to_hold_others_against():
    assert goals.target_goals([target_result("SUM", avx2=1.0, portable=2.0)]) == []
