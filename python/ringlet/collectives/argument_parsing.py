"""Validation of arguments that several collectives share."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from ringlet.collectives.op import Algorithm, Op
from ringlet.errors import InvalidArgumentError


def as_sequence(values: Any, name: str) -> Sequence[Any]:
    """Convert an iterable of arrays, such as a generator, to a list; return a list or tuple unchanged."""
    if type(values) is list or type(values) is tuple:
        return values
    try:
        return list(values)
    except TypeError:
        raise InvalidArgumentError(
            f"{name} is {shortened(values)} of type {type(values).__name__}: expected a list of arrays."
        ) from None


def shortened(value: Any) -> str:
    """Return the repr of a value on one line; a repr over 40 characters is cut, and the shape of an array added."""
    text = " ".join(repr(value).split())
    shape = getattr(value, "shape", None)
    return text if len(text) <= 40 else text[:37] + "..." + (f" of shape {shape}" if isinstance(shape, tuple) else "")


def as_text(value: Any) -> str:
    """Return the text of a value as valid UTF-8; lone surrogates, as in undecodable file names, are escaped."""
    text = str(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def whole_number(value: Any, name: str, expected: str) -> int:
    """Convert an integer argument, such as a NumPy integer, to an int."""
    try:
        return operator.index(value)
    except TypeError:
        raise InvalidArgumentError(f"{name} is {value!r}: expected {expected}.") from None


def whole_number_of(bits: int, value: Any, name: str, expected: str) -> int:
    """Return an integer argument that must fit in `bits` bits, signed."""
    number = whole_number(value, name, expected)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise InvalidArgumentError(f"{name} is {number}: expected {expected} of at most {bits} bits.")
    return number


def refuse_selection(op: Any, algorithm: Any = Algorithm.AUTO) -> NoReturn:
    """Raise the error for an `op` or `algorithm` that is not a member of its enumeration."""
    name, given, expected = ("algorithm", algorithm, Algorithm) if type(op) is Op else ("op", op, Op)
    choices = ", ".join(f"{expected.__name__}.{choice.name}" for choice in expected)
    raise InvalidArgumentError(f"{name} is {given!r}: expected one of ringlet.collectives.{choices}.")


def root_of(root: Any, num_ranks: int, name: str = "root", expected: str = "the number of a rank") -> int:
    """Check the number of a rank, such as a root, and convert it to an int."""
    number = root if type(root) is int else whole_number(root, name, expected)
    if not 0 <= number < num_ranks:
        raise InvalidArgumentError(
            f"{name} is {number}, but rank {number} is not in this group: its ranks are 0 to {num_ranks - 1}."
        )
    return number


def root_only(name: str, rank: int, root: int) -> NoReturn:
    """Raise the error for an argument that only the root may pass."""
    raise InvalidArgumentError(
        f"rank {rank} passed {name}, which only the root, rank {root}, may pass: omit it on rank {rank}."
    )


def axis_number(axis: Any, name: str = "axis") -> int:
    """Convert an axis to an int."""
    expected = "the number of an axis"
    if isinstance(axis, bool):
        raise InvalidArgumentError(f"{name} is {axis}: expected {expected}.")
    return whole_number(axis, name, expected)


def axis_in(ndim: int, axis: Any, name: str = "axis") -> int:
    """Convert an axis to a non-negative int; negative axes count from the last."""
    number = axis_number(axis, name)
    if ndim == 0:
        raise InvalidArgumentError(f"{name} is {number}, but the array has no axes (ndim 0): pass x.reshape(1).")
    if not -ndim <= number < ndim:
        raise InvalidArgumentError(
            f"{name} is {number}, but the array has ndim {ndim}: expected {-ndim} to {ndim - 1}."
        )
    return number % ndim


def equal_counts(shape: Sequence[int], axis: int, num_ranks: int, name: str = "axis") -> int:
    """Return the size of each of `num_ranks` equal blocks along an axis."""
    size = shape[axis]
    if size % num_ranks:
        padded = (size // num_ranks + 1) * num_ranks
        raise InvalidArgumentError(
            f"cannot split {name} {axis} of shape {tuple(shape)} into {num_ranks} equal blocks: {size} is not a "
            f"multiple of {num_ranks}. Pad it to {padded}, or use a collective that takes counts=."
        )
    return size // num_ranks


def counts_of(counts: Iterable[Any], shape: Sequence[int], axis: int, num_ranks: int) -> list[int]:
    """Check the number of rows for each rank, and return the numbers as a list of int."""
    try:
        numbers = [operator.index(count) for count in counts]
    except TypeError:
        raise InvalidArgumentError(f"counts is {shortened(counts)}: expected one integer for each rank.") from None
    if len(numbers) != num_ranks or min(numbers) < 0:
        raise InvalidArgumentError(
            f"counts is {shortened(numbers)}: expected {num_ranks} non-negative numbers, one for each rank."
        )
    if sum(numbers) != shape[axis]:
        raise InvalidArgumentError(
            f"counts is {shortened(numbers)}, whose sum is {sum(numbers)}: expected the size {shape[axis]} of axis "
            f"{axis} of shape {tuple(shape)}."
        )
    return numbers


def pairs_of(pairs: Iterable[Any], num_ranks: int) -> list[tuple[int, int]]:
    """Check the (source, target) pairs of a permutation, and return them as a list of int pairs."""
    try:
        numbers = [(operator.index(source), operator.index(target)) for source, target in pairs]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"pairs is {shortened(pairs)}: expected a sequence of (source, target), such as [(0, 1), (1, 0)]."
        ) from None
    for place, role in enumerate(("source", "target")):
        seen: set[int] = set()
        for pair in numbers:
            rank = pair[place]
            if not 0 <= rank < num_ranks:
                raise InvalidArgumentError(
                    f"pairs has the {role} {rank}, which is not in this group: its ranks are 0 to {num_ranks - 1}."
                )
            if rank in seen:
                raise InvalidArgumentError(
                    f"pairs has rank {rank} as a {role} twice: each rank may be a {role} only once. Use broadcast for "
                    "one source and many targets, and all_to_all with counts= for other patterns."
                )
            seen.add(rank)
    return numbers


def pass_ends(sizes: Sequence[int], bytes_per_pack: Any) -> list[int]:
    """Group consecutive arrays of `sizes` bytes into passes of at most `bytes_per_pack`; return their end indices.

    A larger array forms its own pass; 0 means a single pass. An empty list also has one pass.
    """
    limit = whole_number(bytes_per_pack, "bytes_per_pack", "a number of bytes, or 0 for a single pass")
    if limit < 0:
        raise InvalidArgumentError(f"bytes_per_pack is {limit}: expected a number of bytes, or 0 for a single pass.")
    ends: list[int] = []
    filled = 0
    for number, size in enumerate(sizes):
        if limit and number > (ends[-1] if ends else 0) and filled + size > limit:
            ends.append(number)
            filled = 0
        filled += size
    return [*ends, len(sizes)]
