"""Timed operations on datasets, each with its expected answer, and NumPy loops for comparison."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ringlet
from bench.harness import format_bytes
from bench.reference import WrongAnswerError
from bench.strategy_questions import Question

__all__ = [
    "FULL",
    "RANGE",
    "RECORDS",
    "SHUFFLED",
    "SMALL",
    "Sizes",
    "numpy_title",
    "questions",
    "split_title",
    "write_records",
]

# Names of what peers are asked, too.
SHUFFLED, RANGE, RECORDS = "shuffled batches", "range", "TFRecord"


@dataclass(frozen=True)
class Sizes:
    """Sizes of the data.

    Attributes
    ----------
    rows, columns : int
        Shape of the shuffled float32 array, which has a label for each row.
    batch : int
        Rows in a global batch.
    records, record_bytes : int
        Number and size of the records in the file.
    split_bytes : tuple of int
        Sizes of the global batches whose splitting is timed.
    large_file_bytes : int
        Size of the file in the memory test.
    """

    rows: int
    columns: int
    batch: int
    records: int
    record_bytes: int
    split_bytes: tuple[int, ...]
    large_file_bytes: int


FULL = Sizes(20_000, 32, 100, 20_000, 1024, (64 << 10, 1 << 20, 16 << 20, 256 << 20), 1 << 30)
SMALL = Sizes(400, 4, 100, 200, 64, (4 << 10, 64 << 10), 1 << 20)

_SPLIT_STEPS = 200


def numpy_title(title: str) -> str:
    """Return the title of NumPy's answer to a question.

    Examples
    --------
    >>> numpy_title("range P=2")
    'NumPy loop: range P=2'
    """
    return f"NumPy loop: {title}"


def split_title(size_bytes: int) -> str:
    """Return the title of the question that splits batches of one size.

    Examples
    --------
    >>> split_title(1 << 20)
    'cut a batch of 1 MiB'
    """
    return f"cut a batch of {format_bytes(size_bytes)}"


def write_records(path: Path, records: int, record_bytes: int) -> None:
    """Write a TFRecord file of random records."""
    random = np.random.default_rng(0)
    block = [random.bytes(record_bytes) for _ in range(64)]
    with ringlet.data.TFRecordWriter(str(path)) as writer:
        for record in itertools.islice(itertools.cycle(block), records):
            writer.write(record)


def _arrays(sizes: Sizes) -> tuple[Any, Any]:
    labels = np.arange(sizes.rows)
    return np.repeat(labels.astype(np.float32)[:, None], sizes.columns, 1), labels


def _require(is_right: bool, what: str) -> None:
    if not is_right:
        raise WrongAnswerError(f"{what} did not give each element once. No time is reported.")


def _count(steps: Any) -> int:
    """Iterate over all steps, as a training loop does, and return their number."""
    number = 0
    for number, _ in enumerate(steps, 1):  # noqa: B007 - the last one is the answer
        pass
    return number


def _checked(steps: Callable[[], Any], sizes: Sizes, num_batches: int, what: str) -> Callable[[Any], None]:
    """Return a check that each label occurs once, with its row, in the expected number of steps."""

    def check(given: Any) -> None:
        features, labels = zip(*(pair for step in steps() for pair in _parts(step)), strict=True)
        found = np.concatenate(labels)
        _require(np.array_equal(np.sort(found), np.arange(sizes.rows)), what)
        _require(all(np.array_equal(x[:, 0], y) for x, y in zip(features, labels, strict=True)), what)
        _require(given == num_batches, what)

    return check


def _parts(step: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the features and labels of each replica."""
    if isinstance(step, list):
        yield from step
    elif isinstance(step[0], ringlet.DistributedValues):
        yield from zip(step[0].values, step[1].values, strict=True)
    else:
        yield step


def _strategy(num_replicas: int) -> Any:
    return ringlet.MirroredStrategy([f"CPU:{i}" for i in range(num_replicas)])


def _shuffled(sizes: Sizes, num_replicas: int) -> Iterator[tuple[str, Question]]:
    arrays, batches = _arrays(sizes), -(-sizes.rows // sizes.batch)
    dataset = ringlet.data.Dataset.from_tensor_slices(arrays).shuffle(sizes.rows, seed=1).batch(sizes.batch).prefetch(2)
    distributed = _strategy(num_replicas).experimental_distribute_dataset(dataset)
    question = Question(
        SHUFFLED, num_replicas, lambda: _count(distributed),
        _checked(lambda: distributed, sizes, batches, "ringlet"), batches,
    )  # fmt: skip
    yield question.title, question

    def loop() -> Iterator[list[tuple[Any, Any]]]:
        order = np.random.default_rng().permutation(sizes.rows)
        rows = -(-sizes.batch // num_replicas)
        for start in range(0, sizes.rows, sizes.batch):
            chosen = order[start : start + sizes.batch]
            x, y = arrays[0][chosen], arrays[1][chosen]
            yield [(x[at : at + rows], y[at : at + rows]) for at in range(0, rows * num_replicas, rows)]

    by_hand = Question(
        SHUFFLED, num_replicas, lambda: _count(loop()), _checked(loop, sizes, batches, "the loop over NumPy"), batches
    )
    yield numpy_title(question.title), by_hand


def _range(sizes: Sizes, num_replicas: int) -> Iterator[tuple[str, Question]]:
    batches = -(-sizes.rows // sizes.batch)
    dataset = ringlet.data.Dataset.range(sizes.rows).batch(sizes.batch)
    distributed = _strategy(num_replicas).experimental_distribute_dataset(dataset)

    def check(given: Any) -> None:
        parts = [part for step in distributed for part in getattr(step, "values", [step])]
        _require(np.array_equal(np.concatenate(parts), np.arange(sizes.rows)) and given == batches, "ringlet")

    question = Question(RANGE, num_replicas, lambda: _count(distributed), check, batches)
    yield question.title, question


def _records(sizes: Sizes, path: Path) -> Iterator[tuple[str, Question]]:
    dataset = ringlet.data.TFRecordDataset(str(path))

    def check(given: Any) -> None:
        _require({len(record) for record in dataset} == {sizes.record_bytes} and given == sizes.records, "ringlet")

    yield RECORDS, Question(RECORDS, 0, lambda: _count(dataset), check, sizes.records)


def _splits(sizes: Sizes) -> Iterator[tuple[str, Question]]:
    for size in sizes.split_bytes:
        batch = np.zeros(size // 4, np.float32)  # its pages are never touched, nor is anything but views of it made
        distributed = ringlet.data.DistributedDataset([batch] * _SPLIT_STEPS, 8)

        def check(given: Any, batch: Any = batch, distributed: Any = distributed) -> None:
            parts = next(iter(distributed)).values
            is_view = all(np.shares_memory(part, batch) for part in parts)
            _require(is_view and sum(map(len, parts)) == len(batch) and given == _SPLIT_STEPS, "ringlet")

        def call(distributed: Any = distributed) -> int:
            return _count(distributed)

        title = split_title(size)
        yield title, Question(title, 0, call, check, _SPLIT_STEPS)


def questions(sizes: Sizes, replica_counts: Sequence[int], records: Path) -> dict[str, Question]:
    """Return all questions, by title.

    Parameters
    ----------
    sizes : Sizes
    replica_counts : sequence of int
    records : Path
        A file written by `write_records`.

    Returns
    -------
    dict of str to Question
    """
    asked: list[tuple[str, Question]] = []
    for count in replica_counts:
        asked += [*_shuffled(sizes, count), *_range(sizes, count)]
    return dict([*asked, *_records(sizes, records), *_splits(sizes)])
