"""``ringlet bench``: its table, its JSON, and the check of the sums."""

from __future__ import annotations

import json
import re

import pytest

from ringlet.collectives import Group, empty_shared
from ringlet.launcher.command_line import WRONG_USE, main
from ringlet.launcher.commands import bench_command

SIZES = (8, 1 << 10, 1 << 20)


@pytest.fixture(autouse=True)
def _few_small_rounds(monkeypatch):
    monkeypatch.setattr(bench_command, "_SIZES", SIZES)
    monkeypatch.setattr(bench_command, "_ROUNDS", 1)


@pytest.mark.parametrize("dtype", bench_command._DTYPES)
def test_threads_measure_every_size_and_check_the_sums(dtype, capsys):
    assert main(["bench", "all_reduce", "-n", "3", "--dtype", dtype]) == 0
    head, _, columns, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith(f"all_reduce of {dtype} by 3 threads on ")
    assert columns.split() == ["size", "time", "limit", "x", "limit"]
    assert [row.split()[:2] for row in rows] == [["8", "B"], ["1", "KiB"], ["1", "MiB"]]
    assert all(re.fullmatch(r"( +[\d.]+ \w+){3} +[\d.]+", row) for row in rows), rows


def test_the_layout_of_the_table():
    rows = [
        {"bytes": 8, "seconds": 4e-6, "limit_seconds": 5e-7, "is_right": True},
        {"bytes": 1 << 20, "seconds": 1.5e-4, "limit_seconds": 1e-4, "is_right": False},
    ]
    assert bench_command._table(rows).splitlines() == [
        "    size       time      limit  x limit",
        "     8 B       4 us     500 ns      8.0",
        "   1 MiB     150 us     100 us      1.5  wrong sums",
    ]


def test_processes_and_json_with_stable_keys(capsys):
    assert main(["bench", "all_reduce", "-n", "2", "--processes", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {name: found[name] for name in ("collective", "ranks", "kind", "dtype")} == {
        "collective": "all_reduce",
        "ranks": 2,
        "kind": "processes",
        "dtype": "float32",
    }
    assert found["config"]["cores"]["count"] >= 1
    assert [row["bytes"] for row in found["rows"]] == list(SIZES)
    for row in found["rows"]:
        assert list(row) == ["bytes", "seconds", "limit_seconds", "is_right"]
        assert row["seconds"] > 0
        assert row["limit_seconds"] > 0
        assert row["is_right"]


def test_the_slowest_rank_of_each_round_and_the_median_of_the_rounds_count():
    one, other = ([1.0, 5.0, 3.0], [1.0, 1.0, 1.0], True), ([2.0, 1.0, 4.0], [2.0, 2.0, 3.0], False)
    assert bench_command._row(8, one, other) == {"bytes": 8, "seconds": 4.0, "limit_seconds": 2.0, "is_right": False}


def test_a_wrong_sum_gives_status_1_and_is_marked(monkeypatch, capsys):
    monkeypatch.setattr(bench_command, "_is_right", lambda rank, x: rank.rank != 1)
    assert main(["bench", "all_reduce", "-n", "2"]) == 1
    assert capsys.readouterr().out.count("wrong sums") == len(SIZES)


def test_sums_that_differ_in_one_element_are_wrong():
    class Wrong:
        rank, num_ranks = 0, 1

        def all_reduce(self, x, out):
            out[-1] += 1

    x = empty_shared(100, "int64")
    assert bench_command._is_right(Group(1).member(0), x)
    assert not bench_command._is_right(Wrong(), x)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        # arguments, part of the message
        (["-n", "0"], "-n must be an integer of at least 1, got '0'"),
        (["-n", "1000000"], "-n 1000000 needs"),
        (["--dtype", "float8"], "invalid choice: 'float8'"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(arguments, words, capsys, monkeypatch):
    monkeypatch.setattr(bench_command, "_SIZES", (1 << 26,))
    try:
        status = main(["bench", "all_reduce", *arguments])
    except SystemExit as end:
        status = end.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (WRONG_USE, "")
    assert words in printed.err
    assert printed.err.count("\n") == 1
