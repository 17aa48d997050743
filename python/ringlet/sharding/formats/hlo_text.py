"""HLO text format for shardings: parser and writer.

The grammar, with spaces and comments between any tokens::

    sharding = element  |  "{" [ element { "," element } ] "}"
    element  = "{" single { note } "}"
    single   = "replicated" | "manual" | "unknown" | "unreduced" | "maximal device=" number | tiled
    tiled    = "devices=[" numbers "]" ( numbers | "<=[" numbers "]" [ "T(" numbers ")" ] ) [ groups ]
    groups   = "last_tile_dim_replicate" | "last_tile_dims={" [ type { "," type } ] "}"
    note     = "metadata={" … "}"  |  "shard_as" number  |  "shard_like" number

Metadata does not affect placement, and is skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, NoReturn

from ringlet.collectives.argument_parsing import shortened
from ringlet.errors import ShardingError
from ringlet.sharding.formats.iota import Iota
from ringlet.sharding.layout.sharding import Kind, Sharding
from ringlet.sharding.layout.tile_assignment import MOST_DEVICES, SUBGROUPS, Subgroup

_SPACE = re.compile(r"(?:\s+|/\*.*?\*/|//[^\n]*)*", re.DOTALL)
_TOKEN = re.compile(r"[0-9]+|[A-Za-z_]\w*=?|<=|.|", re.ASCII)
_MOST_DIGITS = 18
_SHOWN = 60
# XLA inserts a comment before elements 5, 10, 15 and so on of a tuple, counted from 0.
_NUMBERED = 5


def write(sharding: Sharding) -> str:
    """Return the text of a sharding as XLA writes it."""
    if sharding.kind == "tuple":
        numbers = [f"/*index={i}*/" * (i > 0 and i % _NUMBERED == 0) for i in range(len(sharding.elements))]
        return f"{{{', '.join(f'{number}{each}' for number, each in zip(numbers, sharding.elements, strict=True))}}}"
    text: str = sharding.kind
    if sharding.kind == "maximal":
        text = f"maximal device={sharding.tile_assignment_devices[0]}"
    elif sharding.kind == "tiled" and len(sharding.tile_assignment_devices) == 1:  # rejected by XLA's parser
        text = "replicated"
    elif sharding.kind == "tiled":
        is_listed = sharding.lists_devices or sharding.iota is None
        devices = ",".join(map(str, sharding.tile_assignment_devices)) if is_listed else str(sharding.iota)
        groups = f" last_tile_dims={{{', '.join(sharding.last_tile_dims)}}}" if sharding.last_tile_dims else ""
        if sharding.last_tile_dims == ("replicated",):
            groups = " last_tile_dim_replicate"
        text = f"devices=[{','.join(map(str, sharding.tile_assignment_dimensions))}]{devices}{groups}"
    return (
        f"{{{text}}}"
        if sharding.shard_group is None
        else f"{{{text} shard_{' '.join(map(str, sharding.shard_group))}}}"
    )


def parse(text: str, num_devices: int | None = None) -> Sharding:
    """Parse a sharding; see :meth:`Sharding.parse`."""
    if not isinstance(text, str):
        raise TypeError(f"the text of a sharding must be a str, got {shortened(text)} of type {type(text).__name__}")
    reader = _Reader(text)
    found = _sharding(reader, num_devices)
    if reader.token:
        reader.fail("the end of the text")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self._next(0)

    def _next(self, position: int) -> None:
        buffer = _SPACE.match(self.text, position)
        self.position = buffer.end() if buffer else position
        token = _TOKEN.match(self.text, self.position)
        self.token = token[0] if token else ""

    def take(self, token: str) -> bool:
        """Skip `token` if it is next; return whether it is."""
        is_next = self.token == token
        if is_next:
            self._next(self.position + len(token))
        return is_next

    def expect(self, token: str, what: str = "") -> None:
        if not self.take(token):
            self.fail(what or repr(token))

    def number(self) -> int:
        token = self.token
        if not (token.isascii() and token.isdigit()):
            self.fail("a number")
        if len(token) > _MOST_DIGITS:
            self.refuse(f"a number has {len(token)} digits: expected a device number")
        self._next(self.position + len(token))
        return int(token)

    def numbers(self, closing: str) -> tuple[int, ...]:
        numbers = [self.number()]
        while self.take(","):
            numbers.append(self.number())
        if closing:
            self.expect(closing, f"',' or '{closing}'")
        return tuple(numbers)

    def pass_over_braces(self) -> None:
        """Skip a pair of braces and their contents; quoted strings may contain braces."""
        depth = 0
        for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[{}]', self.text[self.position :]):
            depth += {"{": 1, "}": -1}.get(match[0], 0)
            if not depth:
                self._next(self.position + match.end())
                return
        self._next(len(self.text))
        self.fail("'}'")

    def fail(self, expected: str, position: int | None = None) -> NoReturn:
        self.refuse(f"expected {expected}" + ("" if self.token else ", but the text ends"), position)

    def refuse(self, reason: str, position: int | None = None) -> NoReturn:
        """Raise an error that shows the text around the position, with a mark below it."""
        at = self.position if position is None else position
        start = max(0, at - _SHOWN)
        part = "".join(letter if letter.isprintable() else " " for letter in self.text[start : at + _SHOWN])
        raise ShardingError(
            f"the text of a sharding is invalid at position {at}: {reason}\n  {part}\n  {' ' * (at - start)}^"
        )


def _sharding(reader: _Reader, num_devices: int | None, *, is_element: bool = False) -> Sharding:
    position = reader.position
    reader.expect("{", "'{', which begins a sharding")
    if reader.token not in ("{", "}"):
        found = _single(reader, num_devices)
        found = replace(found, shard_group=_shard_group(reader))
        reader.expect("}", "'}', which ends a sharding")
        return found
    if is_element:
        reader.refuse("a tuple contains a tuple: list the shardings of all tensors in one tuple", position)
    elements: list[Sharding] = []
    while not reader.take("}"):
        if elements:
            reader.expect(",", "',' or '}'")
        elements.append(_sharding(reader, num_devices, is_element=True))
    return Sharding.of_tuple(elements)


def _single(reader: _Reader, num_devices: int | None) -> Sharding:
    kinds: tuple[Kind, ...] = ("replicated", "manual", "unknown", "unreduced")
    for kind in kinds:
        if reader.take(kind):
            return Sharding(kind, num_devices=num_devices)
    if reader.take("maximal"):
        reader.expect("device=")
        position, device = reader.position, reader.number()
        if num_devices is not None and device >= num_devices:
            reader.refuse(f"device {device} does not exist: there are {num_devices} devices, numbered from 0", position)
        return Sharding.maximal(device, num_devices)
    reader.expect("devices=", "'replicated', 'maximal device=', 'devices=[', 'manual', 'unknown' or 'unreduced'")
    return _tiled(reader)


def _tiled(reader: _Reader) -> Sharding:
    reader.expect("[")
    start = reader.position
    dimensions = reader.numbers("]")
    count = math.prod(dimensions)
    if count == 0:
        reader.refuse(
            f"the numbers of tiles are {list(dimensions)}: write 1 for a dimension that is not divided", start
        )
    if count == 1:
        reader.refuse("a tiling has one device: write {replicated} or {maximal device=0}", start)
    if count > MOST_DEVICES:
        reader.refuse(f"a tiling has {count} tiles: the maximum is {MOST_DEVICES}", start)
    is_listed = reader.token != "<="
    devices = _listed(reader, count) if is_listed else _grid(reader, count)
    found = Sharding.tiled(dimensions, devices, last_tile_dims=_groups(reader, len(dimensions)))
    return replace(found, lists_devices=is_listed and found.kind == "tiled")


def _listed(reader: _Reader, count: int) -> Sequence[int]:
    devices: dict[int, None] = {}
    while True:
        position, device = reader.position, reader.number()
        if device in devices:
            reader.refuse(f"device {device} is listed twice", position)
        devices[device] = None
        if len(devices) > count:
            reader.refuse(f"the list has more devices than the {count} tiles: expected one for each tile", position)
        if not reader.take(","):
            break
    if len(devices) < count:
        reader.refuse(f"the list ends after {len(devices)} devices, expected {count}, one for each tile")
    return tuple(devices)


def _grid(reader: _Reader, count: int) -> Sequence[int]:
    reader.expect("<=")
    reader.expect("[")
    start = reader.position
    shape = reader.numbers("]")
    if math.prod(shape) != count:
        reader.refuse(f"the grid has {math.prod(shape)} devices for {count} tiles: expected one for each tile", start)
    axes: tuple[int, ...] = (0,)
    if len(shape) > 1:
        reader.expect("T", "'T(', the order of the grid's axes")
        reader.expect("(")
        start = reader.position
        axes = reader.numbers(")")
        if sorted(axes) != list(range(len(shape))):
            reader.refuse(f"the axes are {list(axes)}: expected each of 0 to {len(shape) - 1} once", start)
    return Iota(shape, axes).devices


def _groups(reader: _Reader, ndim: int) -> list[Subgroup]:
    if reader.take("last_tile_dim_replicate"):
        return ["replicated"]
    groups: list[Subgroup] = []
    if reader.take("last_tile_dims="):
        reader.expect("{")
        while not reader.take("}"):
            if groups:
                reader.expect(",", "',' or '}'")
            if reader.token not in SUBGROUPS:
                reader.fail(" or ".join(map(repr, SUBGROUPS)))
            if len(groups) == ndim:
                reader.refuse(f"the list has more groups than the {ndim} dimensions of the tile assignment")
            groups.append(reader.token)
            reader.take(reader.token)
    return groups


def _shard_group(reader: _Reader) -> tuple[Literal["as", "like"], int] | None:
    group: tuple[Literal["as", "like"], int] | None = None
    while True:
        if reader.take("shard_as"):
            group = ("as", reader.number())
        elif reader.take("shard_like"):
            group = ("like", reader.number())
        elif not reader.take("metadata="):
            return group
        elif reader.token == "{":
            reader.pass_over_braces()
        else:
            reader.fail("'{'")
