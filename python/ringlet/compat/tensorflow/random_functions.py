"""``tf.random``: random tensors, drawn with NumPy's generators. Each replica has its own sequence."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ringlet.compat.tensorflow.basics import shape_of
from ringlet.compat.tensorflow.dtypes import as_dtype
from ringlet.compat.tensorflow.tensor import Tensor, as_tensor, tensor_of
from ringlet.strategy.api.current_strategy import get_replica_context

_lock = threading.Lock()
_global_seed: int | None = None
# Generators by seed and replica, so that numbers do not depend on the order in which threads run.
_generators: dict[tuple[Any, int], Any] = {}


def _generator(seed: Any) -> Any:
    context = get_replica_context()
    replica = -1 if context is None else int(context.replica_id_in_sync_group)
    with _lock:
        if (seed, replica) not in _generators:
            seeds = [0 if number is None else max(2 * number + 1, -2 * number) for number in (seed, _global_seed)]
            _generators[seed, replica] = np.random.default_rng([*seeds, replica + 1] if any(seeds) else None)
        return _generators[seed, replica]


def set_seed(seed: int) -> None:
    """Set the global seed, so that each replica draws the same numbers in every run of the program."""
    global _global_seed
    with _lock:
        _global_seed = int(seed)
        _generators.clear()


def normal(  # noqa: PLR0917  # TensorFlow's signature
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = np.float32, seed: int | None = None, name: Any = None
) -> Tensor:
    """Return normally distributed numbers."""
    return tensor_of((mean + stddev * _generator(seed).standard_normal(shape_of(shape))).astype(as_dtype(dtype)))


def truncated_normal(  # noqa: PLR0917  # TensorFlow's signature
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = np.float32, seed: int | None = None, name: Any = None
) -> Tensor:
    """Return normally distributed numbers; numbers beyond two standard deviations are drawn again."""
    generator = _generator(seed)
    numbers = generator.standard_normal(shape_of(shape))
    while (beyond := np.abs(numbers) > 2).any():
        numbers = np.where(beyond, generator.standard_normal(numbers.shape), numbers)
    return tensor_of((mean + stddev * numbers).astype(as_dtype(dtype)))


def uniform(  # noqa: PLR0917  # TensorFlow's signature
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = np.float32, seed: int | None = None, name: Any = None
) -> Tensor:
    """Return uniformly distributed numbers from `minval` (inclusive) to `maxval` (exclusive)."""
    wanted, sizes = as_dtype(dtype), shape_of(shape)
    if wanted.kind in "iu":
        if maxval is None:
            raise ValueError(f"Must specify maxval for integer dtype {wanted!r}")
        return tensor_of(np.asarray(_generator(seed).integers(minval, maxval, sizes)).astype(wanted))
    high = 1 if maxval is None else maxval
    numbers = minval + (high - minval) * _generator(seed).random(sizes)
    return tensor_of(np.asarray(numbers).astype(wanted))


def shuffle(value: Any, seed: int | None = None, name: Any = None) -> Tensor:
    """Return the rows of a tensor in random order."""
    return tensor_of(_generator(seed).permutation(np.asarray(as_tensor(value))))


RANDOM_FUNCTIONS = {function.__name__: function for function in (normal, set_seed, shuffle, truncated_normal, uniform)}
