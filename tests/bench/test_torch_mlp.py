"""Steps per second are compared with the size of buckets that serves gloo best, and only of right answers."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bench import torch_mlp
from bench.reference import WrongAnswerError


def test_each_process_is_told_who_it_is_and_where_the_others_are():
    first, second = torch_mlp._environments("gloo", 2)
    assert json.loads(first["TF_CONFIG"])["task"] == {"type": "worker", "index": 0}
    assert (first["RANK"], second["RANK"], second["WORLD_SIZE"]) == ("0", "1", "2")
    assert first["MASTER_PORT"] == second["MASTER_PORT"]
    assert first["OMP_NUM_THREADS"] == "1"


def test_the_goal_is_held_against_the_best_buckets_round_by_round():
    seconds = {"ringlet": [1.0, 2.0], "gloo, 5 MB": [3.0, 3.0], "gloo, 25 MB": [2.0, 2.0], "alone": [1.0, 1.0]}
    (goal,) = torch_mlp._goals(seconds)
    assert (goal.number, goal.reached, goal.verdict) == ("25", "1.50", "met")
    rows = list(torch_mlp._rows(seconds))
    assert [row[0] for row in rows] == list(seconds)
    assert rows[2][-1] == "1.00"


class Team:
    def __init__(self, value, digests="aa"):
        self.value, self.digests = value, digests

    def ask(self, question):
        np.save(question["save"], np.full(5, self.value))
        return [{"digest": digest} for digest in self.digests]


def test_a_wrong_answer_is_refused(tmp_path):
    teams = {"ringlet": Team(1.0), "gloo, 25 MB": Team(1.0), "alone": Team(7.0)}
    assert torch_mlp._check(teams, tmp_path) == 5
    for wrong in (1.001, float("nan")):
        with pytest.raises(WrongAnswerError, match="differs by"):
            torch_mlp._check({**teams, "gloo, 25 MB": Team(wrong)}, tmp_path)


def test_workers_that_drift_apart_are_a_wrong_answer(tmp_path):
    with pytest.raises(WrongAnswerError, match="the workers of ringlet hold different parameters"):
        torch_mlp._check({"ringlet": Team(1.0, "ab")}, tmp_path)


def test_a_step_takes_as_long_as_its_slowest_worker():
    class Team:
        def ask(self, question):
            return [{"seconds": 1.0}, {"seconds": 3.0}]

    assert torch_mlp._seconds_per_step(Team(), 2) == 1.5
