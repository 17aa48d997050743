"""Adapter for JAX arrays in CPU memory."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ringlet.collectives.adapters.array_adapters import ArrayAdapter
from ringlet.errors import InvalidArgumentError

Array = np.ndarray[Any, np.dtype[Any]]

# dtypes that jax supports only if jax_enable_x64 is set.
_WIDE = ("int64", "uint64", "float64", "complex128")


class JaxAdapter(ArrayAdapter):
    """Adapter for jax arrays, which are immutable: replicas share the memory of a result, in separate array objects.

    Unless ``jax_enable_x64`` is set or the input has the dtype of the result, 64-bit dtypes become 32-bit dtypes, as in
    jax itself; the MEAN of int32 is then float32 instead of float64.
    """

    name = "jax.Array"
    is_mutable = False

    def as_ndarray(self, value: Any, name: str = "the array") -> Array:
        """Wait until the array is computed and return a read-only NumPy view of it."""
        if any(base.__name__ == "Tracer" for base in type(value).__mro__):
            raise InvalidArgumentError(
                f"{name} is a tracer ({type(value).__name__}) without values: a function under jax.jit, "
                "jax.grad or jax.vmap cannot call ringlet. Return the array from the function and call ringlet outside"
            )
        if value.is_deleted():
            raise InvalidArgumentError(
                f"{name} is a jax.Array that was deleted: it was donated to a function under jax.jit "
                "(donate_argnums), or its delete() was called. Pass the result of that function, or an earlier copy"
            )
        devices = value.devices()
        if len(devices) > 1:
            raise InvalidArgumentError(
                f"{name} is a jax.Array on {len(devices)} devices ({value.sharding}): pass the data of one of "
                "x.addressable_shards on each replica, or gather the array with jax.device_put(x, "
                "jax.devices('cpu')[0])"
            )
        (device,) = devices
        if device.platform != "cpu":
            raise InvalidArgumentError(
                f"{name} is a jax.Array on {device}: ringlet requires arrays in CPU memory. Pass "
                "jax.device_put(x, jax.devices('cpu')[0])"
            )
        try:
            return np.asarray(value)
        except TypeError as error:
            raise InvalidArgumentError(
                f"{name} is a jax.Array of PRNG keys ({value.dtype}), which NumPy cannot read: pass "
                "jax.random.key_data(x)"
            ) from error

    def from_ndarray(self, array: Array, like: Any) -> Any:
        """Return a jax array, on the NumPy array's memory if jax can use that (it must be aligned), else on a copy."""
        jax: Any = sys.modules["jax"]
        device = next(iter(like.devices())) if like.committed else None
        if array.dtype.name in _WIDE and array.dtype == like.dtype and not jax.config.jax_enable_x64:
            # `like` was created with x64 enabled; without x64, device_put would truncate the values.
            with jax.enable_x64(True):
                return jax.device_put(array, device, may_alias=True)
        return jax.device_put(array, device, may_alias=True)
