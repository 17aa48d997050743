"""gloo through torch.distributed: rank 0 starts a process for each of the others; they rendezvous through a file."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from peer import ArrayRank, begin, pin, serve


class GlooRank(ArrayRank):
    """A rank of the default process group."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "all_reduce": ("in_place",),
        "reduce_scatter": ("out",),
        "all_gather": ("out",),
        "broadcast": ("in_place",),
        "all_to_all": ("out",),
        "barrier": ("out",),
    }

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._distributed = torch.distributed
        self.rank, self.num_ranks = self._distributed.get_rank(), self._distributed.get_world_size()
        self.num_processes = self.num_ranks
        self.version = f"gloo of torch {torch.__version__}"
        self.barrier = self._distributed.barrier

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        tensor = self._torch.tensor([value], dtype=self._torch.float64)
        self._distributed.all_reduce(tensor, self._distributed.ReduceOp.MAX)
        return float(tensor[0])

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        distributed = self._distributed
        x, y = self._torch.from_numpy(self.x), self._torch.from_numpy(self.y)
        block = len(self.x) // self.num_ranks
        return {
            "all_reduce": partial(distributed.all_reduce, x),
            "reduce_scatter": partial(distributed.reduce_scatter_single, y[:block], x),
            "all_gather": partial(distributed.all_gather_single, y, x[:block]),
            "broadcast": partial(distributed.broadcast, x, 0),
            "all_to_all": partial(distributed.all_to_all_single, y, x),
        }[collective]


def main() -> None:
    """Serve questions as one rank; without a number, as rank 0, which starts the others."""
    options = begin()
    rank = options.rank or 0
    others = [
        subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--rank", str(other)], stdin=subprocess.DEVNULL)
        for other in range(1, options.ranks if rank == 0 else 0)
    ]
    # Before torch starts threads of its own, which then stay with their rank.
    pin(rank, options.cores)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    meeting = f"file://{options.folder / 'gloo'}"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=options.ranks)
    serve(GlooRank(torch), options)
    for other in others:
        other.wait(timeout=30)
    # Nothing is left to give back but memory; an orderly end takes torch seconds.
    os._exit(0)


if __name__ == "__main__":
    main()
