"""The section of docs/install.md about `ringlet doctor` and `ringlet bench`: its table and its recordings."""

from __future__ import annotations

import re
from pathlib import Path

from ringlet.launcher.commands import bench_command, doctor_command, machine_checks
from ringlet.launcher.commands.doctor_command import as_text
from ringlet.launcher.commands.machine_checks import CHECKS, Facts, Line, run_check

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "install.md").read_text(encoding="utf-8")
SECTION = DOCUMENT[DOCUMENT.index("## Is this machine ready?") : DOCUMENT.index("## Environment variables")]


def test_the_table_has_a_row_for_each_line():
    rows = re.findall(r"^\| ([a-z, ]+) \|.*\|.*\|$", SECTION, re.MULTILINE)
    names = [name.replace(" ", "_") for row in rows[1:] for name in row.split(", ")]
    assert names == [*CHECKS, "self_test"]


def test_the_recording_of_the_doctor_has_its_layout():
    line = Line(
        "note",
        "limit of 64",
        "Enough for a job of 16 processes.",
        "ulimit -n 4096 (hard limit 64), docker run --ulimit nofile=4096",
    )
    assert as_text({"open_files": line}) in SECTION
    error = run_check("cluster", CHECKS["cluster"], Facts({"TF_CONFIG": ""}))
    assert as_text({"cluster": error}) in SECTION
    assert all(option in SECTION for option in ("--json", "--no-self-test"))


def test_the_recording_of_the_benchmark_has_its_layout():
    row = {"bytes": 1 << 26, "seconds": 18.83e-3, "limit_seconds": 16.56e-3, "is_right": True}
    head, line = bench_command._table([row]).splitlines()
    assert head in SECTION
    assert line in SECTION


def test_the_numbers_are_those_of_the_code():
    assert f"within {doctor_command._SELF_TEST_SECONDS:.0f} s" in SECTION
    assert f"fewer than {machine_checks._FEW_FILES} are allowed" in SECTION
    assert f"less than {machine_checks._TOO_LITTLE_MEMORY_BYTES >> 20} MiB" in SECTION
