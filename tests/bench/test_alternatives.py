"""Everyday jobs are measured only where all alternatives give the same."""

from __future__ import annotations

import json
from contextlib import ExitStack

import numpy as np
import pytest

from bench import alternatives
from bench.alternative_models import count_regions
from bench.reference import WrongAnswerError

pytestmark = pytest.mark.slow


def test_regions_of_ink_are_counted():
    images = np.zeros((3, 4, 4), bool)
    images[1, 0, 0] = images[1, 1, 1] = True  # corners do not connect
    images[2, 1] = images[2, :, 2] = True
    assert count_regions(images).tolist() == [0, 2, 1]


def test_a_wrong_answer_is_refused():
    with pytest.raises(WrongAnswerError, match="b and a differ"):
        alternatives._check({"a": lambda: np.ones(3), "b": lambda: np.full(3, 1.01)})


def test_speed_ups_are_formed_inside_rounds():
    rows = alternatives._rows({"one": [2.0, 20.0], "two": [1.0, 10.0]})
    assert [row[-1] for row in rows] == ["1.00", "2.00"]


def test_an_unknown_job_is_refused_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        alternatives.main(["--jobs", "bootstrp"])
    assert (
        "'bootstrp' is not a job; choose from bootstrap, python, small, train, epoch, torch" in capsys.readouterr().err
    )


def test_a_job_runs_and_its_subjects_agree(tmp_path, capsys):
    file = tmp_path / "figures.json"
    assert alternatives.main(["--small", "--jobs", "train", "--json", str(file)]) == 0
    seconds = json.loads(file.read_text())["seconds"]
    assert {"NumPy, one core", "ThreadPoolExecutor", "multiprocessing.Pool", "Ringlet, replicas"} <= set(
        seconds["train"]
    )
    assert all(len(values) == 2 for job in seconds.values() for values in job.values())
    assert "a training step written in NumPy" in capsys.readouterr().out


def test_an_epoch_has_the_images_of_the_plain_one():
    with ExitStack() as stack:
        subjects, _ = alternatives._epoch(stack, alternatives.SMALL)
        alternatives._check(subjects)
        assert {name: call() for name, call in subjects.items()} == dict.fromkeys(subjects, 40)
