"""MPI through mpi4py: started by an ``mpiexec``, one process for each rank."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from peer import Array, ArrayRank, begin, pin, serve

# Where the launchers of Open MPI, and of MPICH and Intel MPI, say which rank a process is.
_RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK")


class MpiRank(ArrayRank):
    """A rank of the world."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "all_reduce": ("in_place", "out"),
        "reduce_scatter": ("out",),
        "all_gather": ("out",),
        "broadcast": ("in_place",),
        "all_to_all": ("out",),
        "barrier": ("out",),
    }

    def __init__(self, mpi: Any) -> None:
        self._mpi = mpi
        self._world = mpi.COMM_WORLD
        self.rank, self.num_ranks = self._world.Get_rank(), self._world.Get_size()
        self.num_processes = self.num_ranks
        self.version = " ".join(mpi.Get_library_version().strip("\0").splitlines()[0].split(",")[0].split())
        self.barrier = self._world.Barrier
        self._datatypes = {"float32": mpi.FLOAT, "float64": mpi.DOUBLE, "int32": mpi.INT32_T, "int64": mpi.INT64_T}

    def largest(self, value: float) -> float:
        """Return the largest value of all ranks."""
        return float(self._world.allreduce(value, op=self._mpi.MAX))

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call."""
        world, x, y = self._world, self._described(self.x), self._described(self.y)
        block = len(self.x) // self.num_ranks
        first_x, first_y = self._described(self.x[:block]), self._described(self.y[:block])
        if (collective, variant) == ("all_reduce", "in_place"):
            return partial(world.Allreduce, self._mpi.IN_PLACE, x)
        return {
            "all_reduce": partial(world.Allreduce, x, y),
            "reduce_scatter": partial(world.Reduce_scatter_block, x, first_y),
            "all_gather": partial(world.Allgather, first_x, y),
            "broadcast": partial(world.Bcast, x, 0),
            "all_to_all": partial(world.Alltoall, x, y),
        }[collective]

    def _described(self, array: Array) -> Any:
        """Return the fastest array argument of mpi4py, which avoids finding the datatype in each call."""
        return [array, self._datatypes[array.dtype.name]]


def main() -> None:
    """Answer questions as one rank."""
    options = begin()
    # Before MPI starts threads of its own, which then stay with their rank.
    pin(next(int(os.environ[name]) for name in _RANK_VARIABLES if name in os.environ), options.cores)
    from mpi4py import MPI

    serve(MpiRank(MPI), options)


if __name__ == "__main__":
    main()
