"""Measures everyday jobs by Ringlet and by NumPy, threads, processes, joblib, dask, numba, PyTorch and JAX.

Run as ``python -m bench.alternatives``; ``bench/README.md`` defines the columns. Missing libraries are left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import multiprocessing
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

import ringlet
from bench import harness, report
from bench.alternative_models import (
    PlainTraining,
    count_regions,
    jax_bootstrap,
    jax_training,
    numba_bootstrap,
    numba_regions,
    numba_training,
    torch_bootstrap,
    torch_training,
    use_one_blas_thread,
)
from bench.harness import Statistics, ratios
from bench.machine import describe_machine, usable_cores
from bench.reference import WrongAnswerError
from examples import bootstrap, digits

__all__ = ["main"]

FIRST = "NumPy, one core"
CORES = max(2, len(usable_cores()))


@dataclass(frozen=True)
class Size:
    """The amount of work of one call of each job."""

    blocks: int = 16  # of resamples
    images: int = 1797
    hidden: int = digits.Settings.hidden
    channels: int = 64


SMALL = Size(blocks=2, images=40, hidden=8, channels=2)

Subjects = dict[str, Callable[[], Any]]
Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _mappers(stack: ExitStack) -> dict[str, Mapper]:
    """Return the usual ways to map a function over a list, with one thread or process per core, started beforehand."""
    one_blas_thread = partial(ThreadpoolController().limit, limits=1, user_api="blas")
    threads = stack.enter_context(ThreadPoolExecutor(CORES))
    pool = stack.enter_context(multiprocessing.get_context("spawn").Pool(CORES, use_one_blas_thread))

    def limited(mapper: Mapper) -> Mapper:
        def run(function: Callable[[Any], Any], parts: Sequence[Any]) -> Sequence[Any]:
            with one_blas_thread():
                return list(mapper(function, parts))

        return run

    found: dict[str, Mapper] = {"ThreadPoolExecutor": limited(threads.map), "multiprocessing.Pool": pool.map}
    if _has("joblib"):
        from joblib import Parallel, delayed
        from joblib.externals.loky import get_reusable_executor

        stack.callback(lambda: get_reusable_executor().shutdown(wait=True))
        for name, backend in (("threads", "threading"), ("processes", "loky")):
            parallel = stack.enter_context(Parallel(CORES, backend=backend))
            found[f"joblib, {name}"] = limited(lambda f, parts, p=parallel: p(delayed(f)(part) for part in parts))
    if _has("dask"):
        import dask

        run = partial(dask.compute, scheduler="threads", num_workers=CORES)
        found["dask, threads"] = limited(lambda f, parts: run(*[dask.delayed(f)(part) for part in parts]))
    return found


def _map_subjects(stack: ExitStack, function: Callable[[Any], Any], work: np.ndarray) -> Subjects:
    parts = np.array_split(work, CORES)
    subjects: Subjects = {FIRST: lambda: function(work)}

    def joined(results: Sequence[Any]) -> np.ndarray:
        return np.concatenate(list(results))

    for name, mapper in _mappers(stack).items():
        subjects[name] = lambda mapper=mapper: joined(mapper(function, parts))
    strategy = ringlet.MirroredStrategy(CORES)
    subjects["Ringlet, map"] = lambda: strategy.map(function, work)
    return subjects


# --- jobs: each returns its subjects, of which all but `loose` give the same as the first -----------------------------


def _bootstrap(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    groups = bootstrap.load_groups()[1]
    subjects = _map_subjects(stack, partial(bootstrap.map_blocks, groups), np.arange(size.blocks))
    count = size.blocks * bootstrap.BLOCK
    loose: Subjects = {}
    if _has("numba"):
        loose["numba, parallel"] = numba_bootstrap(groups, count)
    if _has("torch"):
        loose[f"PyTorch, {CORES} threads"] = torch_bootstrap(groups, count, CORES)
    if _has("jax"):
        loose["JAX, jit"] = jax_bootstrap(groups, count)
    return subjects, loose


def _python(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    from sklearn.datasets import load_digits

    images = load_digits().images[: size.images] > 7
    subjects = _map_subjects(stack, count_regions, images)
    parts = np.array_split(images, CORES)
    subjects["Ringlet, launch"] = lambda: np.concatenate(ringlet.launch(_part_of_worker, CORES, args=(parts,)))
    if _has("numba"):
        subjects["numba, parallel"] = numba_regions(images)
    return subjects, {}


def _small(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    return _map_subjects(stack, np.sqrt, np.arange(1000.0)), {}


def _part_of_worker(parts: Sequence[np.ndarray]) -> np.ndarray:
    from ringlet.cluster_resolver import TFConfigClusterResolver

    return count_regions(parts[TFConfigClusterResolver().task_id])


def _train(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    settings = digits.Settings(hidden=size.hidden)
    images, labels = (values[: settings.batch] for values in digits.load_data(settings)[0])
    limit = partial(ThreadpoolController().limit, user_api="blas")

    def plain(threads: int) -> Callable[[], Any]:
        training = PlainTraining(settings, images, labels, 1)

        def step() -> Any:
            with limit(limits=threads):
                return training.step(lambda function, parts: [function(part) for part in parts])

        return step

    subjects: Subjects = {FIRST: plain(1), f"NumPy, BLAS on {CORES} cores": plain(CORES)}
    for name, mapper in _mappers(stack).items():
        subjects[name] = partial(PlainTraining(settings, images, labels, CORES).step, mapper)
    trainer = digits.Trainer(settings, CORES)
    batch = trainer.strategy.experimental_distribute_values_from_function(
        lambda context: tuple(
            np.array_split(values, CORES)[context.replica_id_in_sync_group] for values in (images, labels)
        )
    )

    def step() -> Any:
        trainer.step(batch)
        return trainer.weights["w1"]

    subjects["Ringlet, replicas"] = step
    if _has("numba"):
        subjects["numba, parallel"] = numba_training(settings, images, labels)
    loose: Subjects = {}
    if _has("torch"):
        loose[f"PyTorch, {CORES} threads"] = torch_training(settings, images, labels, CORES)
    if _has("jax"):
        loose["JAX, jit"] = jax_training(settings, images, labels)
    return subjects, loose


def _epoch(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    settings = digits.Settings(hidden=size.hidden)
    images, labels = (values[: size.images] for values in digits.load_data(settings)[0])
    one_blas_thread = partial(ThreadpoolController().limit, limits=1, user_api="blas")
    generator = np.random.default_rng(settings.seed)

    def plain(num_slices: int, mapper: Mapper) -> Callable[[], Any]:
        training = PlainTraining(settings, images, labels, num_slices)

        def epoch() -> int:
            order = generator.permutation(len(labels))
            with one_blas_thread():
                for begin in range(0, len(order), settings.batch):
                    rows = order[begin : begin + settings.batch]
                    training.use(images[rows], labels[rows])
                    training.step(mapper)
            return len(order)

        return epoch

    def replicas(count: int) -> Callable[[], Any]:
        trainer = digits.Trainer(settings, count)
        dataset = trainer.distribute(images, labels)

        def epoch() -> int:
            with one_blas_thread():
                return sum(trainer.step(batch)[1] for batch in dataset)

        return epoch

    return {
        FIRST: plain(1, map),
        "ThreadPoolExecutor": plain(CORES, stack.enter_context(ThreadPoolExecutor(CORES)).map),
        "Ringlet, one replica": replicas(1),
        "Ringlet, replicas": replicas(CORES),
    }, {}


def _torch(stack: ExitStack, size: Size) -> tuple[Subjects, Subjects]:
    import torch

    from examples.torch_training import Trainer

    def stepping(replicas: int, threads: int) -> Callable[[], Any]:
        trainer = Trainer(replicas, size.channels)
        batch = next(iter(trainer.batches))

        def step() -> Any:
            torch.set_num_threads(threads)
            return np.float64(trainer.step(batch))

        return step

    return {
        "PyTorch, one thread": stepping(1, 1),
        f"PyTorch, {CORES} threads": stepping(1, CORES),
        "Ringlet, replicas": stepping(CORES, 1),
    }, {}


JOBS: Mapping[str, tuple[str, Callable[[ExitStack, Size], tuple[Subjects, Subjects]]]] = {
    "bootstrap": ("a map of a function that spends its time in NumPy", _bootstrap),
    "python": ("a map of a function that spends its time in Python", _python),
    "small": ("a map of a function that takes some microseconds", _small),
    "train": ("a training step written in NumPy", _train),
    "epoch": ("an epoch of such steps, with shuffled batches", _epoch),
    "torch": ("a training step of a PyTorch module", _torch),
}


def _check(subjects: Subjects) -> None:
    """Call each subject once; raise an error if results differ by more than float32 rounding."""
    answers = {name: np.asarray(call()) for name, call in subjects.items()}
    first, *others = answers
    for name in others:
        if not np.allclose(answers[name], answers[first], rtol=1e-3, atol=1e-5):
            raise WrongAnswerError(f"{name} and {first} differ. No time is reported.")


def _seconds(call: Callable[[], Any]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _measure(job: str, size: Size, rounds: int) -> dict[str, list[float]]:
    with ExitStack() as stack:
        subjects, loose = JOBS[job][1](stack, size)
        _check(subjects)
        every = {name: partial(_seconds, call) for name, call in (subjects | loose).items()}
        return harness.alternate(every, rounds=rounds)


def _rows(seconds: Mapping[str, Sequence[float]]) -> list[list[str]]:
    first = next(iter(seconds.values()))
    rows = []
    for name, values in seconds.items():
        times = Statistics(tuple(values))
        gain = f"{ratios(first, values).median:.2f}"
        rows.append([name, report.format_seconds(times.median), f"{times.spread:.0%}", gain])
    return rows


def _jobs(text: str) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in JOBS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not a job; choose from {', '.join(JOBS)}")
    return names


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, measure in alternation, and print a table per job.

    Returns
    -------
    int
        0. A wrong answer raises.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.alternatives", description=__doc__)
    parser.add_argument("--jobs", type=_jobs, default=list(JOBS), help=f"some of {','.join(JOBS)}; default: all")
    parser.add_argument("--rounds", type=int, default=9, help="of everything in alternation")
    parser.add_argument("--small", action="store_true", help="little work, two rounds: that it runs")
    parser.add_argument("--json", type=Path, help="file for every figure of every round")
    options = parser.parse_args(arguments)
    size, rounds = (SMALL, 2) if options.small else (Size(), options.rounds)
    machine = describe_machine()
    print("\n".join(machine.lines()))
    found = {}
    for job in options.jobs:
        if job == "torch" and not _has("torch"):
            print("\ntorch: left out, PyTorch is not installed")
            continue
        found[job] = _measure(job, size, rounds)
        print(f"\n{job}: {JOBS[job][0]}\n")
        print(report.format_table(("by", "time", "spread", "speed-up"), _rows(found[job])))
    if options.json:
        report.write_json(options.json, {"benchmark": "alternatives", "machine": machine.as_dict(), "seconds": found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
