"""Arrays that all processes of a group can reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ringlet import _core
from ringlet.collectives.argument_parsing import whole_number_of
from ringlet.errors import InvalidArgumentError

__all__ = ["empty_shared"]

MOST_BYTES = 1 << 40  # of one array: where it lies has to fit a word

# Arrays below this size are given without a look at what is left, which would cost more than they do.
_CHECKED_BYTES = 1 << 22


def empty_shared(shape: int | Sequence[int], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Give an array, not filled with anything, in memory that other processes can read and write.

    It is an ordinary array to everything but the collectives of a group of processes (`init_process_group`), which read
    and write it where it is: no byte is copied. Once the last array over it is gone, the memory is used again, or goes
    back to the system: with the next array of this kind, with the end of a group, or when the process ends, however it
    ends. It has no name that anybody could open.

    Make it after a fork, not before: a child shares the memory with its parent, and each sees what the other writes.

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
        If the shape has negative numbers, or the dtype holds Python objects.
    SharedMemoryFullError
        If this machine, or a control group of this process, has not so much memory left.

    Examples
    --------
    >>> import ringlet
    >>> x = ringlet.collectives.empty_shared((2, 3), "float32")
    >>> x.fill(1)
    >>> x.sum(), x.flags.c_contiguous
    (np.float32(6.0), True)
    """
    sizes = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
    dims = [whole_number_of(64, size, "shape", "whole numbers") for size in sizes]
    wanted = cast("np.dtype[Any]", np.dtype(dtype))
    if any(size < 0 for size in dims):
        raise InvalidArgumentError(f"shape is {tuple(dims)}: expected numbers that are not negative.")
    if wanted.hasobject:
        raise InvalidArgumentError(f"dtype is {wanted}: Python objects belong to one process. Use numbers.")
    if (bytes_wanted := int(np.prod(dims, dtype=object)) * wanted.itemsize) >= MOST_BYTES:
        raise InvalidArgumentError(f"an array of shape {tuple(dims)} has {bytes_wanted} bytes: at most 2**40 can be.")
    if bytes_wanted >= _CHECKED_BYTES and _core.shared_statistics()["idle_bytes"] < bytes_wanted:
        from ringlet.collectives.available_memory import refuse_more_than_is_left  # which loads what few programs need

        refuse_more_than_is_left(bytes_wanted, "an array")
    return _core.empty_shared(dims, wanted)
