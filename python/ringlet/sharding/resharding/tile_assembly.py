"""Makes arrays of pieces of others: views where devices share memory and the pieces allow it, else copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ringlet.sharding.execution.device_threads import on_devices
from ringlet.sharding.explain import note
from ringlet.sharding.layout.device_group import DeviceGroup, common_group
from ringlet.sharding.layout.layout import Box, Layout
from ringlet.sharding.resharding.collective_record import Collective, Message
from ringlet.sharding.resharding.device_buffers import fresh, spaces_for
from ringlet.sharding.resharding.regions import Copies, Form, Held, Piece, Run, held, plan_pieces
from ringlet.sharding.resharding.reshard_time import timed
from ringlet.sharding.resharding.tile_transport import received
from ringlet.sharding.sharded_array import ShardedArray

__all__ = [
    "as_own",
    "assembled",
    "fill",
    "full_runs",
    "note_copies",
    "nothing_moves",
    "picked",
    "through",
    "viewed",
    "writers",
]

Array = NDArray[Any]
Spaces = Sequence[Array | None]


def full_runs(shape: Sequence[int]) -> tuple[Run, ...]:
    """Give the runs that take all of an array.

    Examples
    --------
    >>> full_runs((2, 3))
    (Run(start=0, step=1, length=2), Run(start=0, step=1, length=3))
    """
    return tuple(Run(0, 1, size) for size in shape)


def viewed(space: Array, runs: Sequence[Run]) -> Array:
    """Give the view of an array that has what runs take of it.

    Examples
    --------
    >>> viewed(np.arange(4), (Run(3, -2, 2),)), viewed(np.arange(4), (Run(1, 0, 3),))
    (array([3, 1]), array([1, 1, 1]))
    """
    key: Any = (*(run.key for run in runs), ...)  # the ellipsis has a 0-d array stay an array
    view: Array = space[key]
    shape = tuple(run.length for run in runs)
    return view if view.shape == shape else np.broadcast_to(view, shape)


def picked(name: str, x: ShardedArray, runs: tuple[Run, ...], layout: Layout) -> ShardedArray:
    """Give what runs take of an array, laid out as said: values, which are not written to.

    Where devices share the memory they are views. Partial values stay partial.

    Parameters
    ----------
    name : str
        What reports call it.
    x : ShardedArray
    runs : tuple of Run, length ``x.ndim``
    layout : Layout
        Of the result, with the parts of `x`.
    """
    form = Form(tuple(run.length for run in runs), x.dtype, layout)
    pieces = (Piece(0, (0,) * x.ndim, runs),)
    copies = plan_pieces(pieces, (x._layout,), (x.shape,), form)
    if nothing_moves(x, copies):
        made = x._derive(lambda space: viewed(space, runs), layout)
    else:
        made = _filled([x], pieces, form, x._group, copies)
        made._combine, made._is_view = x._combine, True
    note_copies(name, x, made, copies)
    return made


def assembled(name: str, operands: Sequence[Any], pieces: Sequence[Piece], forms: Sequence[Form]) -> ShardedArray:
    """Give an array made of pieces of others, which together are all of it.

    Parameters
    ----------
    name : str
        What reports call it.
    operands : sequence of (ShardedArray or ndarray)
        One ShardedArray at least, none partial; all of as many dimensions as the result.
    pieces : sequence of Piece
    forms : sequence of Form
        What it may be. The first one is made of those for which the fewest bytes are sent.

    Returns
    -------
    ShardedArray
        Writable, in memory of its own.
    """
    group = common_group(name, [x for x in operands if isinstance(x, ShardedArray)])
    planned = [(_planned(operands, pieces, form), form) for form in forms]
    copies, form = min(planned, key=lambda plan: plan[0].nbytes)
    made = _filled(operands, pieces, form, group, copies)
    note_copies(name, operands, made, copies)
    return made


def nothing_moves(x: ShardedArray, copies: Copies) -> bool:
    """Tell whether devices that copy from each other share memory; the same on all processes."""
    if x._group.member is not None:
        return not copies.messages
    return x._whole is not None or all(x._space(copy.source) is x._space(copy.target) for copy in copies.messages)


def note_copies(name: str, operands: Any, result: ShardedArray, copies: Copies) -> None:
    """Tell reports what an operation did whose messages are planned."""
    collectives: Sequence[Collective] = copies.collectives
    if result._group.assignment is not None:
        collectives = [timed(collective, result._group) for collective in collectives]
    note(name, operands, result, collectives)


def as_own(x: ShardedArray) -> ShardedArray:
    """Let a result that no other array is seen through be written to; memory that it only reads is copied then."""
    x._is_view = False
    return x


def fill(
    group: DeviceGroup,
    places: Spaces,
    target: Held,
    sources: Sequence[tuple[Spaces, tuple[int, ...]]],
    copies: Copies,
) -> None:
    """Have devices copy what pieces bring them.

    Parameters
    ----------
    group : DeviceGroup
    places : sequence of ndarray or None
        For each device an array of the result's shape, in which it writes its box; None for devices elsewhere.
    target : Held
        The boxes.
    sources : sequence of (sequence of ndarray or None, tuple of int)
        For each piece what each device's memory looks like through it, and where it begins in the result.
    copies : Copies
        The plan.
    """
    brought: list[list[tuple[Box, Array]]] = [[] for _ in places]
    for number, (spaces, offset) in enumerate(sources):
        wanted = [copy for copies_of in copies.of_device for copy in copies_of if copy.piece == number]
        messages = [Message(copy.source, copy.target, _moved(copy.box, offset)) for copy in wanted]
        for copy, values in zip(wanted, received(group, messages, spaces), strict=True):
            if values is not None:
                brought[copy.target].append((copy.box, values))

    def work(device: int) -> None:
        for box, values in brought[device]:
            places[device][box] = values  # type: ignore[index]  # writers have places

    devices = writers(places, target)
    nbytes = sum(values.nbytes for device in devices for _, values in brought[device])
    on_devices(work, devices, nbytes // max(1, len(devices)))


def writers(places: Spaces, target: Held) -> list[int]:
    """Give the devices that have to write: of those that share memory and have the same box, the first.

    Examples
    --------
    >>> place = np.empty(4)
    >>> writers([place, place, place], Held((((0, 2),), ((2, 4),), ((2, 4),)), (0, 0, 0)))
    [0, 1]
    """
    first: dict[tuple[int, object], int] = {}
    for device, (place, box, part) in enumerate(zip(places, target.boxes, target.parts, strict=True)):
        if place is not None and part >= 0 and all(begin < end for begin, end in box):
            first.setdefault((id(place), box), device)
    return list(first.values())


def through(x: Any, piece: Piece, num_devices: int) -> tuple[Spaces, tuple[int, ...]]:
    """Tell what the memory of each device that an array is in looks like through a piece, and where that begins."""
    if not isinstance(x, ShardedArray):
        return [viewed(x, piece.runs)] * num_devices, piece.offset
    spaces = [x._space(device) for device in range(num_devices)]
    views = {id(space): viewed(space, piece.runs) for space in spaces if space is not None}
    return [None if space is None else views[id(space)] for space in spaces], piece.offset


def _planned(operands: Sequence[Any], pieces: Sequence[Piece], form: Form) -> Copies:
    everywhere = Layout.replicated(form.layout.num_devices, len(form.shape))
    layouts = tuple(x._layout if isinstance(x, ShardedArray) else everywhere for x in operands)
    return plan_pieces(tuple(pieces), layouts, tuple(tuple(x.shape) for x in operands), form)


def _filled(
    operands: Sequence[Any], pieces: Sequence[Piece], form: Form, group: DeviceGroup, copies: Copies
) -> ShardedArray:
    spaces = spaces_for(form.layout, group, lambda _: fresh(form.shape, form.dtype))
    sources = [through(operands[piece.operand], piece, group.num_devices) for piece in pieces]
    fill(group, spaces, held(form.layout, form.shape), sources, copies)
    return ShardedArray._build(spaces, form.layout, group)


def _moved(box: Box, offset: tuple[int, ...]) -> Box:
    return tuple(slice(side.start - at, side.stop - at) for side, at in zip(box, offset, strict=True))
