"""Measures ``torch.distributed`` over ringlet and gloo: collectives of private tensors, DDP, and tokens of a model.

Run as ``python -m bench.torch_backend``; it needs torch and scikit-learn in the environment of ringlet. Both
backends are groups of the same processes, and take turns in every round.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from bench import report
from bench.harness import Statistics, alternate, calls_for, format_bytes, parse_counts, parse_sizes, ratios
from bench.machine import describe_machine
from bench.reference import WrongAnswerError
from bench.torch_decoder import Decoder

__all__ = ["main"]

_BACKENDS = ("ringlet", "gloo")
Groups = Mapping[str, Any]


def _collectives(dist: Any, torch: Any, group: Any, size_bytes: int) -> dict[str, Callable[[], object]]:
    ranks = dist.get_world_size()
    x = torch.zeros(max(size_bytes // 4, ranks) // ranks * ranks)
    block = torch.zeros(len(x) // ranks)
    return {
        "all_reduce": partial(dist.all_reduce, x, group=group),
        "reduce_scatter": partial(dist.reduce_scatter_single, block, x, group=group),
        "all_gather": partial(dist.all_gather_single, x, block, group=group),
        "broadcast": partial(dist.broadcast, x, 0, group=group),
        "all_to_all": partial(dist.all_to_all_single, torch.zeros_like(x), x, group=group),
    }


def _seconds(dist: Any, torch: Any, call: Callable[[], object], region_seconds: float) -> float:
    """Return the seconds of a call on the slowest rank."""
    start = perf_counter()
    call()
    first = torch.tensor([perf_counter() - start])
    dist.all_reduce(first, dist.ReduceOp.MAX)
    count = calls_for(float(first), region_seconds)
    dist.barrier()
    start = perf_counter()
    for _ in range(count):
        call()
    taken = torch.tensor([(perf_counter() - start) / count], dtype=torch.float64)
    dist.all_reduce(taken, dist.ReduceOp.MAX)
    return float(taken)


def _check(dist: Any, torch: Any, groups: Groups) -> None:
    """Check a sum of whole numbers, which is exact in any order."""
    found = []
    for group in groups.values():
        x = torch.arange(10_001.0) % 100 + dist.get_rank()
        dist.all_reduce(x, group=group)
        found.append(x)
    if not torch.equal(*found):
        raise WrongAnswerError("all_reduce of ringlet and of gloo differ")


def _trainers(
    torch: Any, groups: Groups, buckets: Sequence[int], hidden: int | None
) -> dict[str, Callable[[], object]]:
    """Return a training step for each backend and bucket size."""
    from examples import torch_mlp

    widths = torch_mlp.WIDTHS if hidden is None else (1024, hidden, hidden, 10)
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    images, labels = torch_mlp.Part(rank, size)[0]

    def trainer(group: Any, megabytes: int) -> Callable[[], object]:
        module = torch.nn.parallel.DistributedDataParallel(
            torch_mlp.make_module(widths),
            process_group=group,
            gradient_as_bucket_view=True,
            static_graph=True,
            bucket_cap_mb=megabytes,
        )
        optimizer = torch.optim.SGD(module.parameters(), lr=torch_mlp.LEARNING_RATE)

        def step() -> None:
            torch.nn.functional.cross_entropy(module(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()

        return step

    return {f"{name}, {size} MB": trainer(group, size) for name, group in groups.items() for size in buckets}


def _decoders(dist: Any, torch: Any, groups: Groups) -> dict[str, Callable[[], object]]:
    """Return the step of a tensor-parallel model for each backend, which have generated the same tokens."""

    def decoder(group: Any) -> Decoder:
        return Decoder(torch, dist.get_rank(), dist.get_world_size(), partial(dist.all_reduce, group=group))

    decoders = {name: decoder(group) for name, group in groups.items()}
    texts = []
    for each in decoders.values():
        tokens = [1]
        for _ in range(20):
            tokens.append(each.step(tokens[-1]))
        texts.append(tokens)
    if texts[0] != texts[1] and dist.get_world_size() == 2:  # a sum of more numbers depends on their order
        raise WrongAnswerError(f"the tokens over ringlet and gloo differ: {texts}")
    return {name: partial(each.step, 1) for name, each in decoders.items()}


def _measure(options: argparse.Namespace) -> None:
    import torch
    import torch.distributed as dist

    import ringlet.torch  # noqa: F401 - registers the backend

    torch.set_num_threads(1)
    store = f"file://{options.store}"
    dist.init_process_group("ringlet", init_method=store, rank=options.rank, world_size=options.ranks)
    groups = {name: dist.new_group(backend=name) for name in _BACKENDS}
    _check(dist, torch, groups)
    time = partial(_seconds, dist, torch, region_seconds=options.milliseconds / 1000)
    rows = []
    for size in options.bytes:
        calls = {name: _collectives(dist, torch, group, size) for name, group in groups.items()}
        for kind in calls["gloo"]:
            seconds = alternate({name: partial(time, calls[name][kind]) for name in _BACKENDS}, rounds=options.rounds)
            faster = ratios(seconds["gloo"], seconds["ringlet"])
            medians = [report.format_seconds(Statistics(tuple(seconds[name])).median) for name in _BACKENDS]
            rows.append([kind, format_bytes(size), *medians, f"{faster.median:.2f}"])
    steps = _trainers(torch, groups, options.buckets, options.hidden)
    seconds = alternate({name: partial(time, step) for name, step in steps.items()}, rounds=options.rounds)
    steps = _decoders(dist, torch, groups)
    tokens = alternate({name: partial(time, step) for name, step in steps.items()}, rounds=options.rounds)
    if options.rank == 0:
        print(report.format_table(["collective", "bytes", "ringlet", "gloo", "gloo / ringlet"], rows), "\n")
        print(_table_of_steps("DDP step", seconds), "\n")
        print(_table_of_steps("token of a tensor-parallel model", tokens))
    dist.destroy_process_group()


def _table_of_steps(title: str, seconds: Mapping[str, Sequence[float]]) -> str:
    times = {name: Statistics(tuple(values)).median for name, values in seconds.items()}
    best = seconds[min((name for name in times if name.startswith("gloo")), key=times.__getitem__)]
    rows = [
        [name, report.format_seconds(times[name]), f"{ratios(best, values).median:.2f}"]
        for name, values in seconds.items()
    ]
    return report.format_table([title, "seconds", "best gloo / this"], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the tables.

    Returns
    -------
    int
        0 if every rank has succeeded.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(prog="python -m bench.torch_backend", description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=parse_sizes, default=[4, 32 << 10, 1 << 20, 64 << 20])
    parser.add_argument("--buckets", type=parse_counts, default=[5, 25, 100], help="of DDP, in MB")
    parser.add_argument("--hidden", type=int, help="units of each hidden layer, for a smaller model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--milliseconds", type=float, default=50.0, help="of each time that is taken")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.rank is not None:
        _measure(options)
        return 0
    print("\n".join(describe_machine().lines()), "\n", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bench.torch_backend", *arguments, "--store", str(Path(folder) / "store")]
        environ = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
        ranks = [subprocess.Popen([*command, "--rank", str(rank)], env=environ) for rank in range(options.ranks)]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
