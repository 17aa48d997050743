import argparse

import numpy as np
import pytest

from bench import collectives, command, traffic
from bench.collective_ranks import CollectiveRanks
from bench.collective_results import CollectiveResult, table
from bench.reference import WrongAnswerError
from bench.results import Cell, Sample
from ringlet.collectives import Member

CELL = Cell(3, 3 * 1024, "float32", "SUM")
COLLECTIVES = [name for name in traffic.COLLECTIVES if name != "all_reduce"]
PAIRS = collectives.pairs_of(CELL, COLLECTIVES, ["in_place", "out", "shared"])


def ranks(cell=CELL):
    return CollectiveRanks(cell, region_seconds=0.001, pin=False)


@pytest.mark.parametrize(("collective", "variant"), PAIRS)
def test_ringlet_passes_verification_and_is_timed(collective, variant):
    group = ranks()
    group.verify(collective, variant)
    assert 0 < group.measure(collective, variant).seconds < 10


@pytest.mark.parametrize("op", ["SUM", "MAX", "XOR"])
@pytest.mark.parametrize("collective", ["reduce", "reduce_scatter", "exclusive_scan"])
def test_reductions_are_verified_with_any_operation(collective, op):
    ranks(Cell(3, 3 * 1024, "int16", op)).verify(collective, "out")


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_one_wrong_element_on_one_rank_is_refused(collective, monkeypatch):
    right = getattr(Member, collective)

    def wrong(self, *args, **kwargs):
        result = right(self, *args, **kwargs)
        if result is None or self.rank != 0:
            return result
        result = np.array(result)
        result[-1] += 1
        return result

    monkeypatch.setattr(Member, collective, wrong)
    with pytest.raises(WrongAnswerError, match=rf"^{collective} shared .*rank 0: element \d+ is "):
        ranks().verify(collective, "shared")


@pytest.mark.parametrize("collective", ["reduce", "gather"])
def test_a_result_on_a_rank_that_gets_none_is_refused(collective, monkeypatch):
    monkeypatch.setattr(Member, collective, lambda self, x, *args, **kwargs: None if self.rank == 0 else x)
    with pytest.raises((WrongAnswerError, AssertionError)):
        ranks().verify(collective, "out")


@pytest.mark.parametrize(
    # size, dtype, operation, collective, variants
    ("size", "dtype", "op", "collective", "expected"),
    [
        (3072, "float32", "SUM", "all_to_all", ["out", "shared"]),
        (3072, "float32", "SUM", "reduce", ["in_place", "out", "shared"]),
        (1024, "float32", "SUM", "reduce", []),  # no block for each of three ranks
        (3072, "float32", "MEAN", "exclusive_scan", []),
        (3072, "int32", "MEAN", "reduce", []),
        (3072, "int32", "MEAN", "scatter", ["out", "shared"]),
    ],
)
def test_only_what_there_is_is_measured(size, dtype, op, collective, expected):
    pairs = collectives.pairs_of(Cell(3, size, dtype, op), [collective], ["in_place", "out", "shared"])
    assert [variant for _, variant in pairs] == expected


def test_a_result_names_its_collective():
    samples = [Sample(2.0, 0.0, 0.0)] * 3
    result = CollectiveResult(CELL, "auto", "out", samples, samples, [1.0] * 3, [1.0] * 3, 0.0, collective="all_gather")
    assert result.as_dict()["collective"] == "all_gather"
    assert "algorithm" not in result.as_dict()
    assert table([result]).splitlines()[2].split()[:2] == ["all_gather", "out"]


def sweep(*arguments):
    parser = command.sweep_parser("any", "What it does.", ranks="2", sizes="8B:1KiB")
    return command.parse(parser, arguments)


def test_a_sweep_has_every_rank_with_every_size(capsys):
    options = sweep("--ranks", "2,3", "--bytes", "8B,1KiB")
    seen = [(cell.num_ranks, cell.size_bytes) for cell in command.cells(options, lambda ranks, size: size)]
    assert seen == [(2, 8), (2, 1024), (3, 8), (3, 1024)]
    assert "3 ranks, 1 KiB ..." in capsys.readouterr().err


def test_a_cell_that_does_not_fit_into_memory_is_left_out_and_said_to_be(capsys):
    options = sweep("--bytes", "8B")
    assert list(command.cells(options, lambda ranks, size: 1 << 60)) == []
    assert "2 ranks, 8 B: left out" in capsys.readouterr().err


@pytest.mark.parametrize(
    # arguments, complaint
    ("arguments", "complaint"),
    [
        (["--bytes", "10B"], "10 bytes are no whole number of float32 elements: give multiples of 4."),
        (["--dtype", "bool"], "SUM does not support bool"),
        (["--dtype", "float31"], "invalid choice"),
        (["--op", "XOR"], "XOR does not support float32."),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, complaint, capsys):
    with pytest.raises(SystemExit):
        sweep(*arguments)
    assert complaint in capsys.readouterr().err


def test_an_unknown_word_is_refused_with_those_that_there_are():
    with pytest.raises(argparse.ArgumentTypeError, match="'out,xyz' is not a list of in_place, out"):
        command.words(["in_place", "out"])("out,xyz")
