import doctest
import importlib
import json
import sys

import pytest

from bench import compare
from bench.compare_goals import peer_goals
from bench.compare_results import (
    CONTROLLER,
    CPP,
    LIMIT,
    PRIVATE,
    PROCESSES,
    PYTHON,
    Measured,
    Task,
    best_of,
    ratio,
)
from bench.compare_tables import Section, as_markdown, as_text, disturbance_section, panels, ratio_sections
from bench.compare_tables import time_sections as time_sections_of
from bench.environments import ENVIRONMENTS
from bench.machine import ROOT
from bench.peer_table import DEFAULT_PEERS, OWN_PROCESSES, PEERS

KIB, MIB = 1 << 10, 1 << 20

MODULES = (
    "busy_loops",
    "compare_measure",
    "compare_results",
    "compare_ringlet",
    "compare_tables",
    "job_processes",
    "peer_table",
)


@pytest.mark.parametrize("name", [*MODULES, "peers.peer"])
def test_the_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(f"bench.{name}")).failed == 0


# --- which peers ------------------------------------------------------------------------------------------------------


def make_ready(folder, *names):
    for name in names:
        (folder / name / "bin").mkdir(parents=True)
        (folder / name / "bin" / "python").touch()
        made = {"packages": list(ENVIRONMENTS[name].packages), "version": "1"}
        (folder / name / "ready.json").write_text(json.dumps(made))


def test_every_peer_has_an_environment_and_a_script():
    assert {kind.environment for kind in PEERS.values()} <= ENVIRONMENTS.keys()
    kinds = {**PEERS, **OWN_PROCESSES}.values()
    assert all((ROOT / "bench" / "peers" / kind.script).exists() for kind in kinds)


def test_without_the_required_environments_the_command_that_makes_them_is_named(tmp_path, capsys):
    make_ready(tmp_path, "openmpi", "jax", "tensorflow")
    assert compare.main(["--environments", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "no environment for mpich, gloo below" in said
    assert f"python -m bench.environments mpich gloo --into {tmp_path}" in said


def test_without_an_optional_environment_its_peers_are_left_out(tmp_path):
    make_ready(tmp_path, "openmpi", "mpich", "gloo", "jax")
    assert compare.chosen_peers(None, tmp_path) == ["openmpi", "mpich", "gloo", "jax", "numpy", "numpy-processes"]
    make_ready(tmp_path, "impi", "tensorflow")
    assert compare.chosen_peers(None, tmp_path) == list(DEFAULT_PEERS)


def test_peers_that_are_asked_for_must_be_there(tmp_path):
    make_ready(tmp_path, "impi")
    assert compare.chosen_peers(["impi-wait", "numpy"], tmp_path) == ["impi-wait", "numpy"]
    with pytest.raises(FileNotFoundError, match=r"bench\.environments openmpi --into"):
        compare.chosen_peers(["openmpi", "impi"], tmp_path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--peers", "openmp"], "'openmp' is not a list of openmpi, "),
        (["--collectives", "all_reduce,scan"], "'all_reduce,scan' is not a list of all_reduce, "),
        (["--bytes", "1KB"], "invalid parse_sizes value"),
        (["--bytes", "9"], "9 bytes are no whole number of float32 elements"),
        (["--busy=-1"], "argument --busy: takes a number of busy loops, 0 or more, and was given '-1'"),
        (["--busy", "one"], "argument --busy: takes a number of busy loops, 0 or more, and was given 'one'"),
        (["--ranks", "1,2"], "nothing to compare with a single rank"),
        (["--dtype", "int8"], "not for SUM of int8"),
        (["--op", "MEAN"], "not for MEAN of float32"),
    ],
)
def test_arguments_that_cannot_be_measured_are_refused(arguments, said, capsys):
    with pytest.raises(SystemExit):
        compare.main(arguments)
    assert said in capsys.readouterr().err


def test_launchers_start_all_ranks_and_scripts_of_one_process_themselves(tmp_path):
    make_ready(tmp_path, *ENVIRONMENTS)
    bin_folder = str(tmp_path / "mpich" / "bin")
    assert PEERS["mpich"].command(tmp_path, 4)[:6] == [f"{bin_folder}/mpiexec", "-launcher", "fork", "-n", "4",
                                                       f"{bin_folder}/python"]  # fmt: skip
    assert PEERS["tensorflow"].command(tmp_path, 4)[0] == str(tmp_path / "tensorflow" / "bin" / "python")


def test_processes_of_ringlet_run_in_this_interpreter(tmp_path):
    script = str(ROOT / "bench" / "peers" / "ringlet_ranks.py")
    assert {name: kind.command(tmp_path, 4) for name, kind in OWN_PROCESSES.items()} == {
        PROCESSES: [sys.executable, script, "--memory", "shared"],
        PRIVATE: [sys.executable, script, "--memory", "private"],
    }


def test_processes_can_be_left_out_and_are_where_there_are_none(tmp_path, monkeypatch, capsys):
    assert compare._parse([]).processes == (sys.platform == "linux")
    assert not compare._parse(["--no-processes"]).processes
    monkeypatch.setattr(compare, "_HAS_PROCESSES", False)
    assert not compare._parse([]).processes
    with pytest.raises(SystemExit):
        compare.main(["--processes", "--environments", str(tmp_path)])
    assert "groups of processes need Linux" in capsys.readouterr().err


def test_what_to_type_to_measure_the_same_leaves_out_the_same(monkeypatch):
    monkeypatch.setattr(compare, "_HAS_PROCESSES", True)
    assert "processes" not in compare._command(compare._parse([]))
    assert compare._command(compare._parse(["--no-processes"])).endswith(" --no-processes")
    assert not {"--busy", "--unpinned"} & set(compare._command(compare._parse([])).split())
    assert compare._command(compare._parse(["--unpinned", "--busy", "2"])).endswith(" --busy 2 --unpinned")


def test_ranks_of_open_mpi_give_way_only_where_cores_are_few(monkeypatch):
    monkeypatch.setattr("bench.peer_table.usable_cores", lambda: [0, 1])
    assert "OMPI_MCA_mpi_yield_when_idle" not in PEERS["openmpi"].environment_variables(2)
    assert PEERS["openmpi"].environment_variables(4)["OMPI_MCA_mpi_yield_when_idle"] == "1"


# --- goals ------------------------------------------------------------------------------------------------------------


def measured(who, family, seconds, *, ranks=2, size=8 * MIB, collective="all_reduce", variant="in_place", others=0.0):
    rounds = tuple(seconds) if isinstance(seconds, tuple) else (seconds,) * 3
    return Measured(Task(ranks, collective, variant, size), who, family, rounds, others=others)


def ours(seconds=1.0, who=PYTHON, **changes):
    return measured(who, "ringlet", seconds, **changes)


def verdicts(*given):
    return {(held.goal.number, held.goal.what.split(", against ")[-1]): held.goal.verdict for held in peer_goals(given)}


@pytest.mark.parametrize(
    # goal, families, times, who, changes
    ("number", "family", "times", "who", "changes"),
    [
        ("1", "MPI", 3.0, PYTHON, {}),
        ("1", "gloo", 10.0, PYTHON, {"size": 256 * MIB}),
        ("1", "JAX", 5.0, PYTHON, {}),
        ("1", "TensorFlow", 5.0, PYTHON, {"size": 64 * MIB}),
        ("2", "MPI", 5.0, PYTHON, {"ranks": 4}),
        ("2", "MPI", 3.0, PYTHON, {"ranks": 8}),
        ("3", "MPI", 4.5, PYTHON, {"size": 256 * KIB}),
        ("3", "MPI", 3.5, PYTHON, {"size": MIB, "ranks": 8}),
        ("4", "MPI", 5.0, CPP, {"size": 32 * KIB}),
        ("5", "MPI", 2.0, CPP, {"size": 8}),
        ("6", "MPI", 4.0, CPP, {"size": KIB, "ranks": 4}),
        ("6", "MPI", 7.0, CPP, {"size": 8, "ranks": 8}),
        ("9", "NumPy", 1.0, CONTROLLER, {"size": 32 * KIB}),
        ("9", "NumPy", 2.5, CONTROLLER, {"size": 256 * KIB, "ranks": 8}),
        ("10", "MPI", 2.5, PYTHON, {"collective": "reduce_scatter", "variant": "out"}),
        ("10", "MPI", 2.5, PYTHON, {"collective": "broadcast"}),
        ("1", "MPI", 3.0, PROCESSES, {}),
        ("1", "gloo", 10.0, PROCESSES, {}),
        ("1", "JAX", 5.0, PROCESSES, {}),
        ("2", "MPI", 5.0, PROCESSES, {"ranks": 4}),
        ("3", "MPI", 3.5, PROCESSES, {"size": MIB, "ranks": 8}),
        ("4", "MPI", 5.0, PROCESSES, {"size": 32 * KIB}),
        ("5", "MPI", 2.0, PROCESSES, {"size": 8}),
        ("6", "MPI", 7.0, PROCESSES, {"size": 8, "ranks": 8}),
        ("10", "MPI", 2.5, PROCESSES, {"collective": "all_to_all", "variant": "out"}),
        ("8", "MPI", 1.0, PRIVATE, {"size": 8}),
        ("8", "MPI", 1.0, PRIVATE, {"size": 64 * MIB, "ranks": 8}),
        ("8", "MPI", 1.0, PRIVATE, {"size": 32 * KIB, "collective": "all_gather", "variant": "out"}),
    ],
)
def test_a_goal_is_met_from_so_many_times_on(number, family, times, who, changes):
    for factor, verdict in ((1.01, "met"), (0.99, "MISSED")):
        seen = verdicts(ours(who=who, **changes), measured("peer", family, times * factor, **changes))
        assert {key[0]: value for key, value in seen.items()} == {number: verdict}


@pytest.mark.parametrize(("ranks", "times"), [(2, 1.7), (4, 1.5)])
@pytest.mark.parametrize("variant", ["in_place", "out"])
def test_private_arrays_are_reduced_faster_than_by_mpi_and_never_slower(ranks, times, variant):
    for factor, verdict in ((1.01, "met"), (0.99, "MISSED")):
        where = {"ranks": ranks, "size": MIB, "variant": variant}
        seen = peer_goals([ours(who=PRIVATE, **where), measured("mpi", "MPI", times * factor, **where)])
        assert [(held.goal.number, held.goal.goal, held.goal.verdict) for held in seen] == [
            ("8", f">= {times} x", verdict), ("8", ">= 1 x", "met"),
        ]  # fmt: skip


def test_where_private_arrays_are_never_to_be_slower_the_worst_is_told():
    sizes, seconds = (8, KIB, 32 * KIB), (2.0, 0.9, 1.1)
    given = [ours(who=PRIVATE, size=size, ranks=8) for size in sizes]
    given += [measured("mpi", "MPI", time, size=size, ranks=8) for size, time in zip(sizes, seconds, strict=True)]
    (held,) = peer_goals(given)
    assert (held.goal.what, held.goal.reached, held.goal.verdict) == (
        "worst, all_reduce in_place, processes, private, P=8, 1 KiB, against MPI", "0.90 x", "MISSED",
    )  # fmt: skip


def test_shared_arrays_are_not_held_to_what_private_ones_are():
    seen = verdicts(ours(who=PROCESSES, size=8, ranks=8), measured("mpi", "MPI", 9.0, size=8, ranks=8))
    assert "8" not in {number for number, _ in seen}


def test_the_fastest_of_a_family_counts_and_is_named():
    given = [ours(), measured("slow", "MPI", 9.0), measured("fast", "MPI", 2.0), measured("numpy", "NumPy", 0.1)]
    (held,) = peer_goals(given)
    assert (held.best_peer, held.goal.reached, held.goal.verdict) == ("fast 2.00 s", "2.00 x", "MISSED")


def test_ratios_are_formed_inside_rounds():
    # The machine is ten times slower in the second round: both are.
    (held,) = peer_goals([ours((1.0, 10.0, 1.0)), measured("mpi", "MPI", (4.0, 40.0, 5.0))])
    assert held.goal.reached == "4.00 x"


def test_a_peer_without_a_time_is_no_rival():
    failed = Measured(Task(2, "all_reduce", "in_place", 8 * MIB), "fast", "MPI", (), "timed out")
    assert best_of([failed], ["MPI"]) is None
    assert peer_goals([ours(), failed]) == []
    (held,) = peer_goals([ours(), failed, measured("slow", "MPI", 9.0)])
    assert held.best_peer == "slow 9.00 s"


def test_jax_and_tensorflow_count_with_whatever_they_do_for_all_ranks():
    seen = peer_goals([ours(), measured("jax", "JAX", 9.0), measured("jax", "JAX", 6.0, variant="out"),
                       measured("tensorflow", "TensorFlow", 1.0, variant="shared")])  # fmt: skip
    assert [held.best_peer for held in seen] == ["jax 6.00 s"]


def test_results_out_of_place_and_shared_are_told_without_a_goal():
    seen = peer_goals([ours(variant="out"), measured("mpi", "MPI", 3.0, variant="out"),
                       ours(variant="shared"), measured("numpy", "NumPy", 2.0)])  # fmt: skip
    assert [(held.goal.number, held.goal.goal, held.goal.reached, held.goal.verdict) for held in seen] == [
        ("7", "-", "3.00 x", "-"), ("7b", "-", "2.00 x", "-"),
    ]  # fmt: skip


def test_nothing_is_judged_while_others_took_the_cores():
    assert set(verdicts(ours(others=0.3), measured("mpi", "MPI", 9.0)).values()) == {"disturbed"}


@pytest.mark.parametrize(
    # seconds, others, verdict
    ("seconds", "others", "verdict"),
    [(0.4e-6, 0.0, "met"), (0.4e-6, 0.5, "met"), (0.6e-6, 0.0, "MISSED"), (0.6e-6, 0.5, "disturbed")],
)
def test_one_thread_reduces_eight_bytes_in_half_a_microsecond(seconds, others, verdict):
    (held,) = peer_goals([ours(seconds, who=CONTROLLER, size=8, others=others)])
    assert (held.goal.number, held.goal.verdict) == ("9", verdict)


# --- tables -----------------------------------------------------------------------------------------------------------

SMALL = [
    measured(LIMIT, "limit", 1e-6, size=8),
    ours(2e-6, size=8, others=0.02),
    measured("mpi", "MPI", 8e-6, size=8),
    ours(4e-6, size=KIB),
    Measured(Task(2, "all_reduce", "in_place", KIB), "mpi", "MPI", (), "timed out"),
    ours(3e-6, size=8, variant="out"),
]


def test_times_stand_in_a_table_for_each_variant_and_what_there_is_not_says_why():
    in_place, out = time_sections_of(SMALL)
    assert (in_place.title, out.title) == ("Time of all_reduce, in_place, P=2", "Time of all_reduce, out, P=2")
    assert list(in_place.columns) == ["who", "8 B", "1 KiB"]
    assert in_place.rows == [["limit", "1.00 us", ""], [PYTHON, "2.00 us", "4.00 us"], ["mpi", "8.00 us", "timed out"]]


def test_ratios_are_ringlet_over_the_limit_and_peers_over_ringlet():
    (section,) = ratio_sections(SMALL)
    assert section.rows == [[f"{PYTHON} / limit", "2", ""], [f"mpi / {PYTHON}", "4", ""]]


def test_one_thread_with_all_buffers_stands_beside_numpy_only():
    both = [ours(1.0, who=CONTROLLER), measured("mpi", "MPI", 2.0), measured("numpy", "NumPy", 3.0)]
    (section,) = ratio_sections(both)
    assert section.rows == [[f"numpy / {CONTROLLER}", "3"]]


def test_what_others_took_is_told_for_each_cell():
    section = disturbance_section(SMALL[1:2])
    assert section.rows == [["2", "2%"]]


def test_a_document_has_headings_and_tables_and_a_terminal_columns():
    sections = [Section("Empty", (), (), "Nothing."), Section("Two", ("a", "b"), (("x", "1"),), "Said.")]
    assert as_markdown(sections).splitlines() == [
        "## Empty", "", "Nothing.", "", "## Two", "", "Said.", "", "| a | b |", "| --- | ---: |", "| x | 1 |",
    ]  # fmt: skip
    assert as_text(sections).splitlines() == ["Empty:", "Nothing.", "", "Two:", "Said.", "a  b", "-  -", "x  1"]


def test_a_panel_for_each_question_shows_times_over_the_limit_with_all_curves_in_one_order():
    seen = panels([*SMALL, measured("mpi", "MPI", 1.0, ranks=4)])
    assert list(seen) == ["all_reduce in_place, 2 ranks", "all_reduce out, 2 ranks"]
    assert [list(curves) for curves in seen.values()] == [["limit", "ringlet, Python", "mpi"]] * 2
    assert seen["all_reduce in_place, 2 ranks"]["limit"] == [(8.0, 1.0)]
    assert seen["all_reduce in_place, 2 ranks"]["mpi"] == [(8.0, 8.0)]
    assert seen["all_reduce out, 2 ranks"]["mpi"] == []


def test_what_is_measured_can_be_written_as_json():
    (written,) = json.loads(json.dumps([SMALL[1].as_dict()]))
    assert (written["who"], written["median"], written["spread"]) == (PYTHON, 2e-6, 0.0)
    assert json.loads(json.dumps(SMALL[4].as_dict()))["failure"] == "timed out"


def test_the_ratio_of_two_is_the_median_over_rounds():
    assert ratio(measured("a", "MPI", (2.0, 9.0, 4.0)), ours((1.0, 3.0, 4.0))) == 2.0
