"""Accelerator types: names of TPU slices in every common spelling.

``v4-32``, ``v5litepod-16``, ``v5e-16`` and ``tpu7x-128`` name a slice by its number of cores or chips; ``v5p-4x4x8``,
``v5e:8x16`` and ``v5:4x4x4`` by its chips along each axis; ``ct5lp-hightpu-4t`` names one machine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from itertools import permutations
from math import prod

from ringlet.tpu.topology.generation import CUBE, GENERATIONS, ChipShape, Generation

_BY_PREFIX = {prefix: generation for generation in GENERATIONS.values() for prefix in generation.prefixes}
_BY_MACHINE = {generation.machine: generation for generation in GENERATIONS.values() if generation.machine}

_NAME = re.compile(r"(?P<prefix>[a-z0-9]+)[-:](?:(?P<number>\d{1,9})|(?P<shape>\d{1,9}(?:x\d{1,9}){1,2}))", re.ASCII)
# Prefix and number (if any) of an invalid name, for suggestions.
_PARTS = re.compile(
    r"(?:tpu[-_ ]*(?=v))?(.*?)(?:(?:[-:_ ]+|(?<=[depx])(?=\d+$))(\d{1,9})\d*\w*)?[-:_ ]*", re.ASCII | re.DOTALL
)
_MACHINE = re.compile(r"(?P<machine>[a-z0-9]+-[a-z]+)-(?P<chips>\d{1,3})t", re.ASCII)


@dataclass(frozen=True)
class AcceleratorType:
    """A named kind of slice.

    Parameters
    ----------
    name : str
        Such as ``v4-32``; if that name denotes a slice of a different shape, the name ends in the chips along each
        axis.
    generation : Generation
    shape : tuple of int
        Chips along x, y and z.

    Examples
    --------
    >>> import ringlet
    >>> ringlet.tpu.AcceleratorType.parse("v5p-4x4x8").name
    'v5p-256'
    >>> ringlet.tpu.AcceleratorType.parse("v4-48")
    Traceback (most recent call last):
    ValueError: unknown accelerator type 'v4-48': the number counts cores, 2 to a chip, and no v4 slice has 48.
    The nearest names: 'v4-32', 'v4-64'.
    """

    name: str
    generation: Generation
    shape: ChipShape

    @classmethod
    def parse(cls, name: str) -> AcceleratorType:
        """Parse a name; case and surrounding blanks are ignored.

        Parameters
        ----------
        name : str

        Returns
        -------
        AcceleratorType

        Raises
        ------
        ValueError
            If no such slice exists; the message lists the nearest valid names.
        """
        if not isinstance(name, str):
            raise TypeError(f"an accelerator type must be a string such as 'v4-32', got {name!r}.")
        text = name.strip().lower()
        if (match := _MACHINE.fullmatch(text)) and match["machine"] in _BY_MACHINE:
            return _of_machine(name, _BY_MACHINE[match["machine"]], int(match["chips"]))
        match = _NAME.fullmatch(text)
        generation = _BY_PREFIX.get(match["prefix"]) if match else None
        if match is None or generation is None:
            raise _unknown(name, _reason(text), _close(text))
        if match["number"]:
            return _of_number(name, generation, int(match["number"]))
        return _of_shape(name, generation, match["shape"])

    @classmethod
    def of(cls, generation: Generation, shape: ChipShape) -> AcceleratorType | None:
        """Return the accelerator type of slices of this generation and shape.

        Parameters
        ----------
        generation : Generation
        shape : tuple of int
            Chips along x, y and z.

        Returns
        -------
        AcceleratorType or None
            None if no such slice exists.
        """
        return cls._of(generation, shape) if _exists(generation, shape) else None

    @classmethod
    def _of(cls, generation: Generation, shape: ChipShape) -> AcceleratorType:
        prefix, chips = generation.prefixes[0], prod(shape)
        is_default = shapes_by_chips(generation).get(chips) == shape
        ending = str(chips * _count_of_chip(generation)) if is_default else shape_text(shape, generation.torus_rank)
        return cls(f"{prefix}-{ending}", generation, shape)


def shape_text(shape: ChipShape, rank: int = 3) -> str:
    """Return a shape in the form that names use, such as ``4x4x8``."""
    return "x".join(map(str, shape[:rank] if rank == 3 or shape[2] == 1 else shape))


def _count_of_chip(generation: Generation) -> int:
    """Return how much a chip adds to the number in a name such as ``v4-32``: its cores, or 1 if chips are counted."""
    return generation.cores_per_chip if generation.number_counts == "cores" else 1


@lru_cache
def shapes_by_chips(generation: Generation) -> dict[int, ChipShape]:
    """Return the shape of a slice by its number of chips, for every named slice."""
    found = {prod(shape): shape for shape in generation.shapes}
    for cubes in range(1, generation.max_cubes + 1):
        x, y, z = _most_cubic(cubes)
        found[cubes * CUBE**3] = (x * CUBE, y * CUBE, z * CUBE)
    return found


def _most_cubic(cubes: int) -> ChipShape:
    """Return the most compact block of this many cubes: its length along x, y and z in cubes, ascending."""
    boxes = (
        (x, y, cubes // (x * y))
        for x in range(1, cubes + 1)
        if cubes % x == 0
        for y in range(x, cubes // x + 1)
        if cubes // x % y == 0 and y <= cubes // (x * y)
    )
    return min(boxes, key=sum)


def _of_number(name: str, generation: Generation, number: int) -> AcceleratorType:
    each = _count_of_chip(generation)
    shape = shapes_by_chips(generation).get(number // each) if number % each == 0 else None
    if shape is None:
        counts = f"cores, {each} to a chip" if generation.number_counts == "cores" else "chips"
        reason = f"the number counts {counts}, and no {generation.name} slice has {number}"
        raise _unknown(name, reason, _numbers_near(generation, number))
    return AcceleratorType._of(generation, shape)


def _of_shape(name: str, generation: Generation, text: str) -> AcceleratorType:
    x, y, z = [*map(int, text.split("x")), 1][:3]
    flat = generation.torus_rank == 2
    if (text.count("x") == 1) != flat and not (flat and z == 1):
        reason = f"{generation.name} slices have {generation.torus_rank} axes, such as {_sample_shape(generation)}"
        raise _unknown(name, reason, _shapes_near(generation, (x, y, z)))
    if not _exists(generation, (x, y, z)):
        raise _unknown(name, _shape_rule(generation), _shapes_near(generation, (x, y, z)))
    return AcceleratorType._of(generation, (x, y, z))


def _of_machine(name: str, generation: Generation, chips: int) -> AcceleratorType:
    if chips not in generation.machine_chips:
        sizes = ", ".join(map(str, generation.machine_chips))
        near = [f"{generation.machine}-{size}t" for size in generation.machine_chips]
        raise _unknown(name, f"machines of {generation.name} have {sizes} chips", near)
    return AcceleratorType._of(generation, shapes_by_chips(generation)[chips])


def _exists(generation: Generation, shape: ChipShape) -> bool:
    if shape in generation.shapes or shape in generation.single_host_shapes:
        return True
    # A slice in another orientation exists if whole hosts, which are not rotated, fill it.
    is_whole = all(length % part == 0 for length, part in zip(shape, generation.host_shape, strict=True))
    if generation.any_order and is_whole and any(order in generation.shapes for order in permutations(shape)):
        return True
    is_cubes = all(length > 0 and length % CUBE == 0 for length in shape)
    is_ordered = generation.any_order or list(shape) == sorted(shape)
    return is_cubes and is_ordered and prod(shape) <= generation.max_cubes * CUBE**3


# --- messages for unknown names -------------------------------------------------------------------------------------


def _unknown(name: str, reason: str, near: list[str]) -> ValueError:
    names = ", ".join(map(repr, near))
    return ValueError(f"unknown accelerator type {name!r}: {reason}. The nearest names: {names}.")


def _reason(text: str) -> str:
    prefix = re.split(r"[-:]", text)[0]
    if prefix in _BY_PREFIX:
        generation = _BY_PREFIX[prefix]
        return (
            f"{prefix}- must be followed by a number of {generation.number_counts}, or by a shape such as "
            + _sample_shape(generation)
        )
    return f"names begin with {', '.join(_BY_PREFIX)}, followed by a number or by a shape"


def _sample_shape(generation: Generation) -> str:
    return "8x16" if generation.torus_rank == 2 else "4x4x8"


def _shape_rule(generation: Generation) -> str:
    if not generation.max_cubes:
        return f"{generation.name} has the shapes " + ", ".join(shape_text(s, 2) for s in generation.shapes)
    small = ", ".join(map(shape_text, generation.shapes))
    order = "" if generation.any_order else ", none larger than the next"
    return (
        f"{generation.name} has the shapes {small}, and shapes of multiples of {CUBE}{order}, of at most "
        f"{generation.max_cubes * CUBE**3} chips"
    )


def _numbers_near(generation: Generation, number: int) -> list[str]:
    each = _count_of_chip(generation)
    numbers = [chips * each for chips in shapes_by_chips(generation)]
    below = [n for n in sorted(numbers) if n < number][-1:]
    above = [n for n in sorted(numbers) if n > number][:1]
    near = [number] if number in numbers else below + above
    return [f"{generation.prefixes[0]}-{n}" for n in near]


def _shapes_near(generation: Generation, shape: ChipShape) -> list[str]:
    """Return names of the three slices whose sides are closest to `shape`; ties go to the closest number of chips."""
    wanted = sorted(shape)

    def distance(other: ChipShape) -> tuple[int, int]:
        sides = sum(abs(a - b) for a, b in zip(wanted, sorted(other), strict=True))
        return sides, abs(prod(other) - prod(shape))

    nearest = sorted(shapes_by_chips(generation).values(), key=distance)[:3]
    return [f"{generation.prefixes[0]}-{shape_text(near, generation.torus_rank)}" for near in nearest]


def _close(text: str) -> list[str]:
    """Return up to three known names whose prefix and number equal or resemble those of `text`."""
    match = _PARTS.fullmatch(text)
    beginning, number = match.groups() if match else (text, None)
    found: list[str] = []
    known = [*_BY_PREFIX, *(_BY_MACHINE if "-" in beginning else ())]
    for near in [beginning] if beginning in _BY_PREFIX else get_close_matches(beginning, known, n=3, cutoff=0.0):
        if near in _BY_PREFIX:
            found += _numbers_near(_BY_PREFIX[near], int(number or 0))
        else:
            sizes = _BY_MACHINE[near].machine_chips
            found += [f"{near}-{size}t" for size in sizes if str(size) == number or number is None]
    return list(dict.fromkeys(found))[:3]
