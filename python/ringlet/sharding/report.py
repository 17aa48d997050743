"""Report of operations on sharded arrays: shardings and bytes sent, as text and HTML."""

from __future__ import annotations

import html
import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Any

from ringlet.observe.stacks import described
from ringlet.sharding.layout.axis_names import array_text, placement_text
from ringlet.sharding.layout.device_group import DeviceGroup
from ringlet.sharding.layout.layout import Layout, Shape
from ringlet.sharding.resharding.collective_record import Collective
from ringlet.tpu.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from ringlet.sharding.layout.sharding import Sharding
    from ringlet.sharding.sharded_array import ShardedArray


@dataclass(frozen=True)
class ArrayRecord:
    """Description of an array in a report, without its values; a plain array has no layout."""

    shape: Shape
    dtype: str
    layout: Layout | None
    group: DeviceGroup | None = field(default=None, compare=False)

    @property
    def sharding(self) -> Sharding | None:
        """Sharding of the array; None for a plain array."""
        from ringlet.sharding.layout.layout_of import sharding_of

        return None if self.layout is None else sharding_of(self.layout)

    def __str__(self) -> str:
        placement = "" if self.layout is None else placement_text(self.layout, self.group, is_short=True)
        return array_text(self.dtype, self.shape, placement)


def array_records(values: Any) -> tuple[ArrayRecord, ...]:
    """Describe the arrays among arguments, at any depth of lists and tuples."""
    return tuple(_each_record(values))


def _each_record(value: Any) -> Iterable[ArrayRecord]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _each_record(item)
    elif hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, type):
        layout, group = getattr(value, "_layout", None), getattr(value, "_group", None)
        yield ArrayRecord(tuple(value.shape), str(value.dtype), layout, group)


def calling_frame() -> FrameType:
    """Return the innermost frame of this thread outside Ringlet and NumPy."""
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("ringlet.", "numpy.")):
        frame = frame.f_back
    return frame


@dataclass(frozen=True, repr=False)
class Operation:
    """One operation on sharded arrays: operands as sharded before the call, collectives in execution order.

    `place` is the line of the program, such as ``in step (train.py:88)``.
    """

    name: str
    operands: tuple[ArrayRecord, ...]
    result: tuple[ArrayRecord, ...]
    collectives: tuple[Collective, ...] = ()
    is_gathered: bool = False
    place: str = field(default_factory=lambda: described(calling_frame()), compare=False)

    @property
    def nbytes(self) -> int:
        """Bytes sent by all devices."""
        return sum(collective.nbytes for collective in self.collectives)

    @property
    def seconds(self) -> float | None:
        """Predicted time in seconds of its collectives in sequence; None if no collective has a predicted time."""
        return _seconds_of(self.collectives)

    def __repr__(self) -> str:
        return f"<{'; '.join(map(str.strip, str(self).splitlines()))}>"

    def __str__(self) -> str:
        gathered = " (gathered)" if self.is_gathered else ""
        line = f"{self.name}{gathered}: {_listed(self.operands)} -> {_listed(self.result)}"
        return "\n".join([line, *(f"  {collective_text(collective)}" for collective in self.collectives)])


class Report:
    """Operations recorded while a report was open; made by :func:`ringlet.sharding.explain`.

    Attributes
    ----------
    operations : list of Operation
        In order of completion.
    unreduced : list of Operation
        Reductions that are still due, for partial results in use when the block ends. The properties below do
        not include them.

    Examples
    --------
    >>> import numpy as np, ringlet
    >>> from ringlet.sharding import Sharding, shard
    >>> x = shard(np.ones((4, 2)), Sharding.tiled((2, 1)))
    >>> with ringlet.sharding.explain() as report:
    ...     total = float(x.sum())
    >>> report.counts, report.nbytes, report.gathers
    ({'all-reduce': 1}, 16, [])
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.unreduced: list[Operation] = []
        self._note = ""  # reason why nothing was recorded
        self._partial: list[weakref.ref[ShardedArray]] = []

    @property
    def collectives(self) -> list[Collective]:
        """Collectives of all operations, in order."""
        return [collective for operation in self.operations for collective in operation.collectives]

    @property
    def counts(self) -> dict[str, int]:
        """Number of collectives of each kind."""
        return dict(Counter(collective.kind for collective in self.collectives))

    @property
    def gathers(self) -> list[Operation]:
        """Operations that gathered an array, such as conversions to plain arrays and functions without a tiled form."""
        return [operation for operation in self.operations if operation.is_gathered]

    @property
    def nbytes(self) -> int:
        """Bytes sent by all devices."""
        return sum(operation.nbytes for operation in self.operations)

    @property
    def lines(self) -> dict[str, int]:
        """Bytes sent by each line of the program, in descending order; lines that send nothing are left out."""
        sent = Counter[str]()
        for operation in self.operations:
            sent[operation.place] += operation.nbytes
        return {line: count for line, count in sent.most_common() if count}

    @property
    def seconds(self) -> float | None:
        """Predicted time in seconds of all collectives in sequence; None if no collective has a predicted time."""
        return _seconds_of(self.collectives)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.operations), self._total()])

    def __repr__(self) -> str:
        return f"<Report: {self._total()}>"

    def _total(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.counts.items())
        number = len(self.operations)
        total = f"{number} operation{'s' * (number != 1)}, "
        total += f"{format_bytes(self.nbytes)} sent in {kinds}" if kinds else "nothing sent"
        total += "" if self.seconds is None else f", predicted {format_seconds(self.seconds)}"
        return total + self._note + _due(self.unreduced)

    def _repr_html_(self) -> str:
        head = _row("th", ("operation", "operands", "result", "collectives", "bytes", "predicted"))
        rows = "".join(_row("td", _cells(operation)) for operation in self.operations)
        return f"<table><caption>{html.escape(self._total())}</caption>{head}{rows}</table>"


def _due(reductions: Sequence[Operation]) -> str:
    if not reductions:
        return ""
    nbytes = format_bytes(sum(reduction.nbytes for reduction in reductions))
    if len(reductions) == 1:
        return f"; 1 result is unreduced: {nbytes} when it is used"
    return f"; {len(reductions)} results are unreduced: {nbytes} when they are used"


def collective_text(collective: Collective) -> str:
    """Return a line about a collective: kind, shape, groups or pairs, bytes and predicted time."""
    text = f"{collective.kind} {array_text(collective.dtype, collective.shape)}"
    if collective.groups:
        number, sizes = len(collective.groups), sorted({len(group) for group in collective.groups})
        text += f" in {number} group{'s' * (number != 1)} of {' or '.join(map(str, sizes))}"
    elif collective.pairs:
        pairs = [f"{source}->{target}" for source, target in collective.pairs]
        text += f" {' '.join(pairs[:_MAX_PAIRS])}{' ...' * (len(pairs) > _MAX_PAIRS)}"
    text += f": {format_bytes(collective.nbytes)}"
    return text if collective.seconds is None else f"{text}, {format_seconds(collective.seconds)}"


# Maximum number of messages of a permutation that are shown in one line.
_MAX_PAIRS = 8


def _listed(arrays: Sequence[ArrayRecord]) -> str:
    return ", ".join(map(str, arrays)) or "no array"


def _seconds_of(collectives: Sequence[Collective]) -> float | None:
    known = [collective.seconds for collective in collectives if collective.seconds is not None]
    return sum(known) if known else None


def _cells(operation: Operation) -> tuple[str, ...]:
    seconds = operation.seconds
    return (
        operation.name + " (gathered)" * operation.is_gathered,
        "\n".join(map(str, operation.operands)),
        "\n".join(map(str, operation.result)),
        "\n".join(map(collective_text, operation.collectives)),
        format_bytes(operation.nbytes) if operation.collectives else "",
        "" if seconds is None else format_seconds(seconds),
    )


def _row(tag: str, cells: Sequence[str]) -> str:
    style = ' style="text-align:left;vertical-align:top"'
    inner = "".join(f"<{tag}{style}>{html.escape(cell).replace(chr(10), '<br>')}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
