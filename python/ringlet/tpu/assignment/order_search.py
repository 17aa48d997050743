"""Better orders than TensorFlow's: a search by the model of links, which never gives a worse one.

``DeviceAssignment.build(..., objective=...)`` begins with TensorFlow's assignment and keeps its cores. It tries other
orders of replicas and of the cores inside of each; where devices are missing, it deals them out anew. An order counts
only if no number of the objective is worse than TensorFlow's. For rings, devices dealt out anew also keep what
algorithms that go axis by axis make of the groups: these do not depend on orders, but on who is in a group.
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

__all__ = ["HaloObjective", "RingObjective", "improve"]

# What links are compared by: bytes that every device of a ring has, or that a tile sends to each neighbour.
_NBYTES = 64 * 2**20
# Only the proportion of latency and transfer depends on it, where no generation says more.
_BYTES_PER_SECOND = 4.5e10

# How long to look for something better. Built-in objectives end long before.
_SEARCH_SECONDS = 4.0
_MOST_SWAPS = 400
# Devices that all swaps together may look at.
_SWAP_WORK = 60_000


@dataclass(frozen=True)
class Rating:
    """How good an order is.

    Attributes
    ----------
    score : float
        What the search makes small.
    parts : tuple of float
        None of these may be worse than TensorFlow's.
    """

    score: float
    parts: tuple[float, ...]

    def keeps_to(self, other: Rating) -> bool:
        """Whether no part is worse than that of another rating."""
        return all(mine <= theirs for mine, theirs in zip(self.parts, other.parts, strict=True))


class Objective(Protocol):
    """Rates orders: arrays [replica, logical core] of devices."""

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        """Rate an order."""
        ...


@dataclass(frozen=True)
class RingObjective:
    """Rings over the replicas of each logical core, and over the logical cores of each replica.

    Both are rated closed and open: messages on the busiest link, and hops between the two neighbours that are furthest
    apart. The search makes the time of an all-reduce of 64 MiB small.

    Examples
    --------
    Where a host is missing, TensorFlow deals devices out host by host; a ring goes from neighbour to neighbour.

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
        """Rate an order.

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
            # An all-reduce on a line is a reduce-scatter and an all-gather, which differ where it is laid badly.
            around = _Load.of(ring(groups, _NBYTES), fabric)
            out, back = (_Load.of(line(groups, _NBYTES, gather), fabric) for gather in (False, True))
            parts += [part for load in (around, out, back) for part in load.parts]
            score += min(2 * around.seconds, out.seconds + back.seconds)
            crossings += around.crossings
        return Rating(score * (1 + 1e-9 * crossings), tuple(parts))


@dataclass(frozen=True)
class HaloObjective:
    """Exchange between neighbouring tiles: those of a tensor that is split over the logical cores of a replica.

    Where replicas have one core each, the tiles are those of a field that is split over the replicas.

    Parameters
    ----------
    partition_dimensions : sequence of int, optional
        Number of tiles along each dimension; logical device ``i`` has tile ``i``, row by row. By default two
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
        """Rate an order.

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
            If there are not as many tiles as devices that share them.
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
                f"partition_dimensions {grid} make {math.prod(grid)} tiles for {count} devices. Their product has to "
                "be the number of logical cores of a replica, or of replicas where each has one core"
            )
        return grid


@dataclass(frozen=True)
class _Load:
    """What messages ask of the links.

    Attributes
    ----------
    seconds : float
        How long they take.
    parts : tuple of float
        Seconds of the busiest link between chips and of the busiest one within them; hops of the longest way.
    crossings : float
        How often a message crosses a link between chips.
    """

    seconds: float
    parts: tuple[float, float, float]
    crossings: float

    @classmethod
    def of(cls, messages: Messages, fabric: Fabric) -> _Load:
        """Route messages."""
        units, hops = messages.crossings(fabric)
        busy = np.round(fabric.seconds(units) * messages.unit_bytes, 15)
        between, within = (float(part.max()) for part in np.split(busy, [fabric.num_links]))
        seconds = max(between, within) + messages.steps * hops * fabric.hop_seconds
        return cls(seconds, (between, within, hops), float(units[: fabric.num_links].sum()))


@dataclass(frozen=True)
class _Called:
    """A function of the user."""

    function: Callable[[DeviceAssignment], float]
    assignment: DeviceAssignment

    def rating(self, order: IntArray, fabric: Fabric) -> Rating:
        """Ask the function about an order."""
        score = float(self.function(self._ordered(order)))
        if math.isnan(score):
            raise ValueError(f"the objective {self.function!r} gave NaN: give a number, smaller for a better one")
        return Rating(score, (score,))

    def _ordered(self, order: IntArray) -> DeviceAssignment:
        return type(self.assignment)(self.assignment.topology, _cores_in(self.assignment, order))


def improve(
    assignment: DeviceAssignment,
    objective: str | Objective | Callable[[DeviceAssignment], float],
) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Search for an order of the same cores that costs less.

    Cores stay in their replica unless devices are missing. The search ends after a number of attempts that depends on
    the number of devices, and with a slow callable after some seconds.

    Parameters
    ----------
    assignment : DeviceAssignment
        TensorFlow's.
    objective : {"ring", "halo"}, RingObjective, HaloObjective or callable
        A callable gets a DeviceAssignment and gives a number, smaller for a better one.

    Returns
    -------
    ndarray of int32, shape (replicas, cores per replica, 4)
        TensorFlow's again if nothing better was found.

    Raises
    ------
    ValueError
        If there is no objective of that name.
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
        anew = _dealt_anew(first.shape, coordinates, fabric)
        search.attempt(_as_good_boxes(anew, first, fabric) if isinstance(rate, RingObjective) else anew)
    search.attempt(_reordered(search, coordinates, fabric, of_replicas=True))
    search.attempt(_reordered(search, coordinates, fabric, of_replicas=False))
    search.swap()
    return _cores_in(assignment, search.best)


def _objective(assignment: DeviceAssignment, objective: Any) -> Objective:
    if isinstance(objective, str):
        named: dict[str, Objective] = {"ring": RingObjective(), "halo": HaloObjective()}
        if objective not in named:
            raise ValueError(
                f"there is no objective {objective!r}: give 'ring', 'halo', or a function that takes a "
                "DeviceAssignment and gives a number, smaller for a better one"
            )
        return named[objective]
    if hasattr(objective, "rating"):
        rated: Objective = objective
        return rated
    if not callable(objective):
        raise TypeError(f"objective is 'ring', 'halo' or a function of a DeviceAssignment, got {objective!r}")
    return _Called(objective, assignment)


def _cores_in(assignment: DeviceAssignment, order: IntArray) -> np.ndarray[Any, np.dtype[np.int32]]:
    """The cores of an assignment in another order."""
    cores: np.ndarray[Any, np.dtype[np.int32]] = assignment.core_assignment.reshape(-1, 4)[order]
    return cores


class _Search:
    """The best order so far, and how long one may go on."""

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
        """Take whatever is better; tell whether anything was."""
        found = False
        for order in orders:
            rating = self.objective.rating(order, self.fabric)
            if rating.score < self.rating.score and rating.keeps_to(self.limit):
                self.best, self.rating, found = order, rating, True
            if self.is_over:
                break
        return found

    def swap(self) -> None:
        """Exchange two replicas, or two logical cores in all replicas, in an order that depends on nothing else."""
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
    """Other orders of the replicas, or of the logical cores in all replicas alike."""
    start = search.best
    if of_replicas and start.shape[0] > 1:
        yield from (start[walk] for walk in walks(coordinates[start[:, 0]], fabric.network))
    elif not of_replicas and start.shape[1] > 1:
        yield from (start[:, walk] for walk in walks(coordinates[start[0]], fabric.network))


def _dealt_anew(shape: tuple[int, ...], coordinates: IntArray, fabric: Fabric) -> Iterator[IntArray]:
    """All devices in one walk, cut into replicas."""
    for walk in walks(coordinates, fabric.network):
        yield walk.reshape(shape)
        # Devices of the same place in their replicas side by side, which is what rings over replicas want.
        yield walk.reshape(shape[::-1]).T


def _as_good_boxes(orders: Iterator[IntArray], first: IntArray, fabric: Fabric) -> Iterator[IntArray]:
    """Orders whose groups are boxes of the torus as good as those of the first one, if these are boxes."""
    least = list(_box_seconds(first, fabric))
    for order in orders:
        if all(mine <= theirs for mine, theirs in zip(_box_seconds(order, fabric), least, strict=True)):
            yield order


def _box_seconds(order: IntArray, fabric: Fabric) -> Iterator[float]:
    """Latency and transfer of an all-reduce by each algorithm for boxes; infinite where it does not fit."""
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
