"""Search for device orders of lower modelled cost than TensorFlow's; the result is never worse.

``DeviceAssignment.build(..., objective=...)`` starts from TensorFlow's assignment, keeps its cores, and tries other
orders of replicas and of the cores within each; if the slice has missing devices, it also divides the cores into
replicas anew. An order is accepted only if no component of its rating is worse than TensorFlow's. For rings, a new
division must not raise the cost of axis-by-axis algorithms either, which depends on the members of a group, not on
their order.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ringlet.tpu.assignment.order_candidates import walks
from ringlet.tpu.cost.collective_cost import stage_costs
from ringlet.tpu.cost.cost_fabric import Fabric, FabricOptions
from ringlet.tpu.cost.cost_groups import box_of
from ringlet.tpu.cost.cost_messages import Messages
from ringlet.tpu.cost.cost_schedules import Plan, UnfitError, line, ring, schedule
from ringlet.tpu.cost.link_traffic import IntArray

if TYPE_CHECKING:
    from ringlet.tpu.assignment.device_assignment import DeviceAssignment

# Bytes assumed when orders are compared: the size of the array in a collective, or of what a tile sends to each
# neighbour.
_NBYTES = 64 * 2**20
# Bandwidth of a link if the generation is unknown.
_BYTES_PER_SECOND = 4.5e10

# Time limit of the search. Built-in objectives finish much earlier.
_SEARCH_SECONDS = 4.0
_MOST_SWAPS = 400
# Maximum product of the number of swaps and the number of devices.
_SWAP_WORK = 60_000


@dataclass(frozen=True)
class Rating:
    """The score of an order, which the search minimizes, and components that must not be worse than TensorFlow's."""

    score: float
    parts: tuple[float, ...]

    def is_within(self, other: Rating) -> bool:
        """Return whether no component is worse than in another rating."""
        return all(mine <= theirs for mine, theirs in zip(self.parts, other.parts, strict=True))


class Objective(Protocol):
    """Rates orders, which are arrays [replica, logical core] of devices."""

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        """Return the rating of an order."""
        ...


@dataclass(frozen=True)
class RingObjective:
    """Objective for rings over the replicas of each logical core, and over the logical cores of each replica.

    Rings are rated both closed and as open lines, by the busy times of the busiest links between and within chips, and
    the hops between the most distant neighbours. The search minimizes the time of an all-reduce of 64 MiB.

    Examples
    --------
    If a host is missing, TensorFlow assigns devices host by host; this objective makes adjacent chips ring neighbours.

    >>> import numpy as np
    >>> import ringlet
    >>> whole = ringlet.tpu.Topology.from_accelerator_type("v5e-16")
    >>> present = np.delete(whole.device_coordinates, 1, axis=0)
    >>> topology = ringlet.tpu.Topology(mesh_shape=whole.mesh_shape, device_coordinates=present, generation="v5e")
    >>> build = ringlet.tpu.DeviceAssignment.build
    >>> for assignment in build(topology, num_replicas=12), build(topology, num_replicas=12, objective="ring"):
    ...     print(f"{assignment.cost('all_reduce', 2**30, algorithm='ring').seconds * 1e3:.1f} ms")
    43.8 ms
    21.9 ms
    """

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        """Return the rating of an order.

        Parameters
        ----------
        order : ndarray of int, [replica, logical core]
            Devices.
        fabric : Fabric

        Returns
        -------
        Rating
        """
        parts: list[float] = []
        score, crossings = 0.0, 0.0
        for groups in (order.T, order):
            if groups.shape[1] == 1:
                continue
            # An all-reduce on a line is a reduce-scatter and an all-gather, whose costs differ for bad orders.
            around = _Load.of(ring(groups, _NBYTES), fabric)
            out, back = (_Load.of(line(groups, _NBYTES, gather), fabric) for gather in (False, True))
            parts += [part for load in (around, out, back) for part in load.parts]
            score += min(2 * around.seconds, out.seconds + back.seconds)
            crossings += around.crossings
        return Rating(score * (1 + 1e-9 * crossings), tuple(parts))


@dataclass(frozen=True)
class HaloObjective:
    """Objective for exchanges between neighbouring tiles of a tensor split over the logical cores of a replica.

    If each replica has one core, the tensor is split over the replicas instead.

    Parameters
    ----------
    partition_dimensions : sequence of int, optional
        Number of tiles along each dimension; logical device ``i`` has tile ``i``, in row-major order. Default: two
        dimensions, as square as possible.

    Examples
    --------
    >>> import ringlet
    >>> topology = ringlet.tpu.Topology.from_accelerator_type("v5e-16")
    >>> halo = ringlet.tpu.HaloObjective((1, 4, 4, 1))
    >>> ringlet.tpu.DeviceAssignment.build(topology, [4, 4, 1, 1], objective=halo).core_assignment[0, :5, :2].tolist()
    [[0, 0], [0, 1], [0, 2], [0, 3], [1, 0]]
    """

    partition_dimensions: Sequence[int] | None = None

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        """Return the rating of an order.

        Parameters
        ----------
        order : ndarray of int, [replica, logical core]
            Devices.
        fabric : Fabric

        Returns
        -------
        Rating

        Raises
        ------
        ValueError
            If the number of tiles differs from the number of devices that share them.
        """
        groups = order if order.shape[1] > 1 else order.T
        grid = self._grid(groups.shape[1])
        tiles = groups.reshape(-1, *grid)
        pairs = [
            (np.take(tiles, range(size - 1), axis).ravel(), np.take(tiles, range(1, size), axis).ravel())
            for axis, size in enumerate(grid, 1)
            if size > 1
        ]
        if not pairs:
            return Rating(0.0, ())
        before, after = (np.concatenate(side) for side in zip(*pairs, strict=True))
        messages = Messages(np.r_[before, after], np.r_[after, before], _NBYTES)
        load = _Load.of(messages, fabric)
        return Rating(load.seconds * (1 + 1e-9 * load.crossings), load.parts)

    def _grid(self, count: int) -> tuple[int, ...]:
        if self.partition_dimensions is None:
            rows = next(rows for rows in range(math.isqrt(count), 0, -1) if count % rows == 0)
            return rows, count // rows
        grid = tuple(int(size) for size in self.partition_dimensions)
        if math.prod(grid) != count or min(grid) < 1:
            raise ValueError(
                f"partition_dimensions {grid} give {math.prod(grid)} tiles for {count} devices. The product of the "
                "dimensions must be the number of logical cores of a replica, or the number of replicas if each has "
                "one core"
            )
        return grid


@dataclass(frozen=True)
class _Load:
    """Link load of a set of messages.

    `parts` are the busy times in seconds of the busiest links between and within chips, and the hops of the longest
    path; `crossings` counts link crossings between chips.
    """

    seconds: float
    parts: tuple[float, float, float]
    crossings: float

    @classmethod
    def of(cls, messages: Messages, fabric: Fabric) -> _Load:
        units, hops = messages.crossings(fabric)
        busy = np.round(fabric.seconds(units) * messages.unit_bytes, 15)
        between, within = (float(part.max()) for part in np.split(busy, [fabric.num_links]))
        seconds = max(between, within) + messages.steps * hops * fabric.hop_seconds
        return cls(seconds, (between, within, hops), float(units[: fabric.num_links].sum()))


@dataclass(frozen=True)
class _CallableObjective:
    function: Callable[[DeviceAssignment], float]
    assignment: DeviceAssignment

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        score = float(self.function(self._ordered(order)))
        if math.isnan(score):
            raise ValueError(
                f"the objective {self.function!r} returned NaN: return a number that is lower for better orders"
            )
        return Rating(score, (score,))

    def _ordered(self, order: IntArray) -> DeviceAssignment:
        return type(self.assignment)(self.assignment.topology, _cores_in(self.assignment, order))


def improve(
    assignment: DeviceAssignment,
    objective: str | Objective | Callable[[DeviceAssignment], float],
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Return the core assignment with a cheaper order of the same cores, or unchanged if none is found.

    Cores stay in their replica unless the slice has missing devices. A callable maps a DeviceAssignment to a number,
    lower for better assignments; with a slow callable, the search stops after about 4 s.
    """
    rate = _objective(assignment, objective)
    if assignment.core_assignment.size == 0:
        return _cores_in(assignment, np.empty(assignment.core_assignment.shape[:2], np.int64))
    topology = assignment.topology
    speed: Any = "usable" if topology.generation else _BYTES_PER_SECOND
    coordinates = assignment.core_assignment.reshape(-1, 4).astype(np.int64)
    fabric = Fabric.of(topology, coordinates, FabricOptions(bandwidth=speed))
    first = np.arange(len(coordinates)).reshape(assignment.core_assignment.shape[:2])
    search = _Search(rate, fabric, first, coordinates)
    if len(topology.missing_devices):
        anew = _reassigned(first.shape, coordinates, fabric)
        search.attempt(_with_equal_boxes(anew, first, fabric) if isinstance(rate, RingObjective) else anew)
    search.attempt(_reordered(search, coordinates, fabric, of_replicas=True))
    search.attempt(_reordered(search, coordinates, fabric, of_replicas=False))
    search.swap()
    return _cores_in(assignment, search.best)


def _objective(assignment: DeviceAssignment, objective: Any) -> Objective:
    if isinstance(objective, str):
        named: dict[str, Objective] = {"ring": RingObjective(), "halo": HaloObjective()}
        if objective not in named:
            raise ValueError(
                f"unknown objective {objective!r}: pass 'ring', 'halo', or a function that maps a DeviceAssignment to "
                "a number, lower for better assignments"
            )
        return named[objective]
    if hasattr(objective, "rating"):
        rated: Objective = objective
        return rated
    if not callable(objective):
        raise TypeError(f"objective must be 'ring', 'halo' or a function of a DeviceAssignment, got {objective!r}")
    return _CallableObjective(objective, assignment)


def _cores_in(assignment: DeviceAssignment, order: IntArray) -> np.ndarray[Any, np.dtype[np.int32]]:
    cores: np.ndarray[Any, np.dtype[np.int32]] = assignment.core_assignment.reshape(-1, 4)[order]
    return cores


class _Search:
    def __init__(self, objective: Objective, fabric: Fabric, first: IntArray, coordinates: IntArray) -> None:
        self.objective = objective
        self.fabric = fabric
        self.best = first
        self.limit = objective.rating(first, fabric)
        self.rating = self.limit
        self.deadline = time.monotonic() + _SEARCH_SECONDS

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self.deadline

    def attempt(self, orders: Iterator[IntArray]) -> bool:
        """Accept better orders until the time limit; return whether any was better."""
        found = False
        for order in orders:
            rating = self.objective.rating(order, self.fabric)
            if rating.score < self.rating.score and rating.is_within(self.limit):
                self.best, self.rating, found = order, rating, True
            if self.is_over:
                break
        return found

    def swap(self) -> None:
        """Attempt exchanges of two replicas, or of two logical cores in all replicas, at random with a fixed seed."""
        attempts = min(_MOST_SWAPS, _SWAP_WORK // self.best.size)
        random = np.random.default_rng(0)
        for _ in range(attempts):
            axis = int(random.integers(2)) if min(self.best.shape) > 1 else int(self.best.shape[1] > 1)
            count = self.best.shape[axis]
            if count < 2 or self.is_over:
                return
            one, other = random.choice(count, 2, replace=False)
            index = np.arange(count)
            index[[one, other]] = index[[other, one]]
            self.attempt(iter([np.take(self.best, index, axis)]))


# --- candidates -----------------------------------------------------------------------------------------------------


def _reordered(search: _Search, coordinates: IntArray, fabric: Fabric, *, of_replicas: bool) -> Iterator[IntArray]:
    """Yield variants of the best order: with replicas reordered, or with the cores of each replica reordered alike."""
    start = search.best
    if of_replicas and start.shape[0] > 1:
        yield from (start[walk] for walk in walks(coordinates[start[:, 0]], fabric.network))
    elif not of_replicas and start.shape[1] > 1:
        yield from (start[:, walk] for walk in walks(coordinates[start[0]], fabric.network))


def _reassigned(shape: tuple[int, ...], coordinates: IntArray, fabric: Fabric) -> Iterator[IntArray]:
    """Yield orders that divide a walk through all devices into replicas."""
    for walk in walks(coordinates, fabric.network):
        yield walk.reshape(shape)
        # Devices with the same index in their replicas are adjacent, which shortens rings over replicas.
        yield walk.reshape(shape[::-1]).T


def _with_equal_boxes(orders: Iterator[IntArray], first: IntArray, fabric: Fabric) -> Iterator[IntArray]:
    """Yield the orders for which no box algorithm is slower than for `first`."""
    least = list(_box_seconds(first, fabric))
    for order in orders:
        if all(mine <= theirs for mine, theirs in zip(_box_seconds(order, fabric), least, strict=True)):
            yield order


def _box_seconds(order: IntArray, fabric: Fabric) -> Iterator[float]:
    """Yield latency and transfer time of an all-reduce by each box algorithm; both infinity if it does not apply."""
    places = np.concatenate([fabric.network.coordinates(fabric.chip), fabric.core[:, None]], 1)
    for groups in (order.T, order):
        plan = Plan(groups, box_of(groups, places, fabric.network), _NBYTES, fabric)
        for algorithm in ("sequential", "rotated", "balanced"):
            try:
                costs = stage_costs(schedule("all_reduce", algorithm, plan), fabric)
            except UnfitError:
                yield from (math.inf, math.inf)
            else:
                yield round(sum(cost.latency_seconds for cost in costs), 15)
                yield round(sum(cost.transfer_seconds for cost in costs), 15)
