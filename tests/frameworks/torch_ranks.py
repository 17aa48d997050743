"""Runs a function as the ranks of a torch process group, in processes forked from one that has imported torch."""

from __future__ import annotations

import multiprocessing
import tempfile
import traceback
from collections.abc import Callable
from datetime import timedelta
from typing import Any

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["torch._dynamo", "torch.distributed.tensor.parallel", "ringlet.torch"])


def _rank(function: Callable[..., Any], backend: str, place: tuple[int, int, str], answers: Any, args: Any) -> None:
    import torch
    import torch.distributed as dist

    import ringlet.torch  # noqa: F401 - registers the backend

    rank, size, path = place
    torch.set_num_threads(1)
    dist.init_process_group(
        backend, init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=30)
    )
    try:
        answer: Any = function(rank, size, *args)
    except BaseException:
        traceback.print_exc()
        raise
    answers.send(answer)
    if dist.is_initialized():
        dist.destroy_process_group()


def run_ranks(
    function: Callable[..., Any], size: int, *args: Any, backend: str = "ringlet", codes: tuple[int, ...] = (0, -9)
) -> list[Any]:
    """Return the result of `function(rank, size, *args)` on each rank; None if the process exited before."""
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        for rank in range(size):
            receiver, sender = _context.Pipe(duplex=False)
            process = _context.Process(
                target=_rank, args=(function, backend, (rank, size, f"{folder}/store"), sender, args)
            )
            process.start()
            sender.close()
            processes.append((process, receiver))
        answers = []
        for process, receiver in processes:
            try:
                answers.append(receiver.recv())
            except EOFError:
                answers.append(None)
            process.join(60)
            assert process.exitcode is not None
            assert process.exitcode in codes, f"a rank has failed: {process.exitcode}"
        return answers
