"""Arrays in shared memory that collectives access without a copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet import _core
from ringlet.collectives.argument_parsing import whole_number_of
from ringlet.errors import InvalidArgumentError

MOST_BYTES = 1 << 40  # arrays are smaller, in bytes

# Minimum size for which the available memory is checked; for less, the check would cost more than the allocation.
_CHECKED_BYTES = 1 << 22


def empty_shared(shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an uninitialized array in memory that other processes of a group can read and write.

    The collectives of a process group (`init_process_group`) access the array in place; otherwise it is an ordinary
    array. After the last view is freed, the memory is reused by the next shared array, or returned to the system when a
    group is closed or the process ends, however it ends. The memory has no name in the file system.

    Create the array after a fork: if created before, parent and child share its memory.

    Parameters
    ----------
    shape : int or sequence of int
        Shape of the array.
    dtype : dtype-like
        A dtype without Python objects; float64 by default.

    Returns
    -------
    ndarray
        Aligned to a cache line, C-contiguous, writeable.

    Raises
    ------
    InvalidArgumentError
        If a size is negative or not an integer, the array has 2**40 bytes or more, or the dtype holds Python
        objects.
    SharedMemoryFullError
        If this machine, or a control group of this process, does not have enough memory left.

    Examples
    --------
    >>> import ringlet
    >>> x = ringlet.collectives.empty_shared((2, 3), "float32")
    >>> x.fill(1)
    >>> x.sum(), x.flags.c_contiguous
    (np.float32(6.0), True)
    """
    sizes: list[Any]
    try:
        sizes = list(shape)  # type: ignore[arg-type]
    except TypeError:  # a number, or an array of shape ()
        sizes = [shape]
    dims = [whole_number_of(64, size, "shape", "integers") for size in sizes]
    wanted = cast("np.dtype[Any]", np.dtype(dtype))
    if any(size < 0 for size in dims):
        raise InvalidArgumentError(f"shape is {tuple(dims)}: expected non-negative numbers.")
    if wanted.hasobject:
        raise InvalidArgumentError(f"dtype is {wanted}: Python objects cannot be shared. Use a numeric dtype.")
    if (bytes_wanted := math.prod(dims) * wanted.itemsize) >= MOST_BYTES:
        raise InvalidArgumentError(
            f"an array of shape {tuple(dims)} has {bytes_wanted} bytes: the maximum is 2**40 - 1."
        )
    if bytes_wanted >= _CHECKED_BYTES and _core.shared_statistics()["idle_bytes"] < bytes_wanted:
        from ringlet.collectives.available_memory import (
            check_available_memory,
        )

        check_available_memory(bytes_wanted, "an array")
    return _core.empty_shared(dims, wanted)
