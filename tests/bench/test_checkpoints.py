"""How fast checkpoints are is held against what the disk does."""

import json

import numpy as np
import pytest

from bench import checkpoints
from bench.reference import WrongAnswerError


def test_a_small_run_writes_every_figure_of_every_round(tmp_path, capsys):
    path = tmp_path / "out.json"
    assert checkpoints.main(["--small", "--folder", str(tmp_path), "--json", str(path)]) == 0
    said, written = capsys.readouterr().out, json.loads(path.read_text(encoding="utf-8"))
    names = {"write", "save", "read, warm", "restore, warm", "read, fresh", "restore, fresh"}
    assert set(written["seconds"]["1048576"]) == names
    assert all(len(seconds) == 2 for seconds in written["seconds"]["1048576"].values())
    assert {goal["what"] for goal in written["goals"]} == {
        "save, 1 MiB", "restore, warm, 1 MiB", "restore, fresh, 1 MiB",
        "call in the background, 1 MiB, in copies", "loss of the loop, 1 MiB, in CPU time of the writer",
    }  # fmt: skip
    assert "of the disk's rate" in said
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]


def test_a_save_in_the_background_is_held_against_a_copy_and_its_own_cpu_time():
    answers = {
        "copy": [{"call": 2.0}], "loop": [{"call": 0.0, "loop": 10.0, "cpu": 0.0}],
        "loop, saving in the background": [{"call": 3.0, "loop": 14.0, "cpu": 2.0}],
    }  # fmt: skip
    goals = list(checkpoints._loop_goals(1 << 20, answers))
    assert [(goal.reached, goal.verdict) for goal in goals] == [("1.50", "MISSED"), ("0.50", "met")]
    assert list(checkpoints._loop_rows(1 << 20, answers))[1] == ["1 MiB", "loop", "", "10.0 s"]


def test_a_wrong_answer_is_refused(tmp_path, monkeypatch):
    saved = checkpoints._Saved(tmp_path, 1 << 10)
    monkeypatch.setattr(saved, "restore", lambda: None)
    with pytest.raises(WrongAnswerError, match="other values"):
        saved.check()


def test_ratios_are_formed_inside_a_round():
    seconds = {"write": [1.0, 4.0], "save": [2.0, 5.0]}
    seconds |= {name: [1.0, 1.0] for pair in list(checkpoints._PAIRS.items())[1:] for name in pair}
    goals = list(checkpoints._goals(1 << 20, seconds))
    assert [goal.verdict for goal in goals] == ["MISSED", "met", "met"]
    assert goals[0].reached == f"{np.mean([0.5, 0.8]):.0%}"
