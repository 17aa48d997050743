"""Training with DistributedDataParallel over the ringlet backend, in which a rank is killed (`tests.chaos`).

Every other rank raises an error that names the killed one, leaves its group and ends.
"""

from __future__ import annotations

import itertools
import mmap
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # loaded once for all jobs, as the optimizers load it
import torch.distributed as dist

import ringlet.torch  # noqa: F401 - registers the backend
from tests.processes.forked import Job

__all__ = ["EVENTS", "run_round"]

EVENTS = ["forward", "backward", "optimizer"]
PATIENCE_SECONDS = 60.0
ERROR_SECONDS = 3.0  # measured: at most 1 on a machine with idle cores


def body_of(seed: int, size: int, folder: Path, phases: mmap.mmap) -> Callable[[int, Callable[[Any], None]], None]:
    def body(rank: int, tell: Callable[[Any], None]) -> None:
        torch.set_num_threads(1)
        dist.init_process_group("ringlet", init_method=f"file://{folder}/store", rank=rank, world_size=size)
        width = random.Random(seed).choice([8, 100, 700])
        # Its buffers are broadcast in the forward pass.
        layers = [torch.nn.Linear(width, width), torch.nn.BatchNorm1d(width), torch.nn.Linear(width, width)]
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        try:
            for step in itertools.count():
                phases[rank] = EVENTS.index("forward")
                loss = model(torch.randn(4, width)).square().mean()
                phases[rank] = EVENTS.index("backward")
                loss.backward()
                phases[rank] = EVENTS.index("optimizer")
                optimizer.step()
                optimizer.zero_grad()
                if step == 2:
                    tell("trains")
        except dist.DistBackendError as error:
            tell([time.monotonic(), getattr(error, "rank", None), getattr(error, "pid", None), str(error)])
        dist.destroy_process_group()

    return body


def run_round(seed: int, event: str, folder: Path) -> list[str]:
    """Kill a rank in a phase of its step; return the faults of the others."""
    chance = random.Random(f"{seed} {event}")
    size = chance.randint(2, 4)
    victim = chance.randrange(size)
    phases = mmap.mmap(-1, size)
    job = Job(size, body_of(seed, size, folder, phases))
    wrong = []
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        told = [job.told(rank, end) for rank in range(size)]
        if told != ["trains"] * size:
            return [f"the ranks told {told}"]
        time.sleep(chance.uniform(0, 0.02))
        while phases[victim] != EVENTS.index(event) and time.monotonic() < end:
            pass
        time.sleep(chance.uniform(0, 0.001))
        killed = time.monotonic()
        job.kill(victim)
        for rank in set(range(size)) - {victim}:
            answer = job.told(rank, killed + PATIENCE_SECONDS)
            is_right = isinstance(answer, list) and answer[1:3] == [victim, job.pids[victim]] and "SIGKILL" in answer[3]
            if not is_right or answer[0] - killed > ERROR_SECONDS:
                wrong.append(f"rank {rank} told {answer}, after rank {victim} of {size} was killed at {killed}")
    finally:
        statuses = job.wait(PATIENCE_SECONDS)
        phases.close()
    if statuses != [-signal.SIGKILL if rank == victim else 0 for rank in range(size)]:
        wrong.append(f"the exit statuses are {statuses}")
    return wrong
