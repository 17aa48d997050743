"""Compiled JAX functions on arrays in tiles on host devices of one process; calls wait for the results."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from peer import Array, Peer, begin, serve
from sharding_inputs import AXES, NUMBERS, PADDING, SPECS, STRIDES, inputs_of


class JaxSharding(Peer):
    """All devices."""

    variants: ClassVar[Mapping[str, Sequence[str]]] = dict.fromkeys(
        ("add", "matmul", "sum", "conv", "reshard"), ("jit",)
    )

    def __init__(self, jax: Any, num_devices: int) -> None:
        self._jax = jax
        self.num_ranks = num_devices
        self.version = f"jax {jax.__version__}"
        self._mesh = jax.make_mesh(tuple(AXES.values()), tuple(AXES))
        self._functions = {name: self._compiled(name) for name in self.variants}
        self._size_bytes = 0
        self._result: Any = None

    def _sharding(self, spec: Sequence[str | None]) -> Any:
        return self._jax.sharding.NamedSharding(self._mesh, self._jax.sharding.PartitionSpec(*spec))

    def _compiled(self, name: str) -> Callable[..., Any]:
        numpy, lax = self._jax.numpy, self._jax.lax
        function: Callable[..., Any] = {
            "add": numpy.add,
            "matmul": numpy.matmul,
            "sum": lambda x: numpy.sum(x, axis=0),
            "conv": lambda x, kernel: lax.conv_general_dilated(x, kernel, STRIDES, PADDING, dimension_numbers=NUMBERS),
            "reshard": lambda x: x,
        }[name]
        operands, result = SPECS[name]
        return self._jax.jit(
            function, in_shardings=[*map(self._sharding, operands)], out_shardings=self._sharding(result)
        )

    def allocate(self, count: int, dtype: np.dtype[Any]) -> None:
        """Keep the size; operands are put on the devices once the function is known."""
        self._size_bytes = count * dtype.itemsize

    def release(self) -> None:
        """Release the result."""
        self._result = None

    def fill(self) -> None:
        """Do nothing: operands always hold the result of `inputs_of`."""

    def clear(self) -> None:
        """Do nothing."""

    def call(self, collective: str, variant: str) -> Callable[[], object]:
        """Return a function that makes one call and waits for the result."""
        operands = inputs_of(collective, self._size_bytes)
        specs = SPECS[collective][0]
        placed = [self._jax.device_put(x, self._sharding(spec)) for x, spec in zip(operands, specs, strict=True)]
        function = self._functions[collective]

        def one_call() -> None:
            self._result = function(*placed)
            self._result.block_until_ready()

        return one_call

    def complaint(self, collective: str, variant: str) -> str | None:
        """Check the result: of a product, the first and last rows; of images, the last one."""
        given = np.asarray(self._result)
        x, *rest = inputs_of(collective, self._size_bytes)
        if collective == "conv":
            given, expected = given[-1], _convolved(x[-1], rest[0])
        elif collective == "matmul":
            given, expected = given[[0, -1]], x[[0, -1]] @ rest[0]
        else:
            expected = {"add": lambda: x + rest[0], "sum": lambda: x.sum(axis=0), "reshard": lambda: x}[collective]()
        return None if np.array_equal(given, expected) else f"{collective} gave {given}, expected {expected}"


def _convolved(image: Array, kernel: Array) -> Array:
    """Return the SAME convolution of one image: the sum of shifted products over the kernel positions."""
    height, width, _ = image.shape
    padded = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    places = np.ndindex(*kernel.shape[:2])
    return np.sum([padded[i : i + height, j : j + width] @ kernel[i, j] for i, j in places], axis=0)


def main() -> None:
    """Answer questions as all devices."""
    options = begin()
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={options.ranks}"
    import jax

    serve(JaxSharding(jax, options.ranks), options)


if __name__ == "__main__":
    main()
