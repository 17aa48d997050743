"""JAX's arrays in the memory of the CPU."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayKind
from ringlet.errors import InvalidArgumentError

__all__ = ["JaxKind"]

Array = np.ndarray[Any, np.dtype[Any]]

# dtypes that jax has only where jax_enable_x64 is set.
_WIDE = ("int64", "uint64", "float64", "complex128")


class JaxKind(ArrayKind):
    """Arrays of jax: immutable, so replicas share the memory of a result; each has an array object of its own.

    As everywhere in jax, 64-bit dtypes become those of 32 bits unless ``jax_enable_x64`` is set: the MEAN of integers,
    which is float64 in NumPy, is float32 then.
    """

    name = "jax.Array"
    is_mutable = False

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Give the memory of an array, once it is computed, as one that cannot be written to.

        Raises
        ------
        InvalidArgumentError
            If it is on another device or on several, has no values yet or no more, or is no array of numbers.
        """
        if any(base.__name__ == "Tracer" for base in type(value).__mro__):
            raise InvalidArgumentError(
                f"{name} is a tracer ({type(value).__name__}) that has no values yet: a function under jax.jit, "
                "jax.grad or jax.vmap cannot call ringlet. Have it return the array, and make the call outside of it"
            )
        if value.is_deleted():
            raise InvalidArgumentError(
                f"{name} is a jax.Array that has been deleted: it was donated to a function under jax.jit "
                "(donate_argnums), or its delete() was called. Give the array that came of it, or a copy made before"
            )
        devices = value.devices()
        if len(devices) > 1:
            raise InvalidArgumentError(
                f"{name} is a jax.Array on {len(devices)} devices ({value.sharding}): give one array for each replica, "
                "such as those of x.addressable_shards, or the whole with jax.device_put(x, jax.devices('cpu')[0])"
            )
        (device,) = devices
        if device.platform != "cpu":
            raise InvalidArgumentError(
                f"{name} is a jax.Array on {device}: ringlet works in the memory of the CPU. Give "
                "jax.device_put(x, jax.devices('cpu')[0])"
            )
        try:
            return np.asarray(value)
        except TypeError as error:
            raise InvalidArgumentError(
                f"{name} is a jax.Array of {value.dtype}, keys of random numbers that NumPy cannot read: give "
                "jax.random.key_data(x)"
            ) from error

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Give an array of jax in the memory of NumPy's where it is aligned to a cache line, else in a copy."""
        jax: Any = sys.modules["jax"]
        device = next(iter(like.devices())) if like.committed else None
        if array.dtype.name in _WIDE and array.dtype == like.dtype and not jax.config.jax_enable_x64:
            # It was made where 64 bits were enabled, and half of them would be lost here.
            with jax.enable_x64(True):
                return jax.device_put(array, device, may_alias=True)
        return jax.device_put(array, device, may_alias=True)
