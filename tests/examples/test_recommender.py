"""Training on asynchronous workers reaches the error of training in one process, also when a worker is killed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from examples import recommender as example

EPOCHS = 6


def write_ratings(path, count=12000):
    """Stars that persons and films of three hidden properties give, in the format of the package's file."""
    random = np.random.default_rng(0)
    persons, films = random.integers(1, 201, count), random.integers(1, 101, count)
    tastes, kinds = random.standard_normal((201, 3)), random.standard_normal((101, 3))
    stars = np.clip(np.rint(3.2 + np.sum(tastes[persons] * kinds[films], axis=1) * 0.6), 1, 5).astype(int)
    lines = [f"{row[0]}\t{row[1]}\t{row[2]}\t0\n" for row in zip(persons, films, stars, strict=True)]
    path.write_text("user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + "".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    return example.load_ratings(write_ratings(tmp_path_factory.mktemp("ratings") / "ratings.inter"))


@pytest.mark.slow
def test_workers_that_wait_for_nobody_end_where_training_step_after_step_ends(ratings):
    alone = example.train_alone(*ratings, EPOCHS)
    assert alone < 0.9 * float(ratings[1].stars.std())  # else there is nothing to compare
    assert example.train(*ratings, EPOCHS, 2, report=lambda line: None) == pytest.approx(alone, abs=example.CHECK_LIMIT)


@pytest.mark.slow
def test_training_goes_on_when_a_worker_is_killed_and_another_process_takes_its_place(ratings):
    lines = []

    def report(line):
        lines.append(line)
        if len(lines) == 1:
            os.kill(int(line.split()[-1]), signal.SIGKILL)

    example.train(*ratings, 40, 2, report)
    killed = lines[0].split()[-1]
    assert len(lines) == 40
    assert lines[-1].count("by process") == 2
    assert killed not in lines[-1]


def test_every_rating_is_in_one_part(ratings):
    training, test = ratings
    assert (len(training), len(test)) == (10800, 1200)
    assert {training.persons.min(), training.films.min(), training.stars.min()} == {0, 1}


def test_without_the_ratings_the_script_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(example, "RATINGS", ("no_such_package", "ratings.inter"))
    with pytest.raises(SystemExit, match="pip install --no-deps no_such_package"):
        example.find_ratings()


@pytest.mark.slow
def test_the_script_runs_and_compares(tmp_path):
    command = [sys.executable, example.__file__, "--epochs", "2", "--check"]
    command += ["--ratings", str(write_ratings(tmp_path / "ratings.inter", 3000))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "allowed difference 0.02: passed" in done.stdout


def test_people_are_predicted_from_the_real_ratings_better_than_by_what_a_film_gets_on_average():
    package, _ = example.RATINGS
    if importlib.util.find_spec(package) is None and package not in os.environ.get("TESTS_REQUIRE", "").split(","):
        pytest.skip(f"the package {package} is not installed, which has the ratings")
    training, test = example.load_ratings(example.find_ratings())
    assert len(training) + len(test) == 100_000
    sums = np.bincount(training.films, training.stars, 1682)
    averages = (sums + training.stars.mean()) / (np.bincount(training.films, minlength=1682) + 1)
    of_films = np.sqrt(np.mean((test.stars - averages[test.films]) ** 2))
    assert example.train(training, test, 3, 2, report=lambda line: None) < 0.97 * of_films
