import argparse
import json

import pytest

from bench import targets
from bench.results import Cell
from bench.target_results import TargetResult, table

MIB = 1 << 20


def result(seconds, *, dtype="float32", op="SUM", size=MIB):
    return TargetResult(Cell(2, size, dtype, op), "in_place", seconds, 0.0)


def test_targets_are_compared_inside_each_round():
    drifting = result({"avx512": [1.0, 10.0, 1.0], "portable": [1.5, 15.0, 1.5]})
    assert drifting.times("portable", "avx512").values == (1.5, 1.5, 1.5)


def test_the_table_has_a_ratio_to_the_best_target_for_every_other_one():
    header, _, row = table([result({"avx512": [1e-3], "avx2": [1.1e-3], "portable": [1.5e-3]})]).splitlines()
    assert header.split("  ")[0] == "dtype"
    assert "avx2 / avx512" in header
    assert row.split()[-3:-1] == ["1.10", "1.50"]


def test_nothing_measured_is_an_empty_table():
    assert len(table([]).splitlines()) == 2


def test_a_result_is_json():
    median = result({"avx512": [1.0], "avx2": [2.0]}).as_dict()["median"]
    assert json.loads(json.dumps(median)) == {
        "avx512": {"seconds": 1.0, "over_avx512": 1.0},
        "avx2": {"seconds": 2.0, "over_avx512": 2.0},
    }


@pytest.mark.parametrize("text", ["float32", "float31:SUM", "float32:XOR", "bool:SUM", ":SUM", "float32:sum"])
def test_a_case_that_there_is_not_is_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match=f"'{text}' is not dtype:operation"):
        targets.parse_case(text)


def test_each_target_is_a_process_of_its_own(tmp_path):
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$RINGLET_CPU $@" >> {tmp_path}/asked\n'
        'echo \'[{"variant": "in_place", "seconds": 2.0}, {"variant": "out", "seconds": 3.0}]\'\n'
    )
    program.chmod(0o755)
    options = argparse.Namespace(variants=["in_place", "out"], milliseconds=1.0, rounds=2)
    results = targets._measure_cell(Cell(2, 64, "float32", "SUM"), options, program, ["avx2", "portable"])
    asked = [line.split()[0] for line in (tmp_path / "asked").read_text().splitlines()]
    assert asked == ["avx2", "portable", "portable", "avx2"]
    assert {one.variant: one.seconds["avx2"] for one in results} == {"in_place": [2.0, 2.0], "out": [3.0, 3.0]}
