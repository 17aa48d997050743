"""JAX on host devices of one process: compiled collectives of ``lax`` under ``shard_map``; calls wait for results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Array, Peer, begin, complaint_about, fill, serve

_AXIS = "ranks"


class JaxDevices(Peer):
    """All ranks: row r of an array lies on device r. ``in_place`` means that the input is donated."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = {
        "all_reduce": ("in_place", "out"),
        "reduce_scatter": ("out",),
        "all_gather": ("out",),
        "all_to_all": ("out",),
    }

    def __init__(self, jax: Any, num_ranks: int) -> None:
        self._jax = jax
        self.num_ranks = num_ranks
        self.version = f"jax {jax.__version__}"
        mesh = jax.make_mesh((num_ranks,), (_AXIS,))
        self._rows = jax.sharding.PartitionSpec(_AXIS, None)
        self._sharding = jax.sharding.NamedSharding(mesh, self._rows)
        self._mesh = mesh
        self._count, self._dtype = 0, np.dtype(np.float32)
        self._compiled: dict[tuple[str, str], Any] = {}
        self._x: dict[str, Any] = {}
        self._result: Any = None

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Keep the shape; arrays of JAX are immutable, so they are created once their values are known."""
        self._count, self._dtype = count, dtype

    def release(self) -> None:
        """Release arrays and results."""
        self._x.clear()
        self._result = None

    def fill(self) -> None:
        """Put the inputs on the devices."""
        host = np.empty((self.num_ranks, self._count), self._dtype)
        for rank in range(self.num_ranks):
            fill(host[rank], rank)
        self._place(host)

    def clear(self) -> None:
        """Put zeros on the devices."""
        self._result = None
        self._place(np.zeros((self.num_ranks, self._count), self._dtype))

    def _place(self, host: Array) -> None:
        block = np.ascontiguousarray(host[:, : self._count // self.num_ranks])
        self._x = {name: self._jax.device_put(x, self._sharding) for name, x in (("whole", host), ("block", block))}
        self._jax.block_until_ready(self._x)

    def _function(self, collective: str, variant: str) -> Any:
        if (collective, variant) not in self._compiled:
            lax = self._jax.lax
            body = {
                "all_reduce": lambda x: lax.psum(x, _AXIS),
                "reduce_scatter": lambda x: lax.psum_scatter(x, _AXIS, scatter_dimension=1, tiled=True),
                "all_gather": lambda x: lax.all_gather(x, _AXIS, axis=1, tiled=True),
                "all_to_all": lambda x: lax.all_to_all(x, _AXIS, split_axis=1, concat_axis=1, tiled=True),
            }[collective]
            mapped = self._jax.shard_map(
                body, mesh=self._mesh, in_specs=self._rows, out_specs=self._rows, check_vma=False
            )
            donated = (0,) if variant == "in_place" else ()
            self._compiled[collective, variant] = self._jax.jit(mapped, donate_argnums=donated)
        return self._compiled[collective, variant]

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call and waits for the result."""
        function = self._function(collective, variant)
        source = "block" if collective == "all_gather" else "whole"

        def one_call() -> None:
            self._result = function(self._x[source])
            if variant == "in_place":
                self._x[source] = self._result
            self._result.block_until_ready()

        return one_call

    def complaint(self, collective: str, variant: str) -> str | None:
        """Compare the result on every device with the expected result."""
        for rank, row in enumerate(np.asarray(self._result)):
            given = np.zeros(self._count, self._dtype)
            given[: len(row)] = row
            found = complaint_about(given, collective, rank, self.num_ranks)
            if found is not None:
                return found
        return None


def main() -> None:
    """Answer questions as all ranks."""
    options = begin()
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.ranks}"
    import jax

    jax.config.update("jax_enable_x64", True)
    serve(JaxDevices(jax, options.ranks), options)


if __name__ == "__main__":
    main()
