"""Random sharded arrays, with the same numbers on any mesh and in any sharding."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.module_names import list_public
from ringlet.sharding.execution.device_threads import in_threads
from ringlet.sharding.explain_operations import record_operation
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Array, Box, Layout, Shape
from ringlet.sharding.layout.layout_of import group_of, layout_of
from ringlet.sharding.layout.mesh import NamedSharding
from ringlet.sharding.layout.partition import whole_number
from ringlet.sharding.layout.sharding import Sharding
from ringlet.sharding.resharding.device_buffers import empty, filling_devices
from ringlet.sharding.sharded_array import ShardedArray

__all__ = ["Generator", "default_rng"]

# Number of elements, consecutive in C order, that one stream of Philox generates. A different size changes all numbers.
BLOCK = 1 << 14

# Number of possible sort keys of a permutation, so large that equal keys are improbable.
_MOST_KEYS = 2**63

# Approximate time to generate a byte, as a multiple of the time to sum it.
_EFFORT = 16

# Distributions of vectors, with the position and name of the parameter that has the length of the vectors.
_VECTORS = {
    "dirichlet": (0, "alpha"),
    "multinomial": (1, "pvals"),
    "multivariate_hypergeometric": (0, "colors"),
    "multivariate_normal": (0, "mean"),
}

# Methods of NumPy's Generator, with the number of parameters before `size` and the names of later parameters.
_PARAMETERS = {
    name: (int(count), later.split())
    for name, count, later in re.findall(
        r"(\w+)\((\d)([^)]*)\)",
        """beta(2) binomial(2) chisquare(1) choice(1 replace p axis shuffle) exponential(1) f(2) gamma(2) geometric(1)
        gumbel(2) hypergeometric(3) integers(2 dtype endpoint) laplace(2) logistic(2) lognormal(2) logseries(1)
        negative_binomial(2) noncentral_chisquare(2) noncentral_f(3) normal(2) pareto(1) poisson(1) power(1)
        random(0 dtype out) rayleigh(1) standard_cauchy(0) standard_exponential(0 dtype method out)
        standard_gamma(1 dtype out) standard_normal(0 dtype out) standard_t(1) triangular(3) uniform(2) vonmises(2)
        wald(2) weibull(1) zipf(1) dirichlet(1) multinomial(2) multivariate_hypergeometric(2 method)
        multivariate_normal(2 check_valid tol)""",
    )
}


class Generator:
    """Generator whose numbers depend on seed, call and global index only; made by :func:`default_rng`.

    Has all distributions of :class:`numpy.random.Generator`, with their parameters (numbers or plain arrays that
    broadcast to the result) and a required keyword ``sharding=``. Not supported: ``bytes``, ``spawn``, ``out=``,
    ``choice(..., replace=False)`` and ``choice`` of several dimensions. Drawing numbers sends nothing. Vectors of
    ``dirichlet``, ``multinomial``, ``multivariate_hypergeometric`` and ``multivariate_normal``, all with the same
    parameters, lie along the result's last dimension.

    The numbers of call n are those of NumPy's Philox with a key made from seed and n, one stream for each 16,384
    elements in C order. They differ from the numbers of ``numpy.random.default_rng(seed)``. Processes of a mesh must
    make the same calls in the same order. Threads must not share a generator.

    Examples
    --------
    >>> from ringlet.sharding import Mesh
    >>> mesh = Mesh({"x": 4, "y": 2})
    >>> one = default_rng(7).normal(10.0, 2.0, (6, 4), sharding=mesh.sharding("x", "y"))
    >>> other = default_rng(7).normal(10.0, 2.0, (6, 4), sharding=mesh.sharding(None, "x"))
    >>> bool((one == other).all())
    True
    """

    def __init__(self, seed: Any = None) -> None:
        self._is_seeded = seed is not None
        self._entropy = np.random.SeedSequence(seed).entropy
        self._num_calls = 0

    def __getattr__(self, name: str) -> Callable[..., ShardedArray]:
        if name not in _PARAMETERS:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}: expected permutation, permuted, shuffle or "
                f"one of {', '.join(_PARAMETERS)}",
                name=name,
                obj=self,
            )

        def method(*args: Any, size: Any = None, sharding: Any = None, **kwargs: Any) -> ShardedArray:
            count, names = _PARAMETERS[name]
            if len(args) > count and size is None:
                args, size, later = args[:count], args[count], args[count + 1 :]
                if twice := sorted(kwargs.keys() & {*names[: len(later)]}):
                    raise TypeError(f"{name} was given {twice[0]} twice: by position and by name")
                args, kwargs = args + later[len(names) :], {**dict(zip(names, later, strict=False)), **kwargs}
            if "dtype" in kwargs:
                kwargs["dtype"] = np.dtype(kwargs["dtype"])  # np.ndim misreads classes such as np.int8
            if kwargs.get("out") is not None:
                raise TypeError(
                    f"{name} does not support out=: assign the result, as in x[...] = rng.random(x.shape, "
                    "sharding=x.sharding)"
                )
            if not kwargs.get("replace", True):
                raise TypeError(
                    f"{name} does not support replace=False: use rng.permutation(number, sharding=sharding)[:count]"
                )
            if name == "choice" and (ndim := np.ndim(kwargs.get("a", args[0] if args else ()))) > 1:
                raise TypeError(
                    f"choice was given an array of {ndim} dimensions: expected a number or a one-dimensional array. "
                    "Write a[rng.choice(len(a), size, sharding=sharding)] to choose rows"
                )
            length: tuple[int, ...] = ()
            if name in _VECTORS:
                place, parameter = _VECTORS[name]
                length = np.shape(kwargs.get(parameter, args[place] if place < len(args) else ()))
                if len(length) != 1 or not length[0]:
                    raise ValueError(f"{parameter} must be a non-empty array of one dimension, got shape {length}")
                if place and (shape := np.shape(kwargs.get("n", args[0] if args else ()))):
                    raise ValueError(f"n must be a scalar, the number of trials for each vector, got shape {shape}")
                size = () if size is None else size
            return self._drawn(name, args, kwargs, _placed(name, size, sharding, (*args, *kwargs.values()), length))

        method.__name__ = name
        return method

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *_PARAMETERS})

    def permutation(self, x: Any, *, axis: int = 0, sharding: Sharding | NamedSharding | None = None) -> ShardedArray:
        """Return the numbers from 0 to `x` - 1 in random order, or an array with its slices along `axis` reordered.

        Sorts random keys, which sends as much as :func:`numpy.argsort`, and takes the slices of an array in this order.
        The first k elements are a sample without replacement.

        Parameters
        ----------
        x : int or ShardedArray
        axis : int, default 0
            Axis of the array.
        sharding : Sharding or NamedSharding
            Sharding of the numbers; required if `x` is a number.

        Raises
        ------
        TypeError
            If `x` has another type, or is a number without `sharding`.

        Examples
        --------
        >>> from ringlet.sharding import Sharding
        >>> order = default_rng(0).permutation(6, sharding=Sharding.tiled((2,)))
        >>> sorted(order.tolist())
        [0, 1, 2, 3, 4, 5]
        """
        if isinstance(x, ShardedArray):
            layout = x._layout.without_parts()
            line = layout.with_cuts([layout.cuts[axis]])
            keys = self._drawn("integers", (_MOST_KEYS,), {}, _Place((x.shape[axis],), line, x._group))
            return np.take(x, np.argsort(keys, kind="stable"), axis)  # type: ignore[return-value]  # dispatched
        if (number := whole_number(x)) is None:
            raise TypeError(
                f"permutation was given {shortened(x)}: expected an integer or a ShardedArray. Shard an array "
                "with ringlet.sharding.shard(array, sharding)"
            )
        keys = self.integers(_MOST_KEYS, size=number, sharding=sharding)
        return np.argsort(keys, kind="stable")  # type: ignore[return-value]  # dispatched

    def permuted(self, x: ShardedArray, *, axis: int | None = None) -> ShardedArray:
        """Return an array with each line along `axis` in its own random order; by default, all elements as one line."""
        if not isinstance(x, ShardedArray):
            raise TypeError(
                f"permuted was given {shortened(x)}: expected a ShardedArray. Shard the array first with "
                "ringlet.sharding.shard(array, sharding)"
            )
        keys = self._drawn("integers", (_MOST_KEYS,), {}, _Place(x.shape, x._layout.without_parts(), x._group))
        moved: Any = np.take_along_axis(x, np.argsort(keys, axis, kind="stable"), axis)
        made: ShardedArray = moved.reshape(x.shape)
        return made

    def shuffle(self, x: ShardedArray, axis: int = 0) -> None:
        """Reorder the slices of an array along `axis` in place, like :meth:`permutation`."""
        x[...] = self.permutation(x, axis=axis)

    def _drawn(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], place: _Place) -> ShardedArray:
        shape, layout, group = place
        if group.member is not None and not self._is_seeded:
            raise ShardingError(
                "each process would draw different numbers: on a mesh of several processes, pass a seed, as in "
                "default_rng(0)"
            )
        call, self._num_calls = self._num_calls, self._num_calls + 1
        key = np.random.SeedSequence(self._entropy, spawn_key=(call,)).generate_state(2, np.uint64)
        stream = _Stream(name, args, kwargs, shape[:-1] if name in _VECTORS else shape, key)
        made = empty(shape, stream.draw(0, 0).dtype, layout, group)
        if made._whole is not None:
            flat = made._whole.reshape(-1, *shape[len(stream.shape) :])

            def fill(block: int) -> None:
                values = stream.block(block)
                flat[block * BLOCK : block * BLOCK + len(values)] = values

            blocks = range(-(-math.prod(stream.shape) // BLOCK))
            in_threads(fill, blocks, _EFFORT * made.nbytes // max(1, len(blocks)))
        else:
            boxes, devices = layout.boxes(shape), filling_devices(made)
            for device in devices:
                stream.fill_box(made._tile(device), boxes[device])
        record_operation(f"random.{name}", (), made)
        return made


class _Place(NamedTuple):
    shape: Shape
    layout: Layout
    group: DeviceGroup


class _Stream(NamedTuple):
    """The random numbers of one call, generated in blocks of elements that are consecutive in C order."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    shape: Shape
    key: NDArray[Any]

    def block(self, number: int) -> Array:
        return self.draw(number, min(BLOCK, math.prod(self.shape) - number * BLOCK))

    def draw(self, number: int, count: int) -> Array:
        """Return the first `count` numbers of a block."""
        generator = np.random.Generator(np.random.Philox(key=self.key, counter=np.array([0, 0, 0, number], np.uint64)))
        start = number * BLOCK

        def part(value: Any) -> Any:
            if self.name in ("choice", *_VECTORS) or not np.ndim(value):
                return value
            return np.broadcast_to(value, self.shape).flat[start : start + count]

        args, kwargs = map(part, self.args), {name: part(value) for name, value in self.kwargs.items()}
        values: Array = getattr(generator, self.name)(*args, size=count, **kwargs)
        return values

    def fill_box(self, tile: Array, box: Box) -> None:
        for number in range(-(-math.prod(self.shape) // BLOCK)):
            start = number * BLOCK
            flat = np.arange(start, min(start + BLOCK, math.prod(self.shape)))
            places = np.unravel_index(flat, self.shape) if self.shape else ()
            is_inside = np.ones(len(flat), bool)
            for place, side in zip(places, box, strict=False):
                is_inside &= (side.start <= place) & (place < side.stop)
            if is_inside.any():
                key = tuple(place[is_inside] - side.start for place, side in zip(places, box, strict=False))
                selected: tuple[Any, ...] = (is_inside, *box[len(places) :])
                values = self.block(number)[selected]
                tile[key or ...] = values if key else values[0]


def _placed(name: str, size: Any, sharding: Any, parameters: Iterable[Any], length: Shape = ()) -> _Place:
    example = f"rng.{name}(..., size=(8, 4), sharding=mesh.sharding('x', 'y'))"
    if not isinstance(sharding, (Sharding, NamedSharding)):
        raise TypeError(
            f"{name} was given sharding={shortened(sharding)}: expected a Sharding, or a mesh and its axes. Write "
            f"{example}"
        )
    given = [*parameters]
    if any(isinstance(value, ShardedArray) for value in given):
        raise TypeError(
            f"{name} was given a ShardedArray as a parameter: expected numbers or plain arrays. Scale the result "
            "instead: array * rng.standard_normal(array.shape, sharding=array.sharding)"
        )
    if size is None:
        size = np.broadcast_shapes(*map(np.shape, given)) if name != "choice" else ()
    sizes = size if isinstance(size, Iterable) else (size,)
    shape = tuple(whole if (whole := whole_number(each)) is not None else -1 for each in sizes)
    if min(shape, default=0) < 0:
        raise ValueError(f"{name} was given size={shortened(size)}: expected integers of 0 or more. Write {example}")
    shape += length
    layout = layout_of(sharding, len(shape))
    if layout.is_partial:
        raise ShardingError(f"{name} was given {sharding}, in which devices hold terms of a sum: use a tiled sharding")
    return _Place(shape, layout, group_of(sharding))


def default_rng(seed: Any = None) -> Generator:
    """Return a generator of sharded random numbers.

    Parameters
    ----------
    seed : int, sequence of int or None
        As for :func:`numpy.random.default_rng`. With None, the numbers differ in each run; meshes of several processes
        require a seed.

    Returns
    -------
    Generator

    References
    ----------
    J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011: Philox.

    Examples
    --------
    >>> from ringlet.sharding import Sharding
    >>> x = default_rng(1).integers(10, size=(2, 4), sharding=Sharding.tiled((1, 2)))
    >>> x.shape, x.shards[0].shape
    ((2, 4), (2, 2))
    """
    return Generator(seed)


__dir__ = list_public(__name__)
