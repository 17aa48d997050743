"""Predict film ratings from 100,000 real ones, with asynchronous workers and two parameter servers.

    pip install cloudpickle && pip install --no-deps recbole    # for its MovieLens 100K ratings; it is not imported
    python examples/recommender.py
    python examples/recommender.py --workers 4 --epochs 200
    python examples/recommender.py --check       # compares with training without workers

Each person and each film has a row of numbers; the dot product of the two rows, plus a bias of each, predicts the
rating. Both tables are cut over the parameter servers. A step takes some ratings, reads the rows that they need, and
updates them, while other workers do the same. The program prints the number of steps of each process: kill one from
another terminal (`kill -9`), and training continues with the others, and soon with a replacement.
"""

from __future__ import annotations

import argparse
import collections
import importlib.util
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ringlet

RATINGS = ("recbole", "dataset_example/ml-100k/ml-100k.inter")  # GroupLens' MovieLens 100K, in a package
RANK = 16
RATE = 0.02
DECAY = 0.08
BATCH = 64
CHECK_LIMIT = 0.02  # stars; another order of the ratings alone changes the error by a quarter of it


# --- the data -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ratings:
    """Ratings as columns: person, film and stars; persons and films are numbered from 0."""

    persons: np.ndarray
    films: np.ndarray
    stars: np.ndarray

    def __len__(self):
        return len(self.stars)

    def __getitem__(self, places):
        return Ratings(self.persons[places], self.films[places], self.stars[places])


def find_ratings():
    """Return the file of ratings in an installed package, without importing it, since it has many dependencies."""
    package, file = RATINGS
    spec = importlib.util.find_spec(package)
    path = Path(spec.submodule_search_locations[0], file) if spec else None
    if path is None or not path.exists():
        raise SystemExit(
            f"the ratings come with the package {package}, which is not installed. Install it without its "
            f"dependencies: pip install --no-deps {package}"
        )
    return path


def load_ratings(path):
    """Return ratings as (training, test): the last 10 % of a seeded permutation are the test."""
    persons, films, stars = np.loadtxt(path, np.int64, skiprows=1, usecols=(0, 1, 2), unpack=True)
    ratings = Ratings(persons - 1, films - 1, stars.astype(np.float32))
    order = np.random.default_rng(0).permutation(len(ratings))
    cut = len(order) * 9 // 10
    return ratings[order[:cut]], ratings[order[cut:]]


def batches_of(ratings):
    """Return an endless dataset of small batches, reshuffled in each epoch."""
    columns = (ratings.persons, ratings.films, ratings.stars)
    return ringlet.data.Dataset.from_tensor_slices(columns).shuffle(len(ratings)).repeat().batch(BATCH).prefetch(2)


# --- the model ------------------------------------------------------------------------------------------------------


class Model:
    """Matrix factorization with two tables; the last number of a row is the bias of that person or film."""

    def __init__(self, ratings):
        random = np.random.default_rng(1)
        self.mean = float(ratings.stars.mean())
        self.persons = ringlet.Variable(self._rows(random, ratings.persons.max() + 1), name="persons")
        self.films = ringlet.Variable(self._rows(random, ratings.films.max() + 1), name="films")

    def _rows(self, random, count):
        rows = 0.1 * random.standard_normal((count, RANK + 1), np.float32)
        rows[:, -1] = 0
        return rows

    def predict(self, person, film):
        """Return predicted stars, from rows of both tables."""
        return self.mean + np.sum(person[:, :-1] * film[:, :-1], axis=1) + person[:, -1] + film[:, -1]

    def step(self, batch):
        """Update the rows of a batch; return the sum of squared errors before."""
        persons, films, stars = batch
        person, film = self.persons.sparse_read(persons), self.films.sparse_read(films)
        error = stars - self.predict(person, film)
        d_person, d_film = error[:, None] * film, error[:, None] * person
        d_person[:, -1] = d_film[:, -1] = error
        self.persons.scatter_add(ringlet.IndexedSlices(RATE * (d_person - DECAY * person), persons))
        self.films.scatter_add(ringlet.IndexedSlices(RATE * (d_film - DECAY * film), films))
        return float(error @ error)

    def error(self, ratings):
        """Return the root of the mean squared error, in stars."""
        person, film = self.persons.sparse_read(ratings.persons), self.films.sparse_read(ratings.films)
        return float(np.sqrt(np.mean((ratings.stars - self.predict(person, film)) ** 2)))


# --- training -------------------------------------------------------------------------------------------------------


def train_alone(training, test, epochs):
    """Train in this process, step by step; return the test error."""
    model, batches = Model(training), iter(batches_of(training))
    for _ in ringlet.progress(range(epochs), "without workers"):
        for _ in range(len(training) // BATCH):
            model.step(next(batches))
    return model.error(test)


def train(training, test, epochs, num_workers, report=print):
    """Train on asynchronous workers; return the test error."""
    strategy = ringlet.ParameterServerStrategy(
        ringlet.cluster_resolver.LocalClusterResolver(workers=num_workers, ps=2),
        ringlet.experimental.partitioners.FixedShardsPartitioner(2),
    )
    with strategy.scope():
        model = Model(training)
    coordinator = ringlet.coordinator.ClusterCoordinator(strategy)
    batches = iter(coordinator.create_per_worker_dataset(lambda: batches_of(training)))

    def worker_step(batches):
        return os.getpid(), model.step(next(batches))

    for epoch in range(1, epochs + 1):
        results = [coordinator.schedule(worker_step, args=(batches,)) for _ in range(len(training) // BATCH)]
        squares, steps = 0.0, collections.Counter()
        for result in ringlet.progress(results, f"epoch {epoch}"):
            process, square = result.fetch()
            squares += square
            steps[process] += 1
        done_by = ", ".join(f"{count} by process {process}" for process, count in sorted(steps.items()))
        error = np.sqrt(squares / (len(results) * BATCH))
        report(f"epoch {epoch:3}  training error {error:.3f}  test error {model.error(test):.3f}  steps: {done_by}")
    coordinator.shutdown()
    return model.error(test)


def check(training, test, epochs, num_workers):
    """Return whether training on workers reaches the same test error as training in this process."""
    alone, error = train_alone(training, test, epochs), train(training, test, epochs, num_workers)
    passed = abs(alone - error) <= CHECK_LIMIT
    print(
        f"\ntest error without workers {alone:.4f}, with {num_workers} {error:.4f}; allowed difference {CHECK_LIMIT}: "
        f"{'passed' if passed else 'FAILED'}"
    )
    return passed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--epochs", type=int, default=30, help="default: %(default)s")
    parser.add_argument("--ratings", type=Path, help="file in the format of the package; default: the package's own")
    parser.add_argument("--check", action="store_true", help="compare with training in one process")
    options = parser.parse_args(arguments)
    training, test = load_ratings(options.ratings or find_ratings())
    if options.check:
        return 0 if check(training, test, options.epochs, options.workers) else 1
    train(training, test, options.epochs, options.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
