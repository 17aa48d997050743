"""``ringlet tpu``: what it is asked, what it answers, and how it refuses."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ringlet import tpu
from ringlet.launcher.command_line import WRONG_USE, main
from ringlet.tpu import DeviceAssignment, Topology

# The example of the manual.
EXAMPLE = ["tpu", "v4-512", "--all-reduce", "1GiB"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    """What the command prints as JSON."""
    assert main(["tpu", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line that a wrong command line gets."""
    try:
        status = main(["tpu", *arguments])
    except SystemExit as end:
        status = end.code
    printed = capsys.readouterr()
    assert (status, printed.out) == (WRONG_USE, "")
    assert printed.err.count("\n") == 1
    return printed.err


def test_the_example_of_the_manual_shows_slice_hosts_assignment_times_and_busiest_links(capsys):
    assert main(EXAMPLE) == 0
    text = capsys.readouterr().out
    for words in (
        "Topology of a v4-512 slice",
        "hosts     64",
        "Assignment of 256 replicas of 1 chip",
        "all_reduce of 1 GiB over 256 devices",
        "rotated",
        "sequential",
        "lower bound",
        "bound by ICI",
        "busiest of 1536 links in use",
        "0,0,0 -> 1,0,0: ",
    ):
        assert words in text


def test_json_has_what_the_library_answers(capsys):
    found = answer(capsys, *EXAMPLE[1:])
    topology = Topology.from_accelerator_type("v4-512", megacore=True)
    assignment = DeviceAssignment.build(topology, num_replicas=256)
    cost = assignment.cost("all_reduce", 2**30)
    assert found["assignment"]["core_assignment"] == assignment.core_assignment.tolist()
    assert found["slice"]["chip_shape"] == [4, 8, 8]
    (collective,) = found["collectives"]
    assert collective["seconds_by_algorithm"] == cost.times
    assert (collective["bound"], collective["seconds"]) == (cost.bound, cost.seconds)
    assert [link["nbytes"] for link in collective["busiest_links"]] == [link.nbytes for link in cost.busiest_links()]
    assert found["step"] is None


def test_by_default_as_many_replicas_as_find_room(capsys):
    assert answer(capsys, "v5e-64")["assignment"]["num_replicas"] == 64
    found = answer(capsys, "v5e-64", "--computation-shape", "2,2,1,1", "--computation-stride", "2,2,1,1")
    assert found["assignment"]["num_replicas"] == 16


@pytest.mark.parametrize(
    ("arguments", "chips", "devices"),
    [
        # One device per chip where the generation combines the cores of a chip, one per core elsewhere.
        (["v4-128"], 64, 64),
        (["v4-128", "--megacore"], 64, 64),
        (["v4-128", "--no-megacore"], 64, 128),
        (["v5p-16"], 8, 8),
        (["v3-32"], 16, 32),
        (["v5e-16"], 16, 16),
        (["tpu7x-16"], 8, 16),
    ],
)
def test_devices_are_chips_on_v4_and_v5p_and_cores_elsewhere(capsys, arguments, chips, devices):
    found = answer(capsys, *arguments)
    assert (found["slice"]["chips"], found["slice"]["devices"]) == (chips, devices)
    assert found["assignment"]["num_replicas"] == devices


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["v5p-128", "--computation-shape", "2,2,2,1"], "Assignment of 8 replicas of 8 chips"),
        (["v5p-128", "--computation-shape", "2,2,2,2", "--no-megacore"], "Assignment of 8 replicas of 16 cores"),
        (["v5e-16"], "Assignment of 16 replicas of 1 core"),
    ],
)
def test_chips_are_not_called_cores(capsys, arguments, words):
    assert main(["tpu", *arguments, "--draw"]) == 0
    printed = capsys.readouterr().out
    assert words in printed
    assert words.removeprefix("Assignment of ") in printed.split("\n\n")[2]


def test_collectives_come_in_a_row_or_at_once_and_computing_overlaps_or_not(capsys):
    both = ["v5e-16", "--all-reduce", "1GB", "--all-gather", "1GB", "--flops", "1e12", "--hbm-bytes", "1GB"]
    row, once, apart = (answer(capsys, *both, *more)["step"] for more in ([], ["--at-once"], ["--not-overlapped"]))
    assert once["communication_seconds"] <= row["communication_seconds"]
    assert row["seconds"] == row["communication_seconds"]
    assert apart["seconds"] == pytest.approx(row["communication_seconds"] + row["compute_seconds"])
    assert row["bound"] == "ICI"


def test_an_objective_searches_for_a_better_order(capsys):
    few = ["v5e-64", "--replicas", "20", "--all-reduce", "1GiB"]
    first, better = (
        answer(capsys, *few, *more)["collectives"][0]["seconds_by_algorithm"]["ring"]
        for more in ([], ["--objective", "ring"])
    )
    assert better < first


@pytest.mark.parametrize(
    ("option", "bound"),
    [
        (["--bandwidth", "1e9"], "ICI"),
        (["--slices", "64", "--bandwidth", "1e12"], "DCN"),
        (["--axis", "core"], "nothing"),
    ],
)
def test_options_reach_the_cost_model(capsys, option, bound):
    (found,) = answer(capsys, "v5e-16", "--all-reduce", "4GiB", *option)["collectives"]
    assert found["bound"] == bound


def test_drawing_comes_below_the_report(capsys):
    assert main(["tpu", "v5e-16", "--all-reduce", "1GiB", "--draw"]) == 0
    assert "busiest: " in capsys.readouterr().out
    assert main(["tpu", "v5e-16", "--draw"]) == 0


def test_a_picture_is_written_to_a_file(capsys, tmp_path):
    picture, figure = tmp_path / "slice.svg", tmp_path / "slice.png"
    assert main(["tpu", "v5e-16", "--all-reduce", "1GiB", "--draw", str(picture)]) == 0
    assert capsys.readouterr().out.endswith(f"\n\nDrawing: {picture}\n")
    assignment = DeviceAssignment.build(Topology.from_accelerator_type("v5e-16"), num_replicas=16)
    assert picture.read_text(encoding="utf-8") == tpu.drawing.svg(assignment.cost("all_reduce", 2**30))
    answer(capsys, "v5e-16", "--draw", str(picture))
    assert picture.read_text(encoding="utf-8") == tpu.drawing.svg(assignment)
    pytest.importorskip("matplotlib")
    assert main(["tpu", "v5e-16", "--draw", str(figure)]) == 0
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_a_png_is_refused_with_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    printed = refusal(capsys, "v5e-16", "--draw", "a.png")
    assert "--draw a.png: PNG needs matplotlib, which is not installed." in printed
    assert "Run pip install 'ringlet[plot]', or write --draw a.svg" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["v4-513"], "unknown accelerator type 'v4-513'"),
        (["v5e"], "v5e"),
        (["v4-32", "--all-reduce", "1G"], "--all-reduce: '1G' is not a size"),
        (["v4-32", "--all-to-all", "-1"], "all-to-all"),
        (["v4-32", "--computation-shape", "1,1"], "--computation-shape 1,1: expected three or four positive numbers"),
        (["v4-32", "--computation-shape", "1,1,0,1"], "Write --computation-shape 2,2,1,1"),
        (["v4-32", "--computation-shape", "9,1,1,1"], "has 2,2,4,1 devices along x, y, z and in a chip. Write at most"),
        (
            ["v4-32", "--computation-shape", "1,1,1,2"],
            "Write --computation-shape 1,1,1,1 for whole chips, or add --no-m",
        ),
        (["v4-32", "--replicas", "33"], "--replicas 33: v4-32 has room for 16 replicas of 1 chip. Write --replicas 16"),
        (["v4-32", "--replicas", "0"], "--replicas 0: expected an integer, at least 1. Write --replicas 2"),
        (["v4-32", "--replicas", "two"], "--replicas two"),
        (
            ["v4-32", "--order", "ring", "--replicas", "3"],
            "need whole chips, no stride, and as many replicas as fit in the slice. Write",
        ),
        (["v4-32", "--bandwidth", "fast"], "'usable', 'published' or a positive number. Write --bandwidth 4.5e10"),
        (["v4-32", "--bandwidth", "0"], "--bandwidth 0: expected 'usable', 'published' or a positive number"),
        (["v4-32", "--flops", "much"], "--flops much: expected a number, not negative. Write --flops 4e12"),
        (["v4-32", "--busiest", "x", "--all-reduce", "1GiB"], "--busiest x"),
        (["v4-32", "--slices", "2", "--broadcast", "1GiB"], "broadcast has no schedule over several slices"),
        (["v4-128", "--twisted"], "cannot form a twisted torus: the sides must be n x n x 2n"),
        (
            ["v3-8", "--megacore"],
            "cannot form one device; only v4 and v5p chips support this. Omit --megacore: ringlet tpu v3-8",
        ),
        (["v5e-16", "--draw", "a.pdf"], "'a.pdf' is not an .svg or .png file. Write 'ringlet tpu SLICE --draw'"),
        (["--draw", "v5e-16"], "'v5e-16' is not an .svg or .png file"),
        (
            ["v5e-16", "--draw", "/no/such/folder/a.svg"],
            "cannot be written: No such file or directory. Name a file in an",
        ),
        (
            ["v5e-16", "--draw", "--json"],
            "--draw prints text, which is not JSON. Write --draw FILE.svg, or omit --json",
        ),
        (["v4-32", "--objective", "speed"], "--objective"),
        ([], "no SLICE given: expected the name of a slice. Write ringlet tpu v4-128"),
    ],
)
def test_a_command_line_that_cannot_be_followed_is_refused_in_one_line(capsys, arguments, words):
    assert words in refusal(capsys, *arguments)


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m ringlet tpu v4-4096 --all-reduce 1GiB --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    assert (done.stdout, done.stderr) == ('{"slice": ', "")
