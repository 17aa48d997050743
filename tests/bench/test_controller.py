import numpy as np
import pytest

from bench import controller
from bench.controller_results import ControllerResult, table
from bench.reference import WrongAnswerError
from bench.results import Cell

MIB = 1 << 20


@pytest.mark.parametrize("job", controller.JOBS)
@pytest.mark.parametrize("num_ranks", [2, 3, 8])
@pytest.mark.parametrize("size", [8, 40_000])
def test_ringlet_and_numpy_pass_verification_and_are_timed(job, num_ranks, size):
    ranks = controller.Controller(Cell(num_ranks, size, "float32", "SUM"), region_seconds=0.0005)
    ranks.verify(job)
    assert 0 < ranks.measure(job, controller.ringlet_calls(job, "default")[0]) < 10
    for statement in ranks.numpy_ways(job).values():
        assert 0 < ranks.measure(job, statement) < 10


@pytest.mark.parametrize("job", controller.JOBS)
def test_a_wrong_answer_of_ringlet_is_refused(job, monkeypatch):
    right = controller.Group.all_reduce_all

    def wrong(self, *args, **kwargs):
        results = right(self, *args, **kwargs)
        if isinstance(results, list):
            results[-1][-1] += 1
            return results
        return np.append(results[:-1], results[-1] + 1)

    monkeypatch.setattr(controller.Group, "all_reduce_all", wrong)
    with pytest.raises(WrongAnswerError, match=r"^group\.all_reduce_all\(x, op.*element 9 is"):
        controller.Controller(Cell(2, 40, "float32", "SUM"), region_seconds=0.001).verify(job)


def test_a_wrong_answer_of_numpy_is_refused(monkeypatch):
    monkeypatch.setitem(controller._UFUNCS, "SUM", np.subtract)
    with pytest.raises(WrongAnswerError, match=r"^NumPy, add in turn "):
        controller.Controller(Cell(2, 40, "float32", "SUM"), region_seconds=0.001).verify("shared")


def test_every_job_says_how_many_threads_may_work():
    assert controller.ringlet_calls("out", "default") == ["group.all_reduce_all(x, op, outs=y)"]
    assert all("workers=2" in call for call in controller.ringlet_calls("shared", "2"))


def result(job="shared", num_ranks=2, size=8, *, ringlet=(1.0,), numpy=(2.0,), others=0.0):
    calls = {"slow()": [9.0] * len(ringlet), "fast()": list(ringlet)}
    ways = {"slow": [99.0] * len(numpy), "add in turn": list(numpy)}
    by_workers = dict.fromkeys(("default", "1", "2"), calls)
    return ControllerResult(Cell(num_ranks, size, "float32", "SUM"), job, by_workers, ways, others)


def test_the_fastest_call_is_held_against_the_fastest_way_inside_each_round():
    # The machine is ten times slower in the second round.
    drifting = result(ringlet=(1.0, 10.0, 1.0), numpy=(3.0, 30.0, 3.0))
    assert (drifting.fastest("2"), drifting.fastest_numpy()) == ("fast()", "add in turn")
    assert drifting.gain("2").values == (3.0, 3.0, 3.0)


def test_the_table_has_a_row_for_each_number_of_workers():
    lines = table([result(size=8 * MIB)]).splitlines()
    assert [line.split()[4] for line in lines[2:]] == ["default", "1", "2"]
    assert "fast()" in lines[2]
    assert "2.00" in lines[2].split()


def test_one_rank_has_nothing_to_combine(capsys):
    with pytest.raises(SystemExit):
        controller.main(["--ranks", "1"])
    assert "at least 2" in capsys.readouterr().err


def test_what_numpy_has_no_function_for_is_refused(capsys):
    with pytest.raises(SystemExit):
        controller.main(["--op", "MEAN"])
    assert "NumPy has no single function for MEAN" in capsys.readouterr().err
